"""`/r/{owner}/{repo}/measurements/series`: what a test measures, from commit to commit, and when it changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.measurements.moved import MovedSeries
from bot.results.settings.measurements import DEFAULT_LIMITS
from bot.results.store.grid.rows import GridRange
from bot.results.store.grid.test_runs import lines_of_test
from bot.results.store.measurements.moved import moved_of_tests
from bot.results.store.measurements.nights import NIGHTS
from bot.results.store.measurements.read import MeasuredNight, metrics_of_tests, series_on_targets
from bot.results.store.measurements.search import GONE
from bot.results.store.tables.commits import summaries_of
from bot.results.store.tables.names import SuiteRow, find_ordinal
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_points
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.measurements.analysis import analysed, in_newest_unit, is_exact
from handlers.dashboard.measurements.series_answer import series_answer, series_steps
from handlers.dashboard.measurements.series_model import (
    SeriesMove,
    SeriesNight,
    SeriesOnTarget,
    SeriesPage,
    SeriesQuery,
)
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, RENAMES

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig

ANALYSED_NIGHTS = NIGHTS
"""The newest nights of a target that are read: as many as the search for changes reads, so that both find the same."""
NIGHTS_BESIDE_OTHERS = 120
"""The newest nights that are shown of each of several targets."""
MOST_TARGETS = 6
"""The most targets and suites that a page shows side by side."""


class _ReadSeries(NamedTuple):
    """What is stored about a measurement of a test in a suite on a target.

    `nights` are those that have it, `newest_nights` those of the suite; `moved` are the changes of all that the test
    measures.
    """

    suite: SuiteOnTarget
    nights: Sequence[MeasuredNight]
    newest_nights: Sequence[LinkedPoint]
    moved: Sequence[MovedSeries]


def series_page(parts: DashboardParts) -> Page:
    """Return the page of a measurement."""

    async def load(request: PageRequest) -> SeriesPage:
        name, settings = await settings_and_target(parts, request)
        page = await request.pages.run(parts.results.store.read, read_series, name, request.query, settings)
        steps = series_steps(page, name, f"{parts.github}/{name}")
        return page.model_copy(update={"answer": series_answer(page, name), "next_steps": steps})

    return Page(
        path="/r/{owner}/{repo}/measurements/series",
        api_path="/api/v1/repos/{owner}/{repo}/measurements/series",
        summary="What a test measures on each target: its values by commit, when they changed, and by how much",
        template="series.html",
        model=SeriesPage,
        query=SeriesQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
        most_csv_rows=ANALYSED_NIGHTS * MOST_TARGETS,
    )


def _table(page: SeriesPage) -> CsvTable:
    rows = (
        (series.name, series.suite, night.sha, night.committed_at, night.value, series.unit)
        for series in page.targets
        for night in series.nights
    )
    return CsvTable(("target", "suite", "sha", "committed_at", "value", "unit"), rows)


def read_series(
    connection: sa.Connection, repository: str, query: SeriesQuery, settings: RepositoryConfig
) -> SeriesPage:
    """Read a measurement of a test on its targets; it blocks. Raises LookupError if no suite has the test."""
    lab, _, target = (query.target or "").partition("/")
    lines = lines_of_test(connection, GridRange(repository, lab or None, target or None), query.id)
    names = metrics_of_tests(connection, {line.row: find_ordinal(connection, line.row, query.id) for line in lines})
    if not lines:
        raise LookupError(query.id)
    with_name = [line for line in lines if query.measurement in names[line.row.id]]
    present = _read_on_targets(connection, with_name[:MOST_TARGETS], query, settings, is_beside=len(with_name) > 1)
    shas = {night.sha for on_target in present for night in on_target.nights}
    shas |= {sha for on_target in present for move in on_target.moves for sha in (move.since, move.good)}
    other_names = sorted({name for line in lines for name in names[line.row.id]} - {query.measurement})
    return SeriesPage(
        id=query.id,
        measurement=query.measurement,
        other_names=other_names,
        targets=present,
        more_targets=list(dict.fromkeys(line.target.full_name for line in with_name[MOST_TARGETS:])),
        known_commits=summaries_of(connection, repository, shas),
    )


def _read_on_targets(
    connection: sa.Connection,
    suites: Sequence[SuiteOnTarget],
    query: SeriesQuery,
    settings: RepositoryConfig,
    *,
    is_beside: bool,
) -> list[SeriesOnTarget]:
    """Read and analyse a measurement on targets; those whose newest nights do not have it are left out.

    A series beside others has its newest nights, and the changes in them.
    """
    aliases = settings.of(RENAMES).aliases
    nights_of, by_row = dict[int, Sequence[MeasuredNight]](), defaultdict[SuiteRow, list[SuiteOnTarget]](list)
    ordinals = {suite.series: find_ordinal(connection, suite.row, query.id) for suite in suites}
    for suite in suites:
        by_row[suite.row].append(suite)
    for of_row in by_row.values():
        if (ordinal := ordinals[of_row[0].series]) is not None:
            key = ordinal, query.measurement
            nights = series_on_targets(connection, of_row, [key], aliases, ANALYSED_NIGHTS)
            nights_of |= {series: of_test[key] for series, of_test in nights.items() if key in of_test}
    newest, moved = newest_points(connection, nights_of, GONE), moved_of_tests(connection, ordinals)
    read = [
        _ReadSeries(suite, nights_of[suite.series], newest[suite.series], moved[suite.series])
        for suite in suites
        if suite.series in nights_of
    ]
    return [_analysed_on(series, query, settings, is_beside=is_beside) for series in read]


def _analysed_on(
    read: _ReadSeries, query: SeriesQuery, settings: RepositoryConfig, *, is_beside: bool
) -> SeriesOnTarget:
    """Return a measurement on a target, as `_read_on_targets` does."""
    suite, all_nights, newest_nights, moved = read
    nights = in_newest_unit(all_nights)
    newest = nights[-1]
    analysis = analysed(nights, least_change(settings, suite.target, query.measurement, newest.unit))
    low, high = analysis.predicted or (None, None)
    shown = nights[-NIGHTS_BESIDE_OTHERS:] if is_beside else nights
    return SeriesOnTarget(
        lab=suite.target.lab,
        target=suite.target.target,
        suite=suite.name,
        unit=newest.unit,
        better=newest.better.value,
        exact=is_exact(newest),
        level=analysis.level,
        expected_low=low,
        expected_high=high,
        moves=[
            SeriesMove.model_validate(SeriesMove.fields_of(move))
            for move in moved
            if (move.name, move.unit) == (query.measurement, newest.unit)
            and not (is_beside and move.since_at < shown[0].committed_at)
        ],
        nights=[
            SeriesNight(sha=night.sha, committed_at=_moment(night), value=night.value) for night in reversed(shown)
        ],
        earlier_unit=len(nights) < len(all_nights),
        gone=len(newest_nights) == GONE and newest_nights[0].committed_at > newest.committed_at,
    )


def least_change(settings: RepositoryConfig, target: TargetKey, name: str, unit: str) -> float:
    """Return the least change of a measurement that counts on a target, as a share of its level."""
    results = settings.of(LAB_RESULTS)
    limits = results.change_limits(target.lab, target.target) if results else DEFAULT_LIMITS
    return limits.least(name, unit)


def _moment(night: MeasuredNight) -> datetime:
    return datetime.fromtimestamp(night.committed_at, UTC)
