"""The feature `dashboard`: its pages and routes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.feature import Feature, Services
from bot.web.openapi import Operation
from bot.web.page_routes import Page
from handlers.dashboard import log_text
from handlers.dashboard.badge import target_badge
from handlers.dashboard.commit import commit_page
from handlers.dashboard.compare import compare_page
from handlers.dashboard.feed import regressions_feed
from handlers.dashboard.flaky import flaky_page
from handlers.dashboard.grid import grid_page
from handlers.dashboard.grid_picture import grid_picture
from handlers.dashboard.history import history_page
from handlers.dashboard.lab import lab_page
from handlers.dashboard.labs import all_labs_page, labs_page
from handlers.dashboard.nightly import nightly_page
from handlers.dashboard.overview import overview_page
from handlers.dashboard.pull import pull_page
from handlers.dashboard.pulls import pulls_page
from handlers.dashboard.reader_steps import with_reader_steps
from handlers.dashboard.run import run_page
from handlers.dashboard.run_file import run_file_page
from handlers.dashboard.search import repository_search, site_search
from handlers.dashboard.skipped import skipped_page
from handlers.dashboard.slow import slow_page
from handlers.dashboard.wiring import DashboardParts

PAGES = (
    overview_page,
    grid_page,
    nightly_page,
    commit_page,
    compare_page,
    flaky_page,
    slow_page,
    skipped_page,
    run_page,
    labs_page,
    all_labs_page,
    run_file_page,
    lab_page,
    pull_page,
    pulls_page,
    target_badge,
    regressions_feed,
    grid_picture,
    history_page,
    site_search,
    repository_search,
)
"""The functions that make the pages, the badges and the feed from `DashboardParts`."""


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes of all pages, of their JSON twins, and of the files."""
    parts = DashboardParts.of(services)
    pages = [make_page(parts) for make_page in PAGES]
    return [
        operation
        for page in pages
        for operation in (with_reader_steps(page, parts) if isinstance(page, Page) else page).operations()
    ]


FEATURE = Feature(
    name="dashboard",
    routes=routes,
    templates=Path(__file__).parent / "templates",
    preload=(log_text.__name__,),
)
