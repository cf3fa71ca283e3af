"""Store results: what each run reported, and what that means for the commits and tests of its target.

Results are stored as columns and change segments, not as a row for each (`docs/decisions/results-as-columns.md`).
Calls block, and may come from any number of threads and replicas at once. Each is one transaction, all of it or
nothing. Nothing is ever removed. Functions of this folder's groups read and write in a transaction that they get from
`ResultsStore.read` and `ResultsStore.write`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from nightjar_formats.columns.collect import Columns
from nightjar_formats.runs.manifest import ArtifactEntry

from bot.results.compare.diff import unusable
from bot.results.compare.searching import Renames, write_with_searches
from bot.results.compare.searching import renames as find_renames
from bot.results.state import Run, RunState
from bot.results.store.measurements.write import count_of, forget_numbers, lay_out_numbers, save_numbers
from bot.results.store.tables import artifacts as stored_artifacts
from bot.results.store.tables import blobs, commits, failure_texts, names, revisions, runs, schema
from bot.results.store.tables.blobs import LaidOut, Placement
from bot.results.store.tables.database import ResultsDatabase
from bot.results.store.tables.names import MAX_CACHED_NAMES, SuiteRow, place_names
from bot.results.store.write import series
from bot.results.store.write.series import Infra, PointRules

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Statements = Callable[Concatenate[sa.Connection, Arguments], Result]
"""A function that reads or writes results in the transaction that it gets: those of this folder, and of pages."""
_NEW_COLUMNS = schema.columns.insert()


class ResultsStore:
    """The results of all repositories, in the database of a URL (that of the engine: DATABASE_URL).

    `infra` says why the results of a suite at a commit are unusable, from that commit alone: whether it belongs to the
    series must not depend on which others have arrived. `clock` returns the time in seconds since 1970. Raises
    DatabaseError for a URL that names no database.
    """

    def __init__(
        self,
        url: str,
        *,
        infra: Infra = unusable,
        renames: Renames = find_renames,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = ResultsDatabase(url)
        self._infra = infra
        self._renames = renames
        self.clock = clock

    def open(self) -> None:
        """Bring the tables up to date; raise DatabaseError, in one line, if they cannot be used."""
        self._database.open()

    def close(self) -> None:
        """Disconnect."""
        self._database.close()

    def read(
        self, function: Statements[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what a function reads in one transaction, which sees a consistent state and blocks no writer."""
        with self._database.reading() as connection:
            return function(connection, *args, **kwargs)

    def write(
        self, function: Statements[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what a function returns that writes in one transaction: all of it is stored, or nothing."""
        with self._database.writing() as connection:
            return function(connection, *args, **kwargs)

    def put_state(self, run: Run, renames: Renames | None = None, *, artifacts: Sequence[ArtifactEntry] = ()) -> bool:
        """Store the state of a run that has no results, and its artifacts; return whether the state has changed.

        `renames` finds the renamed tests. It may raise `SearchNeeded`; then nothing is stored. Without it, the store
        searches for them between two transactions.

        A run with stored results stays unchanged. The check run shows runs that wait for files or are incomplete, but
        no refused ones.
        """

        def save(connection: sa.Connection, search: Renames) -> bool:
            stored = runs.find(connection, run.key)
            if stored is not None and (stored[1].state is RunState.STORED or stored[1] == run):
                return False
            number, target_id, replaced = runs.save(connection, run, stored)
            commits.save(connection, run)
            stored_artifacts.save(connection, number, artifacts, is_new=replaced is None)
            series.follow_run(connection, target_id, replaced, run, PointRules(self._infra, search), self.clock())
            revisions.grow(connection, run.key.repository)
            return True

        return self._save(save, renames)

    def put(
        self,
        run: Run,
        columns: Columns,
        renames: Renames | None = None,
        *,
        replace: bool = False,
        artifacts: Sequence[ArtifactEntry] = (),
    ) -> bool:
        """Store a run with its results and artifacts; return False, and change nothing, if its folder is stored.

        `renames` is as in `put_state`. The first results stay, because objects in the bucket are written once. With
        `replace`, which is for reading the bucket again, new results replace them.
        """
        suite_name = run.claims.suite if run.claims else ""
        with self._database.reading() as connection:
            suite = names.find(connection, run.key.repository, suite_name) or SuiteRow(0, 0)
            # The slow part comes before the write transaction, because all other writers wait for that.
            laid_out = _lay_out(connection, suite, columns)
            numbers = lay_out_numbers(connection, suite, laid_out.measured)
            texts = failure_texts.prepare(connection, columns)

        def save(connection: sa.Connection, search: Renames) -> bool:
            stored = runs.find(connection, run.key)
            if not replace and stored is not None and stored[1].state is RunState.STORED:
                return False
            current = names.find(connection, run.key.repository, suite_name, make=True)
            assert current is not None
            is_current = current.names == suite.names  # or somebody else has added names meanwhile
            ordered = laid_out if is_current else _lay_out(connection, current, columns)
            suites = {suite_name: names.add(connection, current, ordered.new_count, ordered.new_names)}
            text_numbers = failure_texts.save(connection, texts, columns)
            number, target_id, replaced = runs.save(connection, run, stored)
            commits.save(connection, run)
            changed = _save_columns(connection, number, ordered, text_numbers, is_new=replaced is None)
            old_claims = replaced.claims if replaced and replaced.state is RunState.STORED else None
            if old_claims and old_claims.suite != suite_name:
                old_suite = names.find(connection, run.key.repository, old_claims.suite, make=True)
                assert old_suite is not None
                old_series = series.find(connection, old_suite, old_claims.suite, target_id)
                forget_numbers(connection, old_suite, old_series.id, number)
            if ordered.measured or old_claims:
                is_current = is_current and count_of(connection, current) == numbers.count
                numbered = numbers if is_current else lay_out_numbers(connection, current, ordered.measured)
                series_id = series.find(connection, current, suite_name, target_id).id
                changed |= save_numbers(connection, current, series_id, number, numbered, is_new=not old_claims)
            stored_artifacts.save(connection, number, artifacts, is_new=replaced is None)
            columns_of = {number: ordered.stored}
            rules, has_changed = PointRules(self._infra, search), changed or replaced != run
            series.follow_run(
                connection, target_id, replaced, run, rules, self.clock(), columns_of, suites, has_changed=has_changed
            )
            revisions.grow(connection, run.key.repository)
            return True

        return self._save(save, renames)

    def _save(self, save: Callable[[sa.Connection, Renames], bool], renames: Renames | None) -> bool:
        """Call `save` in a write transaction, with `renames` or the result of a search outside of the transaction."""
        if renames is not None:
            return self.write(save, renames)
        return write_with_searches(lambda search: self.write(save, search), self._renames)


def _lay_out(connection: sa.Connection, suite: SuiteRow, columns: Columns) -> LaidOut:
    """Put a run into the order of the names that its suite has now; new names follow them."""
    # The first cases are the usual ones, and look up no names: a new suite, and the same tests in the same order.
    if not suite.names:
        return blobs.lay_out_in_order(columns, is_new=True)
    if suite.names == len(columns) and list(names.blocks(connection, suite).values()) == columns.names:
        return blobs.lay_out_in_order(columns, is_new=False)
    if suite.names <= MAX_CACHED_NAMES:
        placed = place_names(connection, suite, columns.names)
        if isinstance(placed, Placement):
            return placed.lay_out(columns)
        return blobs.lay_out(columns, lambda: zip(placed, columns.tests, strict=True), suite.names)
    # Too many names to hold in memory: walk through the compressed blocks instead.
    name_blocks = list(names.blocks(connection, suite).values())
    return blobs.lay_out(columns, partial(blobs.placed_by_walk, name_blocks), suite.names)


def _save_columns(
    connection: sa.Connection, run: int, laid_out: LaidOut, number_of: Mapping[int, int], *, is_new: bool
) -> bool:
    """Write the results of a run in place of its stored ones, if any; return False if those were the same.

    `number_of` has the stored number of each failure text by its number in the run. With `is_new`, nothing is stored
    for the run yet.
    """
    reasons = laid_out.stored.reasons
    distinct = [reason._replace(text=number_of[reason.text]) if reason.text else reason for reason in reasons.distinct]
    values = {
        "run_id": run,
        "statuses": laid_out.statuses,
        "durations": laid_out.durations,
        "reasons": blobs.reasons_blob(replace(reasons, distinct=distinct)) if reasons.ordinals else None,
    }
    if not is_new:
        table = schema.columns
        stored = connection.execute(sa.select(table).filter_by(run_id=run)).mappings().first()
        if stored is not None and dict(stored) == values:
            return False
        connection.execute(table.delete().filter_by(run_id=run))
    connection.execute(_NEW_COLUMNS, values)
    return True
