"""Read one test at the newest commits of each target from its changes. Status columns are read only of incomplete runs.

However many targets there are, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, FLAKY, at, duration
from nightjar_formats.columns.collect import Reason
from nightjar_formats.model import Detail

from bot.results.compare.flaky import OUTCOME_LETTERS, WINDOW, flakiness_of_outcomes
from bot.results.compare.quarantine import NO_QUARANTINE
from bot.results.store.grid.rows import GridLine, GridRange, NewestRow, lines_of, newest_rows
from bot.results.store.history.explained import linked_windows
from bot.results.store.history.history import TracedTest
from bot.results.store.history.series_names import END
from bot.results.store.tables import runs, schema
from bot.results.store.tables.blobs import first_bytes
from bot.results.store.tables.cells import FAILS, KNOWN
from bot.results.store.tables.combine import Details
from bot.results.store.tables.failure_texts import TextReader
from bot.results.store.tables.names import SuiteRow, find_ordinal, ordinals_by_name
from bot.results.store.tables.points import Position
from bot.results.store.tables.runs import stored_runs


class TestRun(NamedTuple):
    """A test at a commit of a suite on a target; `committed_at` is in seconds since 1970.

    `status` is its status byte at this commit, and `previous` that at the commit that this one is compared with, None
    if there is none. It is `KNOWN` if the failure now is explained, by a quarantine or by the flakiness of the test.
    `name` is what the test was called. `linked`: the run is complete, of the nightly branch, and has usable results;
    otherwise, `infra` may say why not.

    `bare_runs` are the runs of the suite, at least one, in their order.
    """

    sha: str
    committed_at: float
    linked: bool
    complete: bool
    infra: str
    bare_runs: Sequence[runs.BareRun]
    previous: int | None
    status: int
    name: str

    @property
    def position(self) -> Position:
        """Where the commit stands in its series."""
        return self.committed_at, self.sha

    @property
    def run_id(self) -> str:
        """The ID of the last run."""
        return self.bare_runs[-1].run_id

    @property
    def stored(self) -> list[int]:
        """The numbers of the runs with results, in their order."""
        return [run.number for run in self.bare_runs if run.is_stored]


_NEVER_LINKED = TracedTest(END, (), b"", ())
"""A test in a series without linked points."""


def lines_of_test(connection: sa.Connection, grid_range: GridRange, test: str) -> list[GridLine]:
    """Return the lines of a part of a repository's results whose suite has a test of this name."""
    return lines_with_test(connection, lines_of(connection, grid_range), test)


def lines_with_test(connection: sa.Connection, lines: Sequence[GridLine], test: str) -> list[GridLine]:
    """Return the lines whose suite has a test of this name."""
    suites = {line.row.id: line.row for line in lines}
    suites_with_test = {number for number, row in suites.items() if find_ordinal(connection, row, test) is not None}
    return [line for line in lines if line.row.id in suites_with_test]


def runs_of_test(
    connection: sa.Connection,
    lines: Sequence[GridLine],
    test: str,
    traced: Mapping[int, TracedTest],
    grid_range: GridRange,
    most_explained: int | None = None,
) -> dict[int, list[TestRun]]:
    """Return a test in the newest runs of lines of one suite, at most `grid_range.limit` of each, by series.

    The newest run comes first. `traced` is the test in each series, which has its outcome in linked runs. With
    `most_explained`, failures are explained only in so many of the newest runs of each.
    """
    suite, series = lines[0].name, [line.series for line in lines]
    rows = newest_rows(connection, series, grid_range.limit)
    reported = runs.bare_runs(
        connection, {(line.target_id, row.sha, suite) for line in lines for row in rows.get(line.series, ())}
    )
    unlinked = _read_unlinked(connection, lines, rows, reported)
    other_names = grid_range.aliases.others(test) if unlinked else ()
    runs_of_series = {}
    for line in lines:
        traced_test = traced.get(line.series, _NEVER_LINKED)
        begins, names, target_id = traced_test.begins, traced_test.names, line.target_id
        # How the test ended by the number of segments that have begun, and what it was called.
        outcomes = [(ABSENT, names[0] if names else test), *zip(traced_test.statuses, names, strict=True)]
        runs_of_series[line.series] = test_runs = list[TestRun]()
        for _, number, committed_at, sha, linked, complete, infra in rows.get(line.series, ()):
            if not (bare_runs := reported.get((target_id, sha, suite))):
                continue
            position, previous = (committed_at, sha), None
            status, name = outcomes[bisect_right(begins, position)]
            # The history of a test has linked points only; at another point, its outcome is read from the columns.
            if number in unlinked:
                # It may have another name at this very commit.
                for candidate in dict.fromkeys((name, test, *reversed(names), *other_names)):
                    ordinal = find_ordinal(connection, line.row, candidate)
                    status = ABSENT if ordinal is None else at(unlinked[number], ordinal)
                    if status != ABSENT:
                        name = candidate
                        break
            if not infra and traced_test.first_run < position:
                # At the linked point before this one, the segment had begun that began last before this point.
                previous = outcomes[bisect_left(begins, position)][0]
            test_runs.append(TestRun(sha, committed_at, linked, complete, infra, bare_runs, previous, status, name))
    shown = {series: test_runs[-(most_explained or 0) :] for series, test_runs in runs_of_series.items()}
    explained = _explained(connection, lines, rows, shown, traced, grid_range)
    # The rows go from old to new.
    return {
        series: [
            run._replace(previous=KNOWN) if series in explained and run.sha in explained[series] else run
            for run in reversed(test_runs)
        ]
        for series, test_runs in runs_of_series.items()
    }


def test_durations(
    connection: sa.Connection, row: SuiteRow, test_runs: Mapping[tuple[int, str], TestRun]
) -> dict[tuple[int, str], float]:
    """Return how many seconds a test of a suite took in some runs, by series and commit."""
    ordinals = ordinals_by_name(connection, row)
    stored = {place: (run.stored, ordinals.get(run.name)) for place, run in test_runs.items()}
    codes = _duration_codes(
        connection,
        {number: ordinal for numbers, ordinal in stored.values() if ordinal is not None for number in numbers},
    )
    return {
        place: duration(codes[timed[-1]]) or 0.0
        for place, (numbers, _) in stored.items()
        # The last of several runs that timed the test counts.
        if (timed := [number for number in numbers if codes.get(number)])
    }


COLUMNS_AT_ONCE = 20
_DURATIONS = sa.select(schema.columns.c.run_id, schema.columns.c.durations).where(
    schema.columns.c.run_id.in_(sa.bindparam("numbers", expanding=True))
)


def _duration_codes(connection: sa.Connection, ordinals: Mapping[int, int]) -> dict[int, int]:
    """Return the stored duration code of a test in each run; `ordinals` has the test's ordinal by run.

    A few columns are in memory at the same time: a page asks about hundreds of them.
    """
    return {
        number: at(first_bytes(blob, ordinals[number] + 1), ordinals[number])
        for chunk in schema.in_chunks(list(ordinals))
        for rows in connection.execute(_DURATIONS, {"numbers": chunk}).partitions(COLUMNS_AT_ONCE)
        for number, blob in rows
    }


def last_run_before(connection: sa.Connection, series: int, position: Position) -> Position | None:
    """Return the last linked point of a series before a position; None if there is none."""
    points = schema.points
    reference = sa.tuple_(sa.literal(position[0], sa.Double), sa.literal(position[1], sa.Text))
    statement = (
        sa.select(points.c.committed_at, points.c.sha)
        .where(points.c.series_id == series, points.c.linked)
        .where(sa.tuple_(points.c.committed_at, points.c.sha) < reference)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    return None if row is None else (row.committed_at, row.sha)


@dataclass(frozen=True, slots=True)
class TestAt:
    """A test at a commit of a line, under the name that it had there."""

    line: GridLine
    sha: str
    name: str


def test_details(connection: sa.Connection, tests: Mapping[int, TestAt]) -> dict[int, Detail]:
    """Return the details of tests, by series. Tests that simply passed, or were absent, have none."""
    reasons = _reasons_of(connection, tests)
    fetch = TextReader(lambda: nullcontext(connection)).text
    return {
        series: Details({tests[series].name: reason}, fetch)[tests[series].name] for series, reason in reasons.items()
    }


def _reasons_of(connection: sa.Connection, tests: Mapping[int, TestAt]) -> dict[int, Reason]:
    """Return why tests did not simply pass, by series, each from the last run that has the test."""
    ordinals = {series: find_ordinal(connection, test.line.row, test.name) for series, test in tests.items()}
    series_at = {test.line.place_at(test.sha): series for series, test in tests.items()}
    order = {
        run.number: (series_at[place], rank)
        for place, place_runs in stored_runs(connection, series_at).items()
        for rank, run in enumerate(place_runs)
    }
    of_run = {number: ordinal for number, (series, _) in order.items() if (ordinal := ordinals[series]) is not None}
    last: dict[int, tuple[int, Reason | None]] = {}
    # They come in any order, so the rank decides which run is the last one.
    for number, has_test, reason in runs.reasons_of_tests(connection, of_run):
        series, rank = order[number]
        if has_test and rank >= last.get(series, (0, None))[0]:
            last[series] = rank, reason
    return {series: reason for series, (_, reason) in last.items() if reason is not None}


def _read_unlinked(
    connection: sa.Connection,
    lines: Iterable[GridLine],
    rows: Mapping[int, Sequence[NewestRow]],
    reported: Mapping[runs.Place, Sequence[runs.BareRun]],
) -> dict[int, bytes]:
    """Return the status columns of points outside the series, by their numbers. The series has no changes for them."""
    groups = {
        row.id: [run.number for run in bare_runs if run.is_stored]
        for line in lines
        for row in rows.get(line.series, ())
        if not (row.linked or row.infra) and (bare_runs := reported.get(line.place_at(row.sha)))
    }
    return dict(zip(groups, runs.statuses(connection, list(groups.values())), strict=True)) if groups else {}


def _explained(
    connection: sa.Connection,
    lines: Iterable[GridLine],
    rows: Mapping[int, Sequence[NewestRow]],
    runs_of_series: Mapping[int, Sequence[TestRun]],
    traced: Mapping[int, TracedTest],
    grid_range: GridRange,
) -> dict[int, set[str]]:
    """Return the commits at which a quarantine or the flakiness of the test explains its failure, by series.

    `rows` are the newest points of each series, oldest first; `runs_of_series` has the runs of some of them.
    """
    failing, explained = dict[int, list[TestRun]](), defaultdict[int, set[str]](set)
    for line in lines:
        quarantine = grid_range.quarantine(line.target) if grid_range.quarantine else NO_QUARANTINE
        was_flaky = line.series in traced and max(traced[line.series].statuses, default=ABSENT) >= FLAKY
        for run in runs_of_series[line.series]:
            if run.infra or run.status not in FAILS:
                continue
            if quarantine.of(run.name):
                explained[line.series].add(run.sha)
            elif run.previous is not None and was_flaky:
                failing.setdefault(line.series, []).append(run)
    if not failing:
        return explained
    # The newest points are read already, but a window may begin before them.
    oldest = {series: (rows[series][0].committed_at, rows[series][0].sha) for series in failing}
    older = linked_windows(
        connection,
        {series: [run.position for run in test_runs] for series, test_runs in failing.items()},
        last=max(committed_at for committed_at, _ in oldest.values()),
    )
    for series, test_runs in failing.items():
        chain = [
            *(
                position
                for point in older.get(series, ())
                if (position := (point.committed_at, point.sha)) < oldest[series]
            ),
            *((row.committed_at, row.sha) for row in rows[series] if row.linked),
        ]
        letters = _letters_over(traced[series], chain)
        explained[series] |= {run.sha for run in test_runs if _is_explained(run, chain, letters)}
    return explained


_DID_NOT_RUN = "-"
_LETTERS = [letter or _DID_NOT_RUN for letter in OUTCOME_LETTERS]


def _letters_over(traced_test: TracedTest, chain: Iterable[Position]) -> str:
    """Return how a test ended at each point of a chain, one letter for each (`OUTCOME_LETTERS`)."""
    begins = traced_test.begins
    letters = [_DID_NOT_RUN, *map(_LETTERS.__getitem__, traced_test.statuses)]
    return "".join([letters[bisect_right(begins, position)] for position in chain])


def _is_explained(run: TestRun, chain: Sequence[Position], letters: str) -> bool:
    """Return whether known flakiness explains a failure; `letters` say how the test ended at each point of a chain."""
    end = bisect_right(chain, run.position)
    window = letters[max(0, end - WINDOW) : end]
    # A commit that is no point of the chain counts as one more run after those before it.
    if not end or chain[end - 1] != run.position:
        window += _LETTERS[run.status]
    return flakiness_of_outcomes(window[-WINDOW:].replace(_DID_NOT_RUN, "")).explains
