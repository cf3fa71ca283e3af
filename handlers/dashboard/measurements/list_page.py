"""`/r/{owner}/{repo}/measurements`: what the tests of a target measure, each with its newest value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import sqlalchemy as sa
from markupsafe import Markup
from pydantic import BaseModel, Field, StringConstraints

from bot.core.listing import counted
from bot.core.nearest import nearest_names
from bot.core.page_paths import commit_path, measurement_path, view_path
from bot.results.measurements.texts import number_text
from bot.results.settings.measurements import DEFAULT_LIMITS
from bot.results.state import CommitSummary
from bot.results.store.measurements.lists import (
    MeasurementFilter,
    listed_metrics,
    measuring_suites,
    metric_names,
    names_of_suites,
)
from bot.results.store.measurements.read import series_on_target
from bot.results.store.tables.commits import summaries_of
from bot.results.store.tables.names import all_names
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_filters import short
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.lists.shared_filters import ListQuery
from handlers.dashboard.measurements import texts
from handlers.dashboard.measurements.moved_rows import CURSOR, MovedRow, read_moved, value_line
from handlers.dashboard.measurements.series_model import ChangeKind, MeasurementName
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import MOST_STEPS, Sentence, phrase, sentence
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, RENAMES, configured_targets

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.store.tables.points import SuiteOnTarget

NIGHTS = 30
"""The newest nights of which a row shows the values."""
ROWS = 100
MOVED = 10
"""Changes on one page."""
MOST_CSV = 5_000
MOST_NAMES = 200
"""The most names of measurements to choose from."""


CsvTableName = Literal["values", "moved"]


class MeasurementsQuery(ListQuery):
    """The filters of the list. All are optional."""

    suite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="The suite; by default the first one of the target that measures something."
    )
    measurement: MeasurementName | None = Field(default=None, description="Only measurements with this name.")
    table: CsvTableName = Field(default="values", description="What a CSV has: the newest values, or all changes.")
    older_than: Annotated[str, StringConstraints(pattern=CURSOR)] | None = Field(
        default=None, description="Only changes older than this place: `older` of a page."
    )


class MeasurementRow(BaseModel, extra="forbid"):
    """A measurement of a test, with its newest value."""

    test: str
    measurement: str
    unit: str
    better: str = Field(description="Which values are better: lower, higher, or empty if nobody said.")
    value: float
    sha: str = Field(description="The nightly commit of the value.")
    committed_at: datetime
    recent: list[float] = Field(description="The values of the newest nights, oldest first.")

    @property
    def amount(self) -> str:
        """Return the newest value with its unit."""
        return f"{number_text(self.value)} {self.unit}".rstrip()

    @property
    def line(self) -> Markup:
        """Draw the values."""
        return value_line(self.measurement, self.recent)


class UnmeasuredName(BaseModel, extra="forbid"):
    """A name or a pattern under `measurements` in app.yaml that nothing matches."""

    name: str
    nearest: str = Field(description="The most similar name that a test measures; empty if none is similar.")


class MeasurementsPage(BaseModel, extra="forbid"):
    """What the tests of a suite measure on a target, in the order in which the tests arrived."""

    answer: list[AnswerPart] = Field(default=[], description="What the list says, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    takes_results: bool = Field(description="Whether app.yaml has `results` for the repository.")
    has_results: bool = Field(description="Whether the target has numbers.")
    targets: list[str] = Field(description="The targets that have numbers, as LAB/TARGET.")
    target: str | None = Field(description="The target that is shown; by default the first one with numbers.")
    suites: list[str] = Field(description="The suites of the target that have numbers.")
    suite: str | None
    table: CsvTableName = Field(default="values", description="What a CSV has: `rows` or `moved`.")
    names: list[str] = Field(description="The names of what the tests of the suite ever measured.")
    unmeasured: list[UnmeasuredName] = Field(
        default=[], description="What `measurements` in app.yaml names, and no test of the repository ever measured."
    )
    moved: list[MovedRow] = Field(default=[], description="The changes of series on the target, newest first.")
    older: str = Field(
        default="", description="The parameter `older_than` of the next older changes; empty if none is."
    )
    total: int = Field(description="Number of measurements that match and ever had a value, on all pages.")
    pages: int
    rows: list[MeasurementRow] = Field(
        description=f"The measurements with a value in the newest {NIGHTS} nights, on this page of the list."
    )


def measurements_page(parts: DashboardParts) -> Page:
    """Return the page of what a target measures."""

    async def load(request: PageRequest) -> MeasurementsPage:
        name, settings = await settings_and_target(parts, request)
        page = await request.pages.run(parts.results.store.read, read_measurements, name, settings, request)
        return page.model_copy(
            update={"answer": measurements_answer(page, name), "next_steps": measurements_steps(page, name)}
        )

    return Page(
        path="/r/{owner}/{repo}/measurements",
        api_path="/api/v1/repos/{owner}/{repo}/measurements",
        summary="What the tests of a target measure, with the newest values",
        template="measurements.html",
        model=MeasurementsPage,
        query=MeasurementsQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
        most_csv_rows=MOST_CSV,
    )


def _table(page: MeasurementsPage) -> CsvTable:
    if page.table == "moved":
        names = [name for name in MovedRow.model_fields if name != "recent"]
        return CsvTable.of(names, page.moved)
    columns = ("test", "measurement", "value", "unit", "better", "sha", "committed_at")
    return CsvTable.of(columns, page.rows)


def read_measurements(
    connection: sa.Connection, repository: str, settings: RepositoryConfig, request: PageRequest
) -> MeasurementsPage:
    """Read a page of the list; it blocks."""
    query: MeasurementsQuery = request.query
    suites = measuring_suites(connection, repository)
    names = {suite.target.full_name for suite in suites}
    configured = configured_targets(settings)
    targets = [*(name for name in configured if name in names), *sorted(names - set(configured))]
    target = query.target or (targets[0] if targets else None)
    of_target = [suite for suite in suites if suite.target.full_name == target]
    suite = next((suite for suite in of_target if query.suite in (None, suite.name)), None)
    empty = MeasurementsPage(
        takes_results=settings.of(LAB_RESULTS) is not None,
        has_results=bool(of_target),
        targets=targets,
        target=target,
        suites=[suite.name for suite in of_target],
        suite=suite.name if suite else query.suite,
        table=query.table,
        names=[],
        unmeasured=_unmeasured(connection, suites, settings),
        total=0,
        pages=1,
        rows=[],
    )
    if suite is None:
        return empty
    chosen = MeasurementFilter((query.q or "").lower(), query.measurement or "")
    limit = min(request.most_rows(ROWS), MOST_CSV)
    offset = 0 if request.as_csv else (query.page - 1) * ROWS
    listed = listed_metrics(connection, suite.row, chosen, offset, limit)
    rows = _rows(connection, suite, [(metric.ordinal, metric.metric.name) for metric in listed.metrics], settings)
    moved, older = read_moved(
        connection, suite.target, query.older_than, settings.of(RENAMES).aliases, MOST_CSV if request.as_csv else MOVED
    )
    shas = {row.sha for row in rows} | {row.since for row in moved}
    return empty.model_copy(
        update={
            "moved": moved,
            "older": older,
            "names": metric_names(connection, suite.row)[:MOST_NAMES],
            "total": listed.total,
            "pages": max(1, -(-listed.total // ROWS)),
            "rows": rows,
            "known_commits": summaries_of(connection, repository, shas),
        }
    )


def _unmeasured(
    connection: sa.Connection, suites: Sequence[SuiteOnTarget], settings: RepositoryConfig
) -> list[UnmeasuredName]:
    results = settings.of(LAB_RESULTS)
    limits = results.all_change_limits if results else DEFAULT_LIMITS
    if not suites or not any(limits.settings):
        return []
    names = names_of_suites(connection, [suite.row for suite in suites])
    return [
        UnmeasuredName(name=name, nearest="".join(nearest_names(name, sorted(names))[:1]))
        for name in limits.unmeasured(names)[:MOST_STEPS]
    ]


def _rows(
    connection: sa.Connection, suite: SuiteOnTarget, series: Sequence[tuple[int, str]], settings: RepositoryConfig
) -> list[MeasurementRow]:
    # A measurement whose unit changed is listed once, with its newest unit.
    nights_of = series_on_target(connection, suite, list(dict.fromkeys(series)), settings.of(RENAMES).aliases, NIGHTS)
    test_names = all_names(connection, suite.row)
    return [
        MeasurementRow(
            test=test_names[ordinal],
            measurement=name,
            unit=newest.unit,
            better=newest.better.value,
            value=newest.value,
            sha=newest.sha,
            committed_at=datetime.fromtimestamp(newest.committed_at, UTC),
            recent=[night.value for night in nights if night.unit == newest.unit],
        )
        for ordinal, name in dict.fromkeys(series)
        if (nights := nights_of.get((ordinal, name)))
        for newest in (nights[-1],)
    ]


def measurements_answer(page: MeasurementsPage, repository: str) -> Sentence:
    """Say what moved last, worse changes first, and how much the tests measure."""
    if not page.targets:
        return sentence([phrase(texts.NO_MEASUREMENTS)])
    measurements = counted(page.total, "measurement")
    listed = [phrase(texts.LISTED.format(measurements=measurements, suite=page.suite, target=page.target))]
    lasting = sorted((row for row in page.moved if not row.ended_in), key=lambda row: row.kind is not ChangeKind.WORSE)
    if not lasting or page.target is None:
        return sentence(listed) if page.total else []
    move = lasting[0]
    names = texts.NAMED.format(name=move.measurement, test=answer_texts.shortened(move.test))
    return sentence(
        [
            phrase(names, measurement_path(repository, move.test, move.measurement, page.target)),
            phrase(texts.MOVED.format(change=move.text.removeprefix(move.measurement).strip())),
            phrase(short(move.since), commit_path(repository, move.since)),
        ],
        listed,
    )


def measurements_steps(page: MeasurementsPage, repository: str) -> list[Sentence]:
    """Say which names of app.yaml to correct, and where to look further."""
    corrections = [
        [phrase(answer_texts.MAINTAINER), phrase(texts.unmeasured(unmeasured.name, unmeasured.nearest))]
        for unmeasured in page.unmeasured
    ]
    if not page.rows:
        return corrections
    href = view_path(
        repository,
        "measurements/map",
        target=page.target,
        suite=page.suite,
        measurement=page.rows[0].measurement,
    )
    return [*corrections, [phrase(answer_texts.MAINTAINER), phrase(texts.SEE_MAP, href)]]
