"""Name what the content of a page depends on, so that one rendered page serves all readers until that changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.wiring import DashboardParts

Content = tuple[object, ...]


def content_of_results(parts: DashboardParts) -> Callable[[PageRequest], Awaitable[Content | None]]:
    """Return the `content` function of pages that depend on results and on the time.

    It returns the revision of the repository's results and `DashboardParts.moment`; None for an unknown repository.
    """

    async def content(asked: PageRequest) -> Content | None:
        named = parts.named(asked.repository)
        if named is None:
            return None
        return *await asked.pages.look_up(parts.store.revisions.of, [named[0]]), parts.moment()

    return content
