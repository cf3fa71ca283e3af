"""What GitHub says of the App, compared with what the bot needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.app.doctor.findings import Check, Finding, together
from bot.app.registration import EVENTS, NEEDS, PERMISSIONS
from bot.github.repositories import ARCHIVED, DELETED, KnownRepository

OPTIONAL = frozenset({"members", "merge_queues"})
"""Permissions that may be left out, as the README says; `ON_DEMAND` are in no App until somebody needs them."""
OPTIONAL_EVENTS = frozenset({"merge_group"})
"""What an App without an optional permission cannot hear of."""
WEBHOOK_PATH = "/webhook"
JSON = "json"
UNAUTHORIZED, BAD_REQUEST, NOT_FOUND = 401, 400, 404

LEVELS = {"read": 1, "write": 2, "admin": 3}
TITLES = {need.key: need.name for need in NEEDS}

APP_LACKS = "the App lacks the permissions {missing}"
GRANT = "add them on the App's page on GitHub under Permissions & events; an owner of each account then accepts them"
NOT_ACCEPTED = "{repository}: its owner has not accepted the permissions {missing}"
ACCEPT = "an owner of the account accepts them on the installation's page on GitHub"
ALL_PERMISSIONS = "all that are needed"
LACKS_EVENTS = "the App is not subscribed to {missing}"
SUBSCRIBE = "select them on the App's page on GitHub under Permissions & events, Subscribe to events"
ALL_EVENTS = "all that are needed"

NO_ADDRESS = "the App has no webhook address, so GitHub tells us nothing"
SET_ADDRESS = "set it on the App's page on GitHub to https://YOUR-HOST/webhook, and make the webhook active"
OTHER_ADDRESS = "GitHub sends webhooks to {url}, which does not end with /webhook"
NOT_PUBLIC_ADDRESS = "GitHub sends webhooks to {url}, and public_url in app.yaml is {public}"
CORRECT_ADDRESS = "correct the webhook URL on the App's page on GitHub"
CONTENT_TYPE = "GitHub sends webhooks as form data"
SET_CONTENT_TYPE = "set the webhook's content type to application/json on the App's page on GitHub"
NO_SECRET = "the webhook has no secret, so every delivery is refused"  # noqa: S105
SET_SECRET = "set the value of GITHUB_WEBHOOK_SECRET as the webhook secret on the App's page on GitHub"  # noqa: S105
NO_TLS = "GitHub does not verify the certificate of the webhook's address"
SET_TLS = "enable SSL verification on the App's page on GitHub"
OTHER_SECRET = "the newest delivery was refused, for its signature does not fit GITHUB_WEBHOOK_SECRET"  # noqa: S105
NOT_OURS = "the newest delivery was answered {status}, which is no answer of a working bot at that address"
SEE_DELIVERIES = "look at Advanced, Recent Deliveries on the App's page on GitHub, and at the proxy before the bot"
HOOK_IS_FINE = "{url}, application/json"

NOT_INSTALLED = "{repository}: the App is not installed on it, or it does not exist"
INSTALL = "install the App on it, or correct its name in app.yaml"
SUSPENDED = "{repository}: the installation is suspended"
UNSUSPEND = "an owner of the account unsuspends it on the installation's page on GitHub"
RENAMED = "{repository}: GitHub calls it {now} now"
RENAME = "change its name in app.yaml; until then it is matched by its id"
LEFT_ALONE = "{repository}: {reason}, so its timers stand still"
TAKE_OUT = "take it out of app.yaml, or bring it back on GitHub"
ALL_INSTALLED = "the App is installed on {count}"
NONE_CONFIGURED = "app.yaml names no repository"


@dataclass(frozen=True, slots=True)
class Hook:
    """The App's webhook as GitHub describes it; `newest` is the status of the newest delivery, 0 for none."""

    url: str
    content_type: str
    has_secret: bool
    verifies_tls: bool
    newest: int = 0


@dataclass(frozen=True, slots=True)
class Installed:
    """What GitHub says of the installation on a repository of app.yaml; `permissions` None: there is none."""

    repository: str
    permissions: Mapping[str, str] | None = None
    suspended: bool = False


def lacking(granted: Mapping[str, str]) -> list[str]:
    """Return the needed permissions that are not granted, as GitHub's pages call them."""
    missing = [
        (name, level)
        for name, level in PERMISSIONS.items()
        if name not in OPTIONAL and LEVELS.get(granted.get(name, ""), 0) < LEVELS[level]
    ]
    return [f"{TITLES[name]}: {level}" for name, level in missing]


def judge_permissions(of_app: Mapping[str, str], installed: Iterable[Installed]) -> Finding:
    """Compare the permissions of the App, and what the owners of repositories have accepted of them."""
    problems = []
    missing = lacking(of_app)
    if missing:
        problems.append((APP_LACKS.format(missing=", ".join(missing)), GRANT))
    for one in installed:
        accepted = [name for name in lacking(one.permissions or {}) if name not in missing]
        if one.permissions is not None and accepted:
            problems.append((NOT_ACCEPTED.format(repository=one.repository, missing=", ".join(accepted)), ACCEPT))
    return together(Check.PERMISSIONS, problems, ALL_PERMISSIONS)


def judge_events(subscribed: Iterable[str]) -> Finding:
    """Compare the events that the App is subscribed to."""
    missing = sorted(set(EVENTS) - OPTIONAL_EVENTS - set(subscribed))
    if not missing:
        return Finding(Check.EVENTS, ALL_EVENTS)
    named = ", ".join(event.replace("_", " ").capitalize() for event in missing)
    return Finding(Check.EVENTS, LACKS_EVENTS.format(missing=named), SUBSCRIBE)


def judge_hook(hook: Hook, public_url: str | None) -> Finding:
    """Check how GitHub delivers webhooks."""
    problems = []
    if not hook.url:
        problems.append((NO_ADDRESS, SET_ADDRESS))
    elif not hook.url.endswith(WEBHOOK_PATH):
        problems.append((OTHER_ADDRESS.format(url=hook.url), CORRECT_ADDRESS))
    elif public_url and hook.url != public_url.rstrip("/") + WEBHOOK_PATH:
        problems.append((NOT_PUBLIC_ADDRESS.format(url=hook.url, public=public_url), CORRECT_ADDRESS))
    if hook.content_type != JSON:
        problems.append((CONTENT_TYPE, SET_CONTENT_TYPE))
    if not hook.has_secret:
        problems.append((NO_SECRET, SET_SECRET))
    if not hook.verifies_tls:
        problems.append((NO_TLS, SET_TLS))
    if not problems and hook.newest == UNAUTHORIZED:
        problems.append((OTHER_SECRET, SET_SECRET))
    elif not problems and hook.newest in (BAD_REQUEST, NOT_FOUND):
        problems.append((NOT_OURS.format(status=hook.newest), SEE_DELIVERIES))
    return together(Check.HOOK, problems, HOOK_IS_FINE.format(url=hook.url))


def judge_repositories(installed: Sequence[Installed], known: Iterable[KnownRepository] = ()) -> Finding:
    """Check whether the App is installed, and not suspended, on what app.yaml names, and whether that is its name."""
    problems = []
    for seen in known:
        if seen.renamed:
            problems.append((RENAMED.format(repository=seen.name, now=seen.full_name), RENAME))
        if seen.away in (ARCHIVED, DELETED):
            problems.append((LEFT_ALONE.format(repository=seen.name, reason=seen.away), TAKE_OUT))
    for one in installed:
        if one.suspended:
            problems.append((SUSPENDED.format(repository=one.repository), UNSUSPEND))
        elif one.permissions is None:
            problems.append((NOT_INSTALLED.format(repository=one.repository), INSTALL))
    count = "1 repository" if len(installed) == 1 else f"{len(installed)} repositories"
    return together(Check.REPOSITORIES, problems, ALL_INSTALLED.format(count=count) if installed else NONE_CONFIGURED)
