"""What the content of a page depends on, so that it is made once for everybody until that changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.wiring import DashboardParts

Content = tuple[object, ...]


def content_of_results(parts: DashboardParts) -> Callable[[PageRequest], Awaitable[Content | None]]:
    """Return a function that returns the revision of the results of a page's repository, and the pages' moment."""

    async def content(asked: PageRequest) -> Content | None:
        named = parts.named(asked.repository)
        if named is None:
            return None
        return *await asked.pages.look_up(parts.store.revisions.of, [named[0]]), parts.moment()

    return content
