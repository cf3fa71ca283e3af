"""The manifest from which GitHub creates the App. Permissions and events are those of `bot.app.registration`.

https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest
"""

from __future__ import annotations

from typing import Any

from bot.app.registration import EVENTS, PERMISSIONS
from bot.app.setup.addresses import SIGN_IN_CALLBACK, WEBHOOK
from bot.app.setup.texts import APP_DESCRIPTION, APP_NAME, APP_NAME_FOR

LONGEST_NAME = 34
"""Characters that GitHub allows."""


def app_manifest(organization: str, public_url: str, redirect_url: str) -> dict[str, Any]:
    """Return the manifest; GitHub sends the person to `redirect_url` with the code."""
    name = APP_NAME_FOR.format(organization=organization) if organization else APP_NAME
    return {
        "name": name[:LONGEST_NAME].rstrip("- "),
        "description": APP_DESCRIPTION,
        "url": public_url,
        "hook_attributes": {"url": public_url + WEBHOOK, "active": True},
        "redirect_url": redirect_url,
        "callback_urls": [public_url + SIGN_IN_CALLBACK],
        "public": False,
        "default_permissions": dict(PERMISSIONS),
        "default_events": list(EVENTS),
    }
