"""`/r/{owner}/{repo}/tests?id=…`: one test on all targets, from commit to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from nightjar_formats.columns import is_flaky, status_of
from nightjar_formats.items import first_of
from nightjar_formats.model import BAD, Detail, SeenTest, TargetKey

from bot.core.page_paths import history_path
from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import WINDOW, Flakiness
from bot.results.report.findings import NewFailure
from bot.results.report.reproduce import command
from bot.results.report.texts import how_flaky
from bot.results.store.contexts import AskedOnTarget
from bot.results.store.grid_rows import GridLine, GridRange, on_target
from bot.results.store.renamed import END
from bot.results.store.test_runs import TestAt, TestRun
from bot.results.store.trace import Position, Segment, TestHistory
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.cells import no_cell, test_cell
from handlers.dashboard.content import content_of_results
from handlers.dashboard.history_model import (
    HistoryCommit,
    HistoryFailing,
    HistoryFlakiness,
    HistoryOnTarget,
    HistoryPage,
    HistoryQuarantine,
    HistoryQuery,
    HistorySource,
)
from handlers.dashboard.issue_draft import IssueDraft
from handlers.dashboard.settings import configured_targets, quarantine_of, settings_and_target
from handlers.dashboard.source import file_in_id, source_place, source_url
from handlers.dashboard.wiring import DashboardParts
from handlers.results.config import RENAMES, labs_of

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.core.aliases import Aliases
    from bot.results.store.store import ResultsStore

RUNS = 30
"""Commits that the page shows for each target, the newest ones."""
MOST_LINES = 60
"""The most pairs of a target and a suite that a page shows; the page counts the rest."""
MOST_PROOFS = 10
LONGEST_MESSAGE = 1000


def history_page(parts: DashboardParts) -> Page:
    """Return the page about one test."""

    async def load(asked: PageRequest) -> HistoryPage:
        name, settings = await settings_and_target(parts, asked)
        links = HistoryAddresses(f"{parts.github}/{name}", parts.public_url)
        return await asked.pages.run(read_test, parts.store, name, settings, asked.query, links, parts.moment())

    return Page(
        path="/r/{owner}/{repo}/tests",
        api_path="/api/v1/repos/{owner}/{repo}/tests",
        summary="One test on all targets: its outcomes by commit, since when it has failed, and how flaky it is",
        template="history.html",
        model=HistoryPage,
        query=HistoryQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
        most_csv_rows=MOST_LINES * RUNS,
    )


def _table(page: HistoryPage) -> CsvTable:
    rows = (
        (f"{on.lab}/{on.target}", on.suite, one.sha, one.committed_at, one.name, one.cell.state, one.seconds)
        for on in page.targets
        for one in on.runs
    )
    return CsvTable(("target", "suite", "sha", "committed_at", "test", "state", "seconds"), rows)


@dataclass(frozen=True, slots=True)
class HistoryAddresses:
    """Addresses for links: the repository's page on GitHub, and that of our own pages, empty if unknown."""

    page: str
    public_url: str


def read_test(
    store: ResultsStore,
    repository: str,
    settings: RepositoryConfig,
    query: HistoryQuery,
    links: HistoryAddresses,
    now: float,
) -> HistoryPage:
    """Read everything that is known about a test; it blocks. Raises LookupError if no suite has the test."""
    lab, _, target = (query.target or "").partition("/")
    lines = store.grids.lines_of_test(GridRange(repository, lab or None, target or None), query.id)
    if not lines:
        raise LookupError(query.id)
    shown = lines[:MOST_LINES]
    found = []
    for _, of_suite in groupby(sorted(shown, key=lambda line: line.suite), key=lambda line: line.suite):
        found += _on_targets(store, settings, list(of_suite), query.id, links, now)
    order = {(line.about, line.suite): place for place, line in enumerate(shown)}
    found.sort(key=lambda one: order[TargetKey(repository, one.lab, one.target), one.suite])
    return HistoryPage(id=query.id, targets=found, more=len(lines) - len(shown))


def _on_targets(
    store: ResultsStore,
    settings: RepositoryConfig,
    lines: Sequence[GridLine],
    test: str,
    links: HistoryAddresses,
    now: float,
) -> list[HistoryOnTarget]:
    """Return the test on each target of one suite; one statement reads what all of the targets need."""
    repository, suite, aliases = lines[0].about.repository, lines[0].suite, settings.of(RENAMES).aliases
    nightly = store.grids.commits(GridRange(repository, limit=RUNS))
    traced = store.history(repository, suite, test, aliases)
    asked = GridRange(repository, limit=max(RUNS, WINDOW), aliases=aliases, quarantine=quarantine_of(settings, now))
    runs = store.grids.runs_of_test(lines, test, traced, asked)
    called = {(series, run.sha): run for series, those in runs.items() for run in those[:RUNS]}
    seconds = store.grids.durations(lines[0].row, called)
    every = []
    for line in lines:
        segments = traced.get(line.about, ())
        if last := _last_seen(store, line, runs[line.series], segments):
            every.append(TestOnLine(line, runs[line.series], segments, last))
    flaky = _flakiness(store, [seen for seen in every if seen.flaky], test, settings)
    failing = _failing(store, [seen for seen in every if seen.is_failing], test, aliases)
    return [
        _on_target(settings, seen, nightly, seconds, test, links, now, flaky.get(number), failing.get(number))
        for number, seen in ((seen.line.series, seen) for seen in every)
    ]


@dataclass(frozen=True, slots=True)
class TestOnLine:
    """A test in one suite on one target.

    `runs` are its newest runs, newest first; `segments` is its whole history, oldest first; `last` is its last run.
    """

    line: GridLine
    runs: Sequence[TestRun]
    segments: TestHistory
    last: Segment

    @property
    def flaky(self) -> list[str]:
        """Return the commits at which it both passed and failed, newest first."""
        return [run.sha for run in self.runs if run.linked and is_flaky(run.now)]

    @property
    def is_failing(self) -> bool:
        """Whether it failed in its last run, other than by flakiness."""
        return self.last.status in BAD and not self.last.flaky

    @property
    def first(self) -> Segment:
        """Return the first segment in which the test existed."""
        return first_of(one for one in self.segments if one.status is not None)

    @property
    def names(self) -> list[str]:
        """Return the names that the test has had, newest first."""
        return list(dict.fromkeys(one.name for one in reversed(self.segments) if one.status is not None))


def _last_seen(store: ResultsStore, line: GridLine, runs: Sequence[TestRun], segments: TestHistory) -> Segment | None:
    """Return the last usable nightly run that has the test; None if there is none.

    A test that was removed long ago is in none of the newest `runs`, but its segments still lead to its last run.
    """
    for run in runs:
        if run.linked and (status := status_of(run.now)):
            return Segment(run.sha, run.committed_at, status, is_flaky(run.now), run.name)
    until = END
    for one in reversed(segments):
        if one.status is not None and (position := store.grids.last_run_before(line, until)):
            return replace(one, committed_at=position[0], sha=position[1])
        until = (one.committed_at, one.sha)
    return None


def _on_target(
    settings: RepositoryConfig,
    seen: TestOnLine,
    nightly: Sequence[Position],
    seconds: Mapping[tuple[int, str], float],
    test: str,
    links: HistoryAddresses,
    now: float,
    flaky: HistoryFlakiness | None,
    failing: FailingOnTarget | None,
) -> HistoryOnTarget:
    line, last = seen.line, seen.last
    expected = line.about.full_name in configured_targets(settings)
    steps = _reproduce(settings, line, last, test)
    shown = failing.shown if failing else None
    return HistoryOnTarget(
        lab=line.about.lab,
        target=line.about.target,
        suite=line.suite,
        runs=list(_commits(seen, nightly, seconds, test, now, expected=expected)),
        failing=shown,
        flakiness=flaky,
        quarantine=_quarantine(settings, line, last, now),
        first_seen=seen.first.sha,
        first_seen_at=datetime.fromtimestamp(seen.first.committed_at, UTC),
        renamed_from=[name for name in seen.names if name != test],
        reproduce=steps,
        source=_source(links, last, failing.failure if failing else None),
        issue_url=_issue_url(links, line, test, shown, flaky, steps) if shown or flaky else "",
    )


def _commits(
    seen: TestOnLine,
    nightly: Sequence[Position],
    seconds: Mapping[tuple[int, str], float],
    test: str,
    now: float,
    *,
    expected: bool,
) -> Iterator[HistoryCommit]:
    """Yield the newest commits: those with a run of the test, and those that only other targets have tested."""
    runs = {run.position: run for run in seen.runs[:RUNS]}
    later = [one for one in nightly if runs and one > min(runs)]
    for committed_at, sha in sorted({*runs, *later}, reverse=True)[:RUNS]:
        run = runs.get((committed_at, sha))
        yield HistoryCommit(
            sha=sha,
            committed_at=datetime.fromtimestamp(committed_at, UTC),
            cell=test_cell(run.run_id, run.infra, run.was, run.now, complete=run.complete)
            if run
            else no_cell(seen.line, committed_at, now, expected=expected),
            name=run.name if run else test,
            seconds=seconds.get((seen.line.series, sha)),
        )


@dataclass(frozen=True, slots=True)
class FailingOnTarget:
    """How a test fails on a target."""

    failure: NewFailure
    shown: HistoryFailing


def _failing(
    store: ResultsStore, every: Sequence[TestOnLine], test: str, aliases: Aliases
) -> dict[int, FailingOnTarget]:
    """Return how a test fails on the targets of one suite on which it does, by the numbers of their series."""
    details = store.grids.details({one.line.series: TestAt(one.line, one.last.sha, one.last.name) for one in every})
    asked = [AskedOnTarget(on_target(one.line), one.last.sha, _baseline(store, one), [test]) for one in every]
    contexts = store.timelines.contexts_on(asked, aliases)
    found = {}
    for one in every:
        series, last = one.line.series, one.last
        assert last.status is not None
        detail = details.get(series, Detail())
        seen = SeenTest(last.status, trouble=detail.trouble, message=detail.message)
        context = contexts[series].get(test, FailureContext())
        shown = HistoryFailing(
            since=context.since or last.sha,
            last_passed_at=context.good,
            older=context.older,
            failed_before=context.failed,
            runs_before=context.runs,
            also_on=list(context.also_on),
            message=seen.message[:LONGEST_MESSAGE],
        )
        found[series] = FailingOnTarget(NewFailure(one.line.suite, last.name, seen, {last.name: detail}), shown)
    return found


def _baseline(store: ResultsStore, seen: TestOnLine) -> str:
    """Return the commit of the series before the last one that has the test, empty for none."""
    here = seen.last.committed_at, seen.last.sha
    for run in seen.runs:
        if run.linked and run.position < here:
            return run.sha
    earlier = store.grids.last_run_before(seen.line, here)
    return earlier[1] if earlier else ""


def _flakiness(
    store: ResultsStore, every: Sequence[TestOnLine], test: str, settings: RepositoryConfig
) -> dict[int, HistoryFlakiness]:
    """Return how flaky a test is on the targets on which it was, by the numbers of their series."""
    if not every:
        return {}
    suites = [on_target(one.line) for one in every]
    newest = store.failures.newest_flakiness(suites, test, settings.of(RENAMES).aliases)
    described = {}
    for seen in every:
        line, last = seen.line, seen.last
        sha, found = newest.get(line.series, ("", Flakiness()))
        if sha != last.sha and last.status is not None:  # the newest run no longer has the test
            now = {test: SeenTest(last.status, last.flaky)}
            of_last = store.failures.flakiness(line.about, line.suite, last.sha, now, settings.of(RENAMES).aliases)
            found = of_last.get(test, Flakiness())
        if found.proved and last.status is not None:
            described[line.series] = HistoryFlakiness(
                runs=found.runs, failed=found.failed, words=how_flaky(found), proofs=seen.flaky[:MOST_PROOFS]
            )
    return described


def _quarantine(settings: RepositoryConfig, line: GridLine, last: Segment, now: float) -> HistoryQuarantine | None:
    item = quarantine_of(settings, now)(line.about).of(last.name)
    if item is None:
        return None
    return HistoryQuarantine(owner=item.owner, reason=item.reason, issue=item.issue, until=item.until)


def _reproduce(settings: RepositoryConfig, line: GridLine, last: Segment, test: str) -> str:
    lab = labs_of(settings).get(line.about.lab)
    if lab is None or not lab.reproduce or last.status is None:
        return ""
    failure = NewFailure(line.suite, test, SeenTest(last.status), {})
    return command(lab.reproduce, failure, line.about.target, last.sha)


def _source(links: HistoryAddresses, last: Segment, failure: NewFailure | None) -> HistorySource | None:
    path, line_number = source_place(failure) if failure else (file_in_id(last.name), None)
    if not path:
        return None
    return HistorySource(path=path, line=line_number, url=source_url(links.page, last.sha, path, line_number))


def _issue_url(
    links: HistoryAddresses,
    line: GridLine,
    test: str,
    failing: HistoryFailing | None,
    flaky: HistoryFlakiness | None,
    reproduce: str,
) -> str:
    target = line.about.full_name
    page = history_path(line.about.repository, test, target)
    return IssueDraft(
        links.page,
        test,
        line.suite,
        target,
        flaky=flaky.words if flaky else "",
        proofs=flaky.proofs if flaky else (),
        since=failing.since if failing else "",
        good=failing.last_passed_at if failing else "",
        message=failing.message if failing else "",
        reproduce=reproduce,
        history=f"{links.public_url}{page}" if links.public_url else "",
    ).address()
