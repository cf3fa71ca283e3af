"""Name what the content of a page depends on, so that one rendered page serves all readers until that changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bot.effects.remember import SHOWN_CHANGE
from bot.results.store.tables.revisions import revisions_of

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

Content = tuple[object, ...]


def content_of_results_and_records(parts: DashboardParts) -> Callable[[PageRequest], Awaitable[Content]]:
    """Return the `content` function of pages that also show records (`bot.effects.remember`)."""
    results = content_of_results(parts)

    async def content(request: PageRequest) -> Content:
        change = await parts.records.get(SHOWN_CHANGE.of(request.repository.lower()))
        return change, *await results(request)

    return content


def content_of_results(parts: DashboardParts) -> Callable[[PageRequest], Awaitable[Content]]:
    """Return the `content` function of pages that depend on results and on the time.

    It returns the revision of the repository's results, 0 without any, and `DashboardParts.moment`. It raises
    LookupError if app.yaml does not list the repository: pages may be cached from when it did.
    """

    async def content(request: PageRequest) -> Content:
        if parts.config.configured.settings_of(request.repository) is None:
            raise LookupError(request.repository)
        revisions = await request.pages.look_up(parts.results.store.read, revisions_of, [request.repository])
        return *revisions, parts.moment()

    return content
