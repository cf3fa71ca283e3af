"""Addresses of our own pages, for what is written on GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.plan.handler import Context


def pull_page_url(context: Context, number: int) -> str:
    """Return the page that says what the bot did for a pull request.

    Empty without `public_url` in app.yaml, and for a private repository, whose pages strangers may not see.
    """
    public_url = context.app_config.public_url
    if not public_url or context.delivery.payload.flag("repository", "private"):
        return ""
    return f"{public_url.rstrip('/')}/r/{context.repository.full_name}/pulls/{number}"
