"""Name what the content of a page depends on, so that one rendered page serves all readers until that changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bot.results.store.tables.revisions import revisions_of

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

Content = tuple[object, ...]


def content_of_results(parts: DashboardParts) -> Callable[[PageRequest], Awaitable[Content | None]]:
    """Return the `content` function of pages that depend on results and on the time.

    It returns the revision of the repository's results and `DashboardParts.moment`; None for an unknown repository.
    """

    async def content(request: PageRequest) -> Content | None:
        name_and_settings = parts.config.configured.name_and_settings(request.repository)
        if name_and_settings is None:
            return None
        return *await request.pages.look_up(
            parts.results.store.read, revisions_of, [name_and_settings[0]]
        ), parts.moment()

    return content
