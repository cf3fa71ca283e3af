"""Load what issues say about each test that they list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.plan.page_links import history_link
from bot.results.compare.owners import owners_of
from handlers.regressions.target_text import DetailsOfTests
from handlers.results.config import OWNERS

if TYPE_CHECKING:
    from bot.plan.handler import Context


def details_of(context: Context) -> DetailsOfTests:
    """Return the details of a repository's tests."""
    return DetailsOfTests(history_link(context), owners_of(context.config.of(OWNERS)))
