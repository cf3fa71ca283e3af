"""Apps from a manifest: a page creates the App, and a code returns its secrets once, within an hour.

https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlsplit

from sandbox.errors import not_found
from sandbox.model.apps import EVENT_PERMISSIONS, App
from sandbox.views import users
from sandbox.world import World

Json = dict[str, Any]
CODE_LIFETIME = timedelta(hours=1)
LONGEST_NAME = 34
MOST_CALLBACKS = 10
KEYS = frozenset(
    {
        "callback_urls",
        "default_events",
        "default_permissions",
        "description",
        "hook_attributes",
        "name",
        "public",
        "redirect_url",
        "request_oauth_on_install",
        "setup_on_update",
        "setup_url",
        "url",
    }
)
NAME_TAKEN = "Name has already been taken"
NO_NAME = "Name can't be blank"
LONG_NAME = f"Name is too long (maximum is {LONGEST_NAME} characters)"


class HasApps(World, Protocol):
    """A GitHub on which Apps are registered."""

    @property
    def apps(self) -> Mapping[int, App]:
        """Return the Apps by their numbers."""

    def create_app(
        self,
        slug: str,
        *,
        webhook_url: str,
        webhook_secret: str,
        permissions: Mapping[str, str],
        events: Iterable[str],
        owner: str,
    ) -> App:
        """Register an App."""


@dataclass(frozen=True)
class ManifestCode:
    """A code, with its App."""

    app: App
    until: datetime


class Manifests:
    """The codes that were not exchanged yet."""

    def __init__(self, github: HasApps) -> None:
        self._github = github
        self._codes: dict[str, ManifestCode] = {}

    def create(self, manifest: Json, name: str, owner: str) -> str:
        """Create the App of a manifest that has no problems; return the code for its secrets."""
        app = self._github.create_app(
            slug_of(name),
            webhook_url=manifest["hook_attributes"]["url"],
            webhook_secret=secrets.token_hex(20),
            permissions={**manifest.get("default_permissions", {}), "metadata": "read"},
            events=manifest.get("default_events", ()),
            owner=owner,
        )
        app.callback_urls = tuple(manifest.get("callback_urls", ()))
        code = secrets.token_hex(20)
        self._codes[code] = ManifestCode(app, self._github.clock.now() + CODE_LIFETIME)
        self._github.changed()
        return code

    def name_problem(self, name: str) -> str:
        """Return GitHub's message about a name, empty if the name is free."""
        if not slug_of(name):
            return NO_NAME
        if len(name) > LONGEST_NAME:
            return LONG_NAME
        taken = any(app.slug == slug_of(name) for app in self._github.apps.values())
        return NAME_TAKEN if taken else ""

    def convert(self, code: str) -> Json:
        """Return an App with its secrets, once; raises a 404 `ApiError` for a code that is used, old or unknown."""
        pending = self._codes.pop(code, None)
        if pending is None or pending.until <= self._github.clock.now():
            raise not_found()
        app = pending.app
        made = {"client_secret": app.client_secret, "webhook_secret": app.webhook_secret, "pem": app.private_key}
        return users.app(app) | made


def slug_of(name: str) -> str:
    """Return the form of a name in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def read_manifest(text: str) -> tuple[Json, list[str]]:
    """Return a manifest, and the faults for which GitHub would refuse it."""
    try:
        manifest = json.loads(text)
    except ValueError:
        return {}, ["The manifest is not JSON"]
    if not isinstance(manifest, dict):
        return {}, ["The manifest is not an object"]
    problems = [f"{key} is not a key of a manifest" for key in manifest.keys() - KEYS]
    hook = manifest.get("hook_attributes") or {}
    addresses = {"url": manifest.get("url"), "hook_attributes.url": hook.get("url")}
    addresses |= {f"callback_urls[{number}]": url for number, url in enumerate(manifest.get("callback_urls", []))}
    addresses["redirect_url"] = manifest.get("redirect_url")
    problems += [f"{name} is not a URL" for name, url in addresses.items() if not _is_url(url)]
    if len(manifest.get("callback_urls", [])) > MOST_CALLBACKS:
        problems.append("callback_urls has too many items")
    return manifest, problems + _unsupported(manifest)


def _unsupported(manifest: Mapping[str, Any]) -> list[str]:
    granted = {"metadata", *manifest.get("default_permissions", {})}
    events = manifest.get("default_events", [])
    unknown = [event for event in events if event not in EVENT_PERMISSIONS]
    refused = [event for event in events if event in EVENT_PERMISSIONS and EVENT_PERMISSIONS[event] not in granted]
    return [f"Default events unsupported: {event}" for event in unknown] + [
        f"Default events are not supported by permissions: {event}" for event in refused
    ]


def _is_url(text: object) -> bool:
    return isinstance(text, str) and urlsplit(text).scheme in ("http", "https") and bool(urlsplit(text).netloc)
