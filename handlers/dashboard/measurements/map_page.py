"""`/r/{owner}/{repo}/measurements/map`: one measurement of all operators and flows of a suite, at two commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import sqlalchemy as sa
from nightjar_formats.items import first_of
from pydantic import BaseModel, Field, StringConstraints

from bot.core.listing import counted
from bot.core.page_paths import measurement_path
from bot.results.measurements.texts import number_text
from bot.results.state import CommitSummary
from bot.results.store.measurements.lists import (
    measuring_suites,
    metric_names,
    metrics_of_tests,
    operator_order,
    values_at_runs,
)
from bot.results.store.tables.commits import summaries_of
from bot.results.store.tables.names import all_names
from bot.results.store.tables.operators import operator_and_flow
from bot.results.store.tables.points import LinkedPoint, newest_points
from bot.results.store.tables.runs import numbers_of, stored_runs
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_filters import short
from bot.web.page_routes import Page, PageRequest
from bot.web.problems import Problem
from handlers.dashboard.measurements import texts
from handlers.dashboard.measurements.list_page import MOST_NAMES
from handlers.dashboard.measurements.series_model import ChangeKind, MeasurementName, kind_of
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import Sentence, phrase, sentence
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import TARGET_PATTERN, settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, configured_targets

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.store.measurements.lists import TestMetric
    from bot.results.store.tables.points import SuiteOnTarget

NIGHTS = 60
"""The newest nightly commits that can be compared."""
MOST_CELLS = 600
"""The most cells on a page: a person reads no more, and a thousand take as long to make as all other pages.

A page ends before an operator that it has no room for; the cells of an operator with more are cut.
"""
MOST_CSV_TESTS = 1_000
MOST_FLOWS = 24
MOST_TARGETS = 8
"""The most targets that a map shows side by side."""
PREFERRED = ("delegated_nodes", "snr", "max_abs_error")
"""The map opens with the first of these that the suite measures."""

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$", to_lower=True, strip_whitespace=True)]


class MapQuery(BaseModel, extra="forbid"):
    """The suite and the measurement to show, and the commits to compare. All are optional."""

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="The target, as LAB/TARGET; by default the first one with numbers."
    )
    suite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="The suite; by default the first one of the target that measures something."
    )
    measurement: MeasurementName | None = Field(
        default=None, description="The measurement; by default delegated_nodes, snr or max_abs_error."
    )
    base: Commit | None = Field(
        default=None, description="The earlier nightly commit, 7 digits at least; by default the one before `head`."
    )
    head: Commit | None = Field(
        default=None, description="The later nightly commit, 7 digits at least; by default the newest one."
    )
    all_targets: bool = Field(
        default=False, description="Whether to show the suite on all its targets, with columns for each target."
    )
    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests whose ID contains this text, ignoring case."
    )
    page: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="Which page of the map.")


class MapCell(BaseModel, extra="forbid"):
    """The measurement of a test at both commits; null where it has none."""

    test: str
    target: str
    flow: str
    base: float | None
    head: float | None
    unit: str
    kind: ChangeKind | None = Field(description="What the difference means; null if there is none.")

    def words(self, common_unit: str) -> str:
        """Return the value, and the earlier one if it differs, with their unit if it is not the one of all cells."""
        unit = "" if self.unit == common_unit else f" {self.unit}"
        if self.kind is None:
            return number_text(self.head if self.head is not None else 0.0) + unit
        values = (number_text(value) if value is not None else texts.ABSENT for value in (self.base, self.head))
        return texts.DIFFERS.format(values=" -> ".join(values)) + unit


class MapColumn(NamedTuple):
    """A column: a target as LAB/TARGET, and a flow."""

    target: str
    flow: str


class MapRow(BaseModel, extra="forbid"):
    """An operator, and its cells."""

    operator: str
    cells: list[MapCell]

    @property
    def by_column(self) -> Mapping[MapColumn, MapCell]:
        """Return the cells by column."""
        return {MapColumn(cell.target, cell.flow): cell for cell in self.cells}


class MapPage(BaseModel, extra="forbid"):
    """One measurement of the tests of a suite on a target, or on all, as operators and flows."""

    answer: list[AnswerPart] = Field(default=[], description="How much differs between the commits, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    takes_results: bool = Field(description="Whether app.yaml has `results` for the repository.")
    targets: list[str] = Field(description="The targets that have numbers, as LAB/TARGET.")
    target: str | None
    suites: list[str] = Field(default=[], description="The suites of the target that have numbers.")
    suite: str | None = None
    names: list[str] = Field(default=[], description="The names of what the tests of the suite ever measured.")
    measurement: str | None = None
    unit: str = Field(default="", description="The unit of all cells; empty if they have none, or several.")
    commits: list[str] = Field(default=[], description="The nightly commits to choose from, newest first.")
    base: str | None = None
    head: str | None = None
    shown_targets: list[str] = Field(default=[], description="The targets of the columns, as LAB/TARGET.")
    flows: list[str] = Field(default=[], description="The flows of the columns.")
    columns: list[MapColumn] = Field(default=[], description="The columns, each with its target and its flow.")
    pages: int = Field(default=1, description="Pages of the map, each with some of the tests.")
    rows: list[MapRow] = Field(default=[], description="The operators on this page of the map.")
    is_cut: bool = Field(default=False, description="Whether there are more flows or targets, which are left out.")

    @property
    def changed(self) -> int:
        """Count the cells that differ."""
        return sum(cell.kind is not None for row in self.rows for cell in row.cells)


def map_page(parts: DashboardParts) -> Page:
    """Return the page with the map."""

    async def load(request: PageRequest) -> MapPage:
        name, settings = await settings_and_target(parts, request)
        query, most_tests = request.query, MOST_CSV_TESTS if request.as_csv else None
        page = await request.pages.run(parts.results.store.read, read_map, name, settings, query, most_tests)
        steps = map_steps(page, f"{parts.github}/{name}")
        return page.model_copy(update={"answer": map_answer(page, name), "next_steps": steps})

    return Page(
        path="/r/{owner}/{repo}/measurements/map",
        api_path="/api/v1/repos/{owner}/{repo}/measurements/map",
        summary="A measurement of all operators and flows of a suite, at two commits",
        template="measurement_map.html",
        model=MapPage,
        query=MapQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
        most_csv_rows=MOST_CSV_TESTS,
    )


def _table(page: MapPage) -> CsvTable:
    rows = (
        (
            *(row.operator, cell.flow, cell.test, page.measurement or ""),
            *(cell.base, cell.head, cell.unit, cell.kind, cell.target),
        )
        for row in page.rows
        for cell in row.cells
    )
    return CsvTable(("operator", "flow", "test", "measurement", "base", "head", "unit", "kind", "target"), rows)


def read_map(
    connection: sa.Connection,
    repository: str,
    settings: RepositoryConfig,
    query: MapQuery,
    most_tests: int | None = None,
) -> MapPage:
    """Read a page of a map, or its first tests; it blocks.

    Tests are read under their present names: those that were renamed in between have no earlier value. Raises `Problem`
    400 for a commit that is not among the newest `NIGHTS`.
    """
    suites = measuring_suites(connection, repository)
    names = {suite.target.full_name for suite in suites}
    targets = [name for name in configured_targets(settings) if name in names]
    targets += sorted(names - set(targets))
    target = query.target or (targets[0] if targets else None)
    of_target = [suite for suite in suites if suite.target.full_name == target]
    page = MapPage(takes_results=settings.of(LAB_RESULTS) is not None, targets=targets, target=target)
    suite = next((suite for suite in of_target if query.suite in (None, suite.name)), None)
    if suite is None:
        return page
    metrics = metric_names(connection, suite.row)
    measurement = query.measurement or next((name for name in PREFERRED if name in metrics), metrics[0])
    nights = newest_points(connection, [suite.series], NIGHTS).get(suite.series, [])
    base, head = _chosen_nights(nights, query)
    beside = [other for other in suites if other.row == suite.row and other != suite] if query.all_targets else []
    shown = [suite, *beside][:MOST_TARGETS]
    of_page = MOST_CELLS // len(shown)
    sides = [night for night in (base, head) if night]
    tests = all_names(connection, suite.row)
    order = operator_order(connection, suite.row, measurement).with_text(tests, (query.q or "").lower())
    pages = order.pages(of_page)
    start, end = (0, most_tests) if most_tests else pages[query.page - 1] if query.page <= len(pages) else (0, 0)
    most = most_tests or of_page
    metrics_of_page = metrics_of_tests(connection, suite.row, measurement, order.tests[start : min(end, start + most)])
    values_of = _values_by_target(connection, shown, tests, metrics_of_page, sides)
    rows = _rows(tests, metrics_of_page, values_of, base, head)
    present = {column for row in rows for column in row.by_column}
    flows = list(dict.fromkeys(cell.flow for row in rows for cell in row.cells))
    columns = [MapColumn(target, flow) for target in values_of for flow in flows if (target, flow) in present]
    listed_columns = set(columns[:MOST_FLOWS])
    rows = [
        MapRow(
            operator=row.operator, cells=[cell for column, cell in row.by_column.items() if column in listed_columns]
        )
        for row in rows
        if listed_columns & row.by_column.keys()
    ]
    units = {cell.unit for row in rows for cell in row.cells}
    return page.model_copy(
        update={
            "suites": [suite.name for suite in of_target],
            "suite": suite.name,
            "names": metrics[:MOST_NAMES],
            "measurement": measurement,
            "unit": units.pop() if len(units) == 1 else "",
            "commits": [night.sha for night in reversed(nights)],
            "base": base.sha if base else None,
            "head": head.sha if head else None,
            "shown_targets": list(values_of),
            "flows": list(dict.fromkeys(column.flow for column in columns[:MOST_FLOWS])),
            "columns": columns[:MOST_FLOWS],
            "pages": max(1, len(pages)),
            "rows": rows,
            "is_cut": end - start > most
            or len(columns) > MOST_FLOWS
            or len(values_of) < len(shown)
            or len(beside) >= MOST_TARGETS,
            "known_commits": summaries_of(connection, repository, {night.sha for night in nights}),
        }
    )


def _chosen_nights(nights: Sequence[LinkedPoint], query: MapQuery) -> tuple[LinkedPoint | None, LinkedPoint | None]:
    """Return the earlier and the later night, of nights that are given oldest first; None if there is none."""
    head = _night(nights, query.head) if query.head else nights[-1] if nights else None
    if query.base:
        return _night(nights, query.base), head
    older = [night for night in nights if head and (night.committed_at, night.sha) < (head.committed_at, head.sha)]
    return older[-1] if older else None, head


def _night(nights: Sequence[LinkedPoint], digits: str) -> LinkedPoint:
    for night in nights:
        if night.sha.startswith(digits):
            return night
    newest = ", ".join(short(night.sha) for night in nights[:-6:-1])
    raise Problem(400, texts.NO_COMMIT.format(sha=digits, nights=NIGHTS, newest=newest or "none"))


def _values_by_target(
    connection: sa.Connection,
    suites: Iterable[SuiteOnTarget],
    tests: Sequence[str],
    metrics: Sequence[TestMetric],
    nights: Sequence[LinkedPoint],
) -> dict[str, dict[str, dict[TestMetric, float]]]:
    """Return the values by target and commit, until MOST_FLOWS columns have one: those of further targets are cut."""
    flow_of = {metric: operator_and_flow(tests[metric.ordinal])[1] for metric in metrics}
    values_of: dict[str, dict[str, dict[TestMetric, float]]] = {}
    columns = 0
    for suite in suites:
        if columns >= MOST_FLOWS:
            break
        values = values_of[suite.target.full_name] = _values(connection, suite, metrics, nights)
        columns += len({flow_of[metric] for of_night in values.values() for metric in of_night})
    return values_of


def _values(
    connection: sa.Connection, suite: SuiteOnTarget, metrics: Iterable[TestMetric], nights: Iterable[LinkedPoint]
) -> dict[str, dict[TestMetric, float]]:
    """Return the values of measurements at nights, by commit."""
    places = {night.sha: suite.place_at(night.sha) for night in nights}
    runs = numbers_of(stored_runs(connection, places.values()))
    return {sha: values_at_runs(connection, suite, metrics, runs.get(place, ())) for sha, place in places.items()}


def _rows(
    names: Sequence[str],
    metrics: Iterable[TestMetric],
    values_of: Mapping[str, Mapping[str, Mapping[TestMetric, float]]],
    base: LinkedPoint | None,
    head: LinkedPoint | None,
) -> list[MapRow]:
    """Return the rows of tests that have a value at one of two commits, in the order of their names.

    `values_of` has the values by target and commit.
    """
    cells: dict[str, list[MapCell]] = {}
    for metric in metrics:
        operator, flow = operator_and_flow(names[metric.ordinal])
        for target, values in values_of.items():
            base_value, head_value = (values[night.sha].get(metric) if night else None for night in (base, head))
            if base_value is None and head_value is None:
                continue
            cells.setdefault(operator, []).append(
                MapCell(
                    test=names[metric.ordinal],
                    target=target,
                    flow=flow,
                    base=base_value,
                    head=head_value,
                    unit=metric.metric.unit,
                    kind=_kind(metric, base_value, head_value) if base is not None else None,
                )
            )
    return [MapRow(operator=operator, cells=cells[operator]) for operator in sorted(cells)]


def _kind(metric: TestMetric, base_value: float | None, head_value: float | None) -> ChangeKind | None:
    if base_value == head_value:
        return None
    if base_value is None or head_value is None:
        return ChangeKind.NEITHER
    return kind_of(metric.metric.better, is_rise=head_value > base_value)


def map_answer(page: MapPage, repository: str) -> Sentence:
    """Say in how many cells the two commits differ."""
    of_page = texts.ON_THIS_PAGE if page.pages > 1 else ""
    if not page.rows or page.head is None or page.target is None:
        return sentence([phrase(texts.NOTHING_MAPPED + of_page if page.targets else texts.NO_MEASUREMENTS)])
    operators = counted(len(page.rows), "operator")
    place = page.target if len(page.shown_targets) < 2 else counted(len(page.shown_targets), "target")
    start = texts.MAPPED.format(name=page.measurement, operators=operators, target=place) + of_page
    if page.base is None:
        return sentence([phrase(start)])
    ends = {"base": short(page.base), "head": short(page.head)}
    if not (changed := page.changed):
        return sentence([phrase(start + texts.NONE_DIFFERS.format(**ends))])
    first = first_of(cell for row in page.rows for cell in row.cells if cell.kind is not None)
    href = measurement_path(repository, first.test, page.measurement or "", first.target)
    return sentence(
        [phrase(start + texts.SOME_DIFFER.format(count=counted(changed, "value differs", "values differ"), **ends))],
        [phrase(texts.FIRST), phrase(answer_texts.shortened(first.test), href)],
    )


def map_steps(page: MapPage, github: str) -> list[Sentence]:
    """Say what a maintainer can do about a difference."""
    if not page.changed:
        return []
    href = f"{github}/compare/{page.base}...{page.head}"
    return [[phrase(answer_texts.MAINTAINER), phrase(answer_texts.READ_COMMITS, href)]]
