"""Read one test at the newest commits of each target from its changes. Status columns are read only of incomplete runs.

However many targets there are, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, STATUS_BYTES, at, duration, is_flaky, status_of
from nightjar_formats.columns.collect import Reason
from nightjar_formats.model import Detail, TargetKey

from bot.results.compare.flaky import OUTCOME_LETTERS, WINDOW, flakiness_of_outcomes
from bot.results.compare.quarantine import NO_QUARANTINE
from bot.results.store.grid.rows import GridLine, GridRange, lines_of, newest_rows
from bot.results.store.history.explained import linked_windows
from bot.results.store.history.history import Segment, TestHistory
from bot.results.store.tables import runs, schema
from bot.results.store.tables.blobs import first_bytes
from bot.results.store.tables.cells import FAILS, KNOWN
from bot.results.store.tables.combine import Details, reason_of
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

    `run_id` is the last of the suite's runs, and `stored` has the numbers of those with results, in their order.
    """

    sha: str
    committed_at: float
    linked: bool
    complete: bool
    infra: str
    run_id: str
    stored: Sequence[int]
    previous: int | None
    status: int
    name: str

    @property
    def position(self) -> Position:
        """Where the commit stands in its series."""
        return self.committed_at, self.sha


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
    test_lines: Sequence[GridLine],
    test: str,
    traced: Mapping[TargetKey, TestHistory],
    grid_range: GridRange,
) -> dict[int, list[TestRun]]:
    """Return a test in the newest runs of lines of one suite, at most `grid_range.limit` of each, by series.

    The newest run comes first. `traced` is the history of the test on each target, which has its outcome in linked
    runs.
    """
    lines = {line.series: line for line in test_lines}
    rows = newest_rows(connection, lines, grid_range.limit)
    suite = test_lines[0].name
    reported = runs.bare_runs(connection, {(lines[row["series_id"]].target_id, row["sha"], suite) for row, _ in rows})
    unlinked = _read_unlinked(connection, lines, [row for row, _ in rows], suite, reported)
    runs_of_series: dict[int, list[TestRun]] = {series: [] for series in lines}
    outcomes = {series: _LinkedOutcomes(traced.get(line.target, ()), test) for series, line in lines.items()}
    other_names = grid_range.aliases.others(test) if unlinked else ()
    for row, earlier in rows:
        series, line = row["series_id"], lines[row["series_id"]]
        bare_runs = reported.get((line.target_id, row["sha"], suite), [])
        if not bare_runs:
            continue
        previous_status = None
        status, name = outcomes[series].at((row["committed_at"], row["sha"]))
        # The history of a test has linked points only; at another point, its outcome is read from the columns.
        if row["id"] in unlinked:
            # It may have another name at this very commit.
            for candidate in dict.fromkeys((name, *outcomes[series].names, *other_names)):
                ordinal = find_ordinal(connection, line.row, candidate)
                status = ABSENT if ordinal is None else at(unlinked[row["id"]], ordinal)
                if status != ABSENT:
                    name = candidate
                    break
        if earlier is not None and not row["infra"]:
            previous_status, _ = outcomes[series].at((earlier["committed_at"], earlier["sha"]))
        facts = (row["sha"], row["committed_at"], row["linked"], row["complete"], row["infra"])
        stored = [run.number for run in bare_runs if run.is_stored]
        runs_of_series[series].append(TestRun(*facts, bare_runs[-1].run_id, stored, previous_status, status, name))
    explained = _explained(connection, lines, runs_of_series, outcomes, grid_range)
    # `newest_rows` goes from old to new.
    return {
        series: [run._replace(previous=KNOWN) if (series, run.sha) in explained else run for run in reversed(test_runs)]
        for series, test_runs in runs_of_series.items()
    }


def test_durations(
    connection: sa.Connection, row: SuiteRow, test_runs: Mapping[tuple[int, str], TestRun]
) -> dict[tuple[int, str], float]:
    """Return how many seconds a test of a suite took in some runs, by series and commit."""
    ordinals = ordinals_by_name(connection, row)
    ordinal_in_run = {
        number: ordinal
        for run in test_runs.values()
        if (ordinal := ordinals.get(run.name)) is not None
        for number in run.stored
    }
    codes = _duration_codes(connection, ordinal_in_run)
    return {
        place: duration(codes[timed[-1]]) or 0.0
        for place, run in test_runs.items()
        # The last of several runs that timed the test counts.
        if (timed := [number for number in run.stored if codes.get(number)])
    }


def _duration_codes(connection: sa.Connection, ordinals: Mapping[int, int]) -> dict[int, int]:
    """Return the stored duration code of a test in each run; `ordinals` has the test's ordinal by run.

    Each column is dropped before the next one is read: a page asks about hundreds of them.
    """
    table, numbers = schema.columns, list(ordinals)
    return {
        number: at(first_bytes(blob, ordinals[number] + 1), ordinals[number])
        for chunk in schema.in_chunks(numbers)
        for number, blob in connection.execute(
            sa.select(table.c.run_id, table.c.durations).where(table.c.run_id.in_(chunk))
        )
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
    last: dict[int, tuple[int, Reason | None]] = {}
    # They come in any order, so the rank decides which run is the last one.
    for number, stored in runs.each_stored(connection, list(order)):
        series, rank = order[number]
        ordinal = ordinals[series]
        if ordinal is not None and at(stored.statuses, ordinal) and rank >= last.get(series, (0, None))[0]:
            last[series] = rank, reason_of(stored.reasons, ordinal)
    return {series: reason for series, (_, reason) in last.items() if reason is not None}


def _read_unlinked(
    connection: sa.Connection,
    lines: Mapping[int, GridLine],
    rows: Iterable[sa.RowMapping],
    suite: str,
    reported: Mapping[runs.Place, Sequence[runs.BareRun]],
) -> dict[int, bytes]:
    """Return the status columns of points outside the series, by their numbers. The series has no changes for them."""
    groups = {
        row["id"]: [run.number for run in bare_runs if run.is_stored]
        for row in rows
        if not (row["linked"] or row["infra"])
        and (bare_runs := reported.get((lines[row["series_id"]].target_id, row["sha"], suite)))
    }
    return dict(zip(groups, runs.statuses(connection, list(groups.values())), strict=True)) if groups else {}


_BYTES = {(status_of(byte), is_flaky(byte)): byte for byte in reversed(range(STATUS_BYTES))}
"""The status byte of a segment, by its status and whether it is flaky; that of an absent test is 0."""


class _LinkedOutcomes:
    """How a test ended at the linked points of a series, and what it was called, from its segments."""

    def __init__(self, segments: Sequence[Segment], test: str) -> None:
        self._begins = [(segment.committed_at, segment.sha) for segment in segments]
        self._outcomes = [(_BYTES[segment.status, segment.flaky], segment.name) for segment in segments]
        self._first = ABSENT, segments[0].name if segments else test
        self.names = list(dict.fromkeys([test, *(segment.name for segment in reversed(segments))]))
        self.was_flaky = any(segment.flaky for segment in segments)

    def at(self, position: Position) -> tuple[int, str]:
        """Return the status byte of the test at a point, and its name."""
        index = bisect_right(self._begins, position)
        return self._outcomes[index - 1] if index else self._first


def _explained(
    connection: sa.Connection,
    lines: Mapping[int, GridLine],
    runs_of_series: Mapping[int, Sequence[TestRun]],
    outcomes: Mapping[int, _LinkedOutcomes],
    grid_range: GridRange,
) -> set[tuple[int, str]]:
    """Return the series and commits at which a quarantine or the flakiness of the test explains its failure."""
    failing, explained = dict[int, list[TestRun]](), set[tuple[int, str]]()
    for series, test_runs in runs_of_series.items():
        quarantine = grid_range.quarantine(lines[series].target) if grid_range.quarantine else NO_QUARANTINE
        for run in test_runs:
            if run.infra or run.status not in FAILS:
                continue
            if quarantine.of(run.name):
                explained.add((series, run.sha))
            elif run.previous is not None and outcomes[series].was_flaky:
                failing.setdefault(series, []).append(run)
    positions = {series: [run.position for run in test_runs] for series, test_runs in failing.items()}
    windows = linked_windows(connection, positions) if positions else {}
    for series, test_runs in failing.items():
        chain = [(point.committed_at, point.sha) for point in windows.get(series, ())]
        letters = [OUTCOME_LETTERS[outcomes[series].at(position)[0]] for position in chain]
        explained |= {(series, run.sha) for run in test_runs if _is_explained(run, chain, letters)}
    return explained


def _is_explained(run: TestRun, chain: Sequence[Position], letters: Sequence[str]) -> bool:
    """Return whether known flakiness explains a failure; `letters` say how the test ended at each point of a chain."""
    end = bisect_right(chain, run.position)
    window = letters[max(0, end - WINDOW) : end]
    # A commit that is no point of the chain counts as one more run after those before it.
    if not end or chain[end - 1] != run.position:
        window = [*window, OUTCOME_LETTERS[run.status]]
    return flakiness_of_outcomes("".join(window[-WINDOW:])).explains
