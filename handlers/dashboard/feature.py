"""The feature `dashboard`: its pages and routes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.feature import Feature, Services
from bot.web.openapi import Operation
from bot.web.page_routes import Page
from handlers.dashboard.compare.page import compare_page
from handlers.dashboard.compare.targets import targets_page
from handlers.dashboard.fixes.page import fixes_page
from handlers.dashboard.grid.commit import commit_page
from handlers.dashboard.grid.feed import regressions_feed
from handlers.dashboard.grid.nightly import nightly_page
from handlers.dashboard.grid.page import grid_page
from handlers.dashboard.grid.picture import grid_picture
from handlers.dashboard.history.page import history_page
from handlers.dashboard.labs.badge import target_badge
from handlers.dashboard.labs.list_page import all_labs_page, labs_page
from handlers.dashboard.labs.page import lab_page
from handlers.dashboard.lists.flaky import flaky_page
from handlers.dashboard.lists.skipped import skipped_page
from handlers.dashboard.lists.slow import slow_page
from handlers.dashboard.measurements.badge import measurement_badge
from handlers.dashboard.measurements.list_page import measurements_page
from handlers.dashboard.measurements.map_page import map_page
from handlers.dashboard.measurements.series_page import series_page
from handlers.dashboard.overview.page import overview_page
from handlers.dashboard.overview.search import repository_search, site_search
from handlers.dashboard.pull.list_page import pulls_page
from handlers.dashboard.pull.page import pull_page
from handlers.dashboard.run import log_text
from handlers.dashboard.run.file_page import run_file_page
from handlers.dashboard.run.page import run_page
from handlers.dashboard.searches.list_page import searches_page
from handlers.dashboard.searches.page import culprit_page
from handlers.dashboard.shared.reader_steps import with_reader_steps
from handlers.dashboard.shared.wiring import DashboardParts

PAGES = (
    overview_page,
    grid_page,
    nightly_page,
    commit_page,
    compare_page,
    targets_page,
    flaky_page,
    slow_page,
    skipped_page,
    fixes_page,
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
    measurements_page,
    series_page,
    map_page,
    measurement_badge,
    searches_page,
    culprit_page,
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
