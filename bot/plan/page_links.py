"""URLs of our own pages, for texts on GitHub: empty without `public_url` in app.yaml.

Pages of private repositories are linked too; visitors have to sign in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.core.page_paths import history_path, pull_path

if TYPE_CHECKING:
    from bot.plan.handler import Context

LONGEST_HISTORY_LINK = 500
"""The most characters of a link to a test's page in an issue that lists many tests."""
HistoryLink = Callable[[str, str], str]
"""Returns the address of a test's page on a target (LAB/TARGET), empty where there is none to link."""


def no_history(_test: str, _target: str) -> str:
    """Return no link: the `HistoryLink` for texts without links."""
    return ""


def page_url(context: Context, path: str) -> str:
    """Return the address of a page by its path (`bot.core.page_paths`)."""
    public_url = context.app_config.public_url
    return f"{public_url.rstrip('/')}{path}" if public_url else ""


def pull_page_url(context: Context, number: int | None) -> str:
    """Return the address of the page about the bot's work on a pull request; empty for the number None."""
    return page_url(context, pull_path(context.repository.full_name, number)) if number else ""


def history_link(context: Context) -> HistoryLink:
    """Return a function that links tests of the repository; URLs that are too long are left out."""

    def link(test: str, target: str) -> str:
        url = page_url(context, history_path(context.repository.full_name, test, target))
        return url if len(url) <= LONGEST_HISTORY_LINK else ""

    return link
