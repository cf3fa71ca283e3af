"""`/r/{owner}/{repo}/tests?id=…`: one test on all targets, from commit to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import compress, groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, FLAKY, SEEN
from nightjar_formats.model import BAD, Detail, SeenTest, TargetKey

from bot.core.aliases import Aliases
from bot.core.page_paths import history_path
from bot.core.patterns import Pattern
from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import OUTCOME_LETTERS, WINDOW, Flakiness, flakiness_of_outcomes
from bot.results.compare.owners import OwnersOf
from bot.results.compare.paired import UNPAIRED, PairedTargets, all_pairs
from bot.results.compare.quarantine import QuarantineOf
from bot.results.compare.target_health import STALE_SECONDS, is_stale
from bot.results.report.findings import NewFailure
from bot.results.report.reproduce import command
from bot.results.report.texts import how_flaky
from bot.results.store.failures.contexts import TargetContextQuery, contexts_on_targets
from bot.results.store.grid.rows import GridLine, GridRange, lines_of, newest_commits
from bot.results.store.grid.test_runs import (
    TestAt,
    TestRun,
    last_run_before,
    lines_with_test,
    runs_of_test,
    test_details,
    test_durations,
)
from bot.results.store.history.flakiness import flakiness_at_newest_runs, flakiness_of_tests
from bot.results.store.history.history import Segment, TracedTest, history_on_targets
from bot.results.store.history.series_names import END
from bot.results.store.lists.run_lists import newest_arrivals
from bot.results.store.tables.commits import summaries_of
from bot.results.store.tables.points import Position
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.history.answer import with_first_lines
from handlers.dashboard.history.issue_draft import IssueDraft
from handlers.dashboard.history.model import (
    MOST_TIMED,
    HistoryCommit,
    HistoryFailing,
    HistoryFlakiness,
    HistoryOnTarget,
    HistoryPage,
    HistoryQuarantine,
    HistoryQuery,
    HistorySource,
)
from handlers.dashboard.measurements.numbers import TestNumber, numbers_of_test
from handlers.dashboard.searches.links import searches_of
from handlers.dashboard.shared.cells import no_cell, test_cell
from handlers.dashboard.shared.content import content_of_results_and_records
from handlers.dashboard.shared.settings import quarantine_of, settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, RENAMES, configured_targets
from handlers.results.owners import owners_in_force

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.settings.results import Lab

RUNS = 30
"""Commits that the page shows for each target, the newest ones."""
MOST_LINES = 60
"""The most pairs of a target and a suite that a page shows; the page counts the rest."""
MOST_PROOFS = 10
LONGEST_MESSAGE = 1000


def history_page(parts: DashboardParts) -> Page:
    """Return the page about one test."""

    async def load(request: PageRequest) -> HistoryPage:
        name, settings = await settings_and_target(parts, request)
        links = HistoryAddresses(f"{parts.github}/{name}", parts.public_url)
        owners = await owners_in_force(parts.records, name, settings)
        page: HistoryPage = await request.pages.run(
            parts.results.store.read,
            read_test,
            name,
            SettingsOfTest.of(settings, parts.moment()),
            request.query,
            links,
            owners,
            MOST_TIMED if request.is_page else MOST_LINES,
        )
        tests = {(f"{shown.lab}/{shown.target}", shown.suite, page.id): shown for shown in page.targets}
        for test, search in (await searches_of(parts.records, name, tests)).items():
            tests[test].search = search
        return page

    return Page(
        path="/r/{owner}/{repo}/tests",
        api_path="/api/v1/repos/{owner}/{repo}/tests",
        summary="One test on all targets: its outcomes by commit, since when it has failed, and how flaky it is",
        template="history.html",
        model=HistoryPage,
        query=HistoryQuery,
        load=load,
        content=content_of_results_and_records(parts),
        table=_table,
        most_csv_rows=MOST_LINES * RUNS,
    )


def _table(page: HistoryPage) -> CsvTable:
    rows = (
        (
            f"{history.lab}/{history.target}",
            history.suite,
            commit.sha,
            commit.committed_at,
            commit.name,
            commit.cell.state,
            commit.seconds,
        )
        for history in page.targets
        for commit in history.runs
    )
    return CsvTable(("target", "suite", "sha", "committed_at", "test", "state", "seconds"), rows)


@dataclass(frozen=True, slots=True)
class HistoryAddresses:
    """Addresses for links: the repository's page on GitHub, and that of our own pages, empty if unknown."""

    page: str
    public_url: str


@dataclass(frozen=True, slots=True)
class SettingsOfTest:
    """What app.yaml says that the page of a test needs at a moment, in seconds since 1970.

    `targets` are all targets of the repository, and `pairs` has those with a simulator or a device, as LAB/TARGET.
    """

    moment: float
    aliases: Aliases
    quarantine: QuarantineOf
    labs: Mapping[str, Lab]
    targets: frozenset[str]
    pairs: Mapping[str, PairedTargets]

    @classmethod
    def of(cls, settings: RepositoryConfig, moment: float) -> SettingsOfTest:
        """Read the settings of a repository."""
        results = settings.of(LAB_RESULTS)
        labs = results.labs if results is not None else {}
        return cls(
            moment=moment,
            aliases=settings.of(RENAMES).aliases,
            quarantine=quarantine_of(settings, moment),
            labs=labs,
            targets=frozenset(configured_targets(settings)),
            pairs=all_pairs(results),
        )


def read_test(
    connection: sa.Connection,
    repository: str,
    settings: SettingsOfTest,
    query: HistoryQuery,
    links: HistoryAddresses,
    owners: OwnersOf,
    most_timed: int,
) -> HistoryPage:
    """Read everything that is known about a test; it blocks. Raises LookupError if no suite has the test.

    Of each suite, `most_timed` targets have durations: first those on which the test fails.
    """
    all_lines = lines_of(connection, GridRange(repository))
    chosen_lines = [line for line in all_lines if query.target in (None, line.target.full_name)]
    lines = lines_with_test(connection, chosen_lines, query.id)
    if not lines:
        raise LookupError(query.id)
    page_lines = lines[:MOST_LINES]
    nightly = newest_commits(connection, all_lines, GridRange(repository, limit=RUNS))[:RUNS]
    histories = []
    for _, suite_lines in groupby(sorted(page_lines, key=lambda line: line.name), key=lambda line: line.name):
        histories += _read_on_targets(connection, settings, list(suite_lines), nightly, query.id, links, most_timed)
    order = {(line.target, line.name): index for index, line in enumerate(page_lines)}
    histories.sort(
        key=lambda history: (
            history.failing is None,
            order[TargetKey(repository, history.lab, history.target), history.suite],
        )
    )
    _mark_stale(connection, repository, histories, settings.moment)
    newest_name = settings.aliases.canonical(query.id)
    page = HistoryPage(
        id=query.id,
        owners=list(owners(query.id)),
        renamed_to=newest_name if newest_name != query.id else "",
        targets=histories,
        more=len(lines) - len(page_lines),
    )
    shas = {
        sha
        for listed in histories
        for sha in (
            listed.first_seen,
            *((listed.failing.since, listed.failing.last_passed_at) if listed.failing else ()),
            *(listed.flakiness.proofs if listed.flakiness else ()),
        )
        if sha
    }
    summaries = summaries_of(connection, repository, shas)
    return with_first_lines(page.model_copy(update={"known_commits": summaries}), repository, links.page)


def _mark_stale(
    connection: sa.Connection, repository: str, histories: Sequence[HistoryOnTarget], moment: float
) -> None:
    """Mark what is known of targets whose newest nightly run arrived too long before a moment."""
    # A run arrives after its commit was made, so mostly the commits on the page say that a target is on time.
    recent = {
        (history.lab, history.target)
        for history in histories
        for commit in history.runs
        if commit.cell.run_id and moment - commit.committed_at.timestamp() <= STALE_SECONDS
    }
    others = [history for history in histories if (history.lab, history.target) not in recent]
    if not others:
        return
    arrivals = newest_arrivals(connection, repository, on_nightly=True)
    for history in others:
        history.stale = is_stale(arrivals.get(TargetKey(repository, history.lab, history.target)), moment)


def _read_on_targets(
    connection: sa.Connection,
    settings: SettingsOfTest,
    lines: Sequence[GridLine],
    nightly: Sequence[Position],
    test: str,
    links: HistoryAddresses,
    most_timed: int,
) -> list[HistoryOnTarget]:
    """Return the test on each target of one suite. Each statement reads what it reads for all of the targets.

    `nightly` are the newest commits of the nightly branch, newest first.
    """
    aliases = settings.aliases
    traced = history_on_targets(connection, lines, test, aliases)
    repository, limit = lines[0].target.repository, max(RUNS, WINDOW)
    grid_range = GridRange(repository, limit=limit, aliases=aliases, quarantine=settings.quarantine)
    runs = runs_of_test(connection, lines, test, traced, grid_range, RUNS)
    test_lines = []
    for line in lines:
        if (traced_test := traced.get(line.series)) is not None and (
            last := _last_run_with_test(connection, line, runs[line.series], traced_test)
        ):
            test_lines.append(TestOnLine(line, runs[line.series], traced_test, last))
    timed = sorted(test_lines, key=lambda test_line: not test_line.is_failing)[:most_timed]
    seconds = test_durations(
        connection,
        lines[0].row,
        {(test_line.line.series, run.sha): run for test_line in timed for run in test_line.runs[:RUNS]},
    )
    flaky = _read_flakiness(
        connection, [test_line for test_line in test_lines if test_line.flaky_commits], test, aliases
    )
    failing = _read_failures(
        connection, [test_line for test_line in test_lines if test_line.is_failing], test, settings
    )
    numbers = numbers_of_test(
        connection, lines[0].row, test, {test_line.line.series: test_line.newest_stored for test_line in test_lines}
    )
    return [
        _describe_on_target(
            settings,
            test_line,
            nightly,
            seconds,
            test,
            links,
            flaky.get(series),
            failing.get(series),
            numbers.get(series, []),
        )
        for test_line in test_lines
        for series in (test_line.line.series,)
    ]


@dataclass(frozen=True, slots=True)
class TestOnLine:
    """A test in one suite on one target.

    `runs` are its newest runs, newest first; `traced` is its whole history; `last` is its last run.
    """

    line: GridLine
    runs: Sequence[TestRun]
    traced: TracedTest
    last: Segment

    @property
    def flaky_commits(self) -> list[str]:
        """Return the commits at which it both passed and failed, newest first."""
        return [run.sha for run in self.runs if run.status >= FLAKY and run.linked]

    @property
    def newest_window(self) -> Sequence[TestRun]:
        """Return its newest nightly runs, oldest first, at most WINDOW of them."""
        return [run for run in self.runs if run.linked][:WINDOW][::-1]

    @property
    def newest_stored(self) -> Sequence[int]:
        """Return the numbers of the stored runs of its newest nightly commit; none if it is not among `runs`."""
        return next((run.stored for run in self.runs if run.linked and run.status != ABSENT), ())

    @property
    def is_failing(self) -> bool:
        """Whether it failed in its last run, other than by flakiness."""
        return self.last.status in BAD and not self.last.flaky

    @property
    def is_removed(self) -> bool:
        """Whether the newest complete nightly run does not have it."""
        return next((run.status == ABSENT for run in self.runs if run.linked), False)

    @property
    def first(self) -> Position:
        """Return the position of the first commit at which the test existed."""
        statuses = self.traced.statuses
        absent = len(statuses) - len(statuses.lstrip(bytes([ABSENT])))
        return self.traced.begins[absent] if absent < len(statuses) else (self.last.committed_at, self.last.sha)

    @property
    def names(self) -> list[str]:
        """Return the names that the test has had, newest first."""
        traced = self.traced
        return list(dict.fromkeys(compress(reversed(traced.names), reversed(traced.statuses))))


def _last_run_with_test(
    connection: sa.Connection, line: GridLine, runs: Sequence[TestRun], traced: TracedTest
) -> Segment | None:
    """Return the last usable nightly run that has the test; None if there is none.

    A test that was removed long ago is in none of the newest `runs`, but its segments still lead to its last run.
    """
    for run in runs:
        if run.linked and run.status != ABSENT:
            seen = SEEN[run.status]
            return Segment(run.sha, run.committed_at, seen.status, seen.flaky, run.name)
    until = END
    for segment in reversed(traced.segments):
        if segment.status is not None and (position := last_run_before(connection, line.series, until)):
            return segment._replace(committed_at=position[0], sha=position[1])
        until = (segment.committed_at, segment.sha)
    return None


def _describe_on_target(
    settings: SettingsOfTest,
    test_line: TestOnLine,
    nightly: Sequence[Position],
    seconds: Mapping[tuple[int, str], float],
    test: str,
    links: HistoryAddresses,
    flaky: HistoryFlakiness | None,
    failing: FailingOnTarget | None,
    numbers: list[TestNumber],
) -> HistoryOnTarget:
    line, last, target = test_line.line, test_line.last, test_line.line.target.full_name
    (first_at, first_sha), reproduce = test_line.first, _reproduce(settings, line, last, test)
    summary = failing.summary if failing else None
    return HistoryOnTarget(
        lab=line.target.lab,
        target=line.target.target,
        suite=line.name,
        runs=list(
            _list_commits(test_line, nightly, seconds, test, settings.moment, expected=target in settings.targets)
        ),
        is_removed=test_line.is_removed,
        configured=target in settings.targets,
        failing=summary,
        flakiness=flaky,
        quarantine=_quarantine(settings.quarantine, line, last),
        numbers=numbers,
        first_seen=first_sha,
        first_seen_at=datetime.fromtimestamp(first_at, UTC),
        renamed_from=[name for name in test_line.names if name != test],
        reproduce=reproduce,
        source=_source(links, last, failing.failure if failing else None),
        issue_url=_issue_url(links, line, target, test, summary, flaky, reproduce) if summary or flaky else "",
    )


def _list_commits(
    test_line: TestOnLine,
    nightly: Sequence[Position],
    seconds: Mapping[tuple[int, str], float],
    test: str,
    moment: float,
    *,
    expected: bool,
) -> Iterator[HistoryCommit]:
    """Yield the newest commits: those with a run of the test, and those that only other targets have tested."""
    runs = {run.position: run for run in test_line.runs[:RUNS]}
    oldest, series = min(runs, default=END), test_line.line.series
    later = [position for position in nightly if position > oldest]
    for committed_at, sha in sorted({*runs, *later}, reverse=True)[:RUNS]:
        run = runs.get((committed_at, sha))
        yield HistoryCommit(
            sha,
            datetime.fromtimestamp(committed_at, UTC),
            test_cell(run.run_id, run.infra, run.previous, run.status, (0, 0), complete=run.complete)
            if run
            else no_cell(test_line.line, committed_at, moment, expected=expected),
            run.name if run else test,
            seconds.get((series, sha)),
        )


@dataclass(frozen=True, slots=True)
class FailingOnTarget:
    """How a test fails on a target: the failure, and what the page says about it."""

    failure: NewFailure
    summary: HistoryFailing


def _read_failures(
    connection: sa.Connection, test_lines: Sequence[TestOnLine], test: str, settings: SettingsOfTest
) -> dict[int, FailingOnTarget]:
    """Return how a test fails on the targets of one suite on which it does, by the numbers of their series."""
    details = test_details(
        connection,
        {
            test_line.line.series: TestAt(test_line.line, test_line.last.sha, test_line.last.name)
            for test_line in test_lines
        },
    )
    queries = [
        TargetContextQuery(
            test_line.line,
            test_line.last.sha,
            _baseline(connection, test_line),
            [test],
            settings.pairs.get(test_line.line.target.full_name, UNPAIRED),
        )
        for test_line in test_lines
    ]
    contexts = contexts_on_targets(connection, queries, settings.aliases)
    failing = {}
    for test_line in test_lines:
        series, last = test_line.line.series, test_line.last
        assert last.status is not None
        detail = details.get(series, Detail())
        outcome = SeenTest(last.status, trouble=detail.trouble, message=detail.message)
        context = contexts[series].get(test, FailureContext())
        summary = HistoryFailing(
            since=context.since or last.sha,
            last_passed_at=context.good,
            older=context.older,
            failed_before=context.failed,
            runs_before=context.runs,
            also_on=list(context.also_on),
            passes_on_simulators=list(context.passes_on_simulators),
            passes_on_device=context.passes_on_device,
            message=outcome.message[:LONGEST_MESSAGE],
        )
        failing[series] = FailingOnTarget(
            NewFailure(test_line.line.name, last.name, outcome, {last.name: detail}), summary
        )
    return failing


def _baseline(connection: sa.Connection, test_line: TestOnLine) -> str:
    """Return the commit of the series before the last one that has the test, empty for none."""
    position = test_line.last.committed_at, test_line.last.sha
    for run in test_line.runs:
        if run.linked and (run.committed_at, run.sha) < position:
            return run.sha
    earlier = last_run_before(connection, test_line.line.series, position)
    return earlier[1] if earlier else ""


def _read_flakiness(
    connection: sa.Connection, test_lines: Sequence[TestOnLine], test: str, aliases: Aliases
) -> dict[int, HistoryFlakiness]:
    """Return how flaky a test is on the targets on which it was, by the numbers of their series."""
    # Mostly, the runs that the page has anyway fill the window.
    windows = {test_line.line.series: test_line.newest_window for test_line in test_lines}
    shorter = [test_line.line for test_line in test_lines if len(windows[test_line.line.series]) < WINDOW]
    newest = flakiness_at_newest_runs(connection, shorter, test, aliases)
    newest |= {
        series: (
            window[-1].sha,
            flakiness_of_outcomes("".join(OUTCOME_LETTERS[run.status] for run in window)),
        )
        for series, window in windows.items()
        if len(window) == WINDOW
    }
    described = {}
    for test_line in test_lines:
        line, last = test_line.line, test_line.last
        sha, flakiness = newest.get(line.series, ("", Flakiness()))
        if sha != last.sha and last.status is not None:  # the newest run no longer has the test
            outcomes = {test: SeenTest(last.status, last.flaky)}
            flakiness_by_test = flakiness_of_tests(connection, line.target, line.name, last.sha, outcomes, aliases)
            flakiness = flakiness_by_test.get(test, Flakiness())
        if flakiness.proved and last.status is not None:
            described[line.series] = HistoryFlakiness(
                runs=flakiness.runs,
                failed=flakiness.failed,
                words=how_flaky(flakiness),
                proofs=test_line.flaky_commits[:MOST_PROOFS],
            )
    return described


def _quarantine(quarantine_of_target: QuarantineOf, line: GridLine, last: Segment) -> HistoryQuarantine | None:
    quarantine = quarantine_of_target(line.target).of(last.name)
    if quarantine is None:
        return None
    return HistoryQuarantine(
        owner=quarantine.owner, reason=quarantine.reason, issue=quarantine.issue, until=quarantine.until
    )


def _reproduce(settings: SettingsOfTest, line: GridLine, last: Segment, test: str) -> str:
    lab = settings.labs.get(line.target.lab)
    template = lab.reproduce_of(line.name) if lab else ""
    if not template or last.status is None:
        return ""
    failure = NewFailure(line.name, test, SeenTest(last.status), {})
    return command(template, failure, line.target.target, last.sha)


def _source(links: HistoryAddresses, last: Segment, failure: NewFailure | None) -> HistorySource | None:
    path, line_number = source_place(failure) if failure else (file_in_id(last.name), None)
    if not path:
        return None
    return HistorySource(path=path, line=line_number, url=source_url(links.page, last.sha, path, line_number))


def _issue_url(
    links: HistoryAddresses,
    line: GridLine,
    target: str,
    test: str,
    failing: HistoryFailing | None,
    flaky: HistoryFlakiness | None,
    reproduce: str,
) -> str:
    return IssueDraft(
        links.page,
        test,
        line.name,
        target,
        flaky=flaky.words if flaky else "",
        proofs=flaky.proofs if flaky else (),
        since=failing.since if failing else "",
        good=failing.last_passed_at if failing else "",
        message=failing.message if failing else "",
        reproduce=reproduce,
        history=f"{links.public_url}{history_path(line.target.repository, test, target)}" if links.public_url else "",
    ).address()


LONGEST_PATH = 300
_FILE = Pattern(r"[^\x00-\x1f\x7f\\]*[^\x00-\x1f\x7f\\/]\.[a-z][A-Za-z0-9+-]{0,9}")
"""A path whose last part has a suffix in lower case: a file, not a class in the name of a test."""
STEPS = ("", ".", "..")
"""Parts that no path inside a repository has: `..` would lead a link out of the repository."""


def source_place(failure: NewFailure) -> tuple[str, int | None]:
    """Return the file and the line of a failed test; the line is None if no report names it.

    The path is empty if it is unknown or not safe (`is_safe_path`).
    """
    path = failure.path
    return (path, failure.line) if is_safe_path(path) else ("", None)


def file_in_id(test: str) -> str:
    """Return the file at the start of a test's ID, as pytest writes it; empty if there is none."""
    path, separator, _ = test.partition("::")
    return path if separator and is_safe_path(path) else ""


@lru_cache(256)
def is_safe_path(path: str) -> bool:
    """Say whether a text can be linked as a file of the repository; labs send these texts."""
    if len(path) > LONGEST_PATH or any(step in STEPS for step in path.split("/")):
        return False
    return _FILE.fullmatch(path) is not None


def source_url(page: str, sha: str, path: str, line: int | None) -> str:
    """Return the address of a file at a commit; `page` is that of the repository on GitHub."""
    return f"{page}/blob/{sha}/{quote(path, errors='replace')}{f'#L{line}' if line else ''}"
