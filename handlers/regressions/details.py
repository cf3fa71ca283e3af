"""Load what issues say about each test that they list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.plan.page_links import history_link
from handlers.regressions.target_text import DetailsOfTests
from handlers.results.owners import owners_in_force

if TYPE_CHECKING:
    from bot.plan.handler import Context


async def details_of(context: Context) -> DetailsOfTests:
    """Return the details of a repository's tests."""
    return DetailsOfTests(
        history_link(context), await owners_in_force(context.records, context.repository.full_name, context.config)
    )
