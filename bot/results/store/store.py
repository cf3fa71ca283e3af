"""Store results: what each run reported, and the combined result of all runs of a commit.

Results are stored as columns and change segments, not as a row for each (`docs/decisions/results-as-columns.md`).
Calls block, and may come from any number of threads and replicas at once. Each is one transaction, all of it or
nothing. Nothing is ever removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress
from types import MappingProxyType

import sqlalchemy as sa
from nightjar_formats.columns import duration
from nightjar_formats.columns.collect import Columns, Reason
from nightjar_formats.model import RunKey, SeenTest, TargetKey
from nightjar_formats.runs.infra import infra

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare import diff as compare
from bot.results.compare.ancestors import Candidate, Relation
from bot.results.compare.searching import Renames, write_with_searches
from bot.results.compare.searching import renames as find_renames
from bot.results.state import Admission, PendingCheck, Run, RunState, SuiteState, TargetState
from bot.results.store import snapshot
from bot.results.store.failures.failures import FailureReports
from bot.results.store.grid.grid import Grids
from bot.results.store.history import baselines, history
from bot.results.store.history.baselines import FlipCount, ResultChange
from bot.results.store.history.history import TestHistory
from bot.results.store.history.timelines import Timelines
from bot.results.store.lists.commits_with_results import CommitsWithResults
from bot.results.store.lists.lab_reports import LabReports
from bot.results.store.lists.lists import ListsOfTests
from bot.results.store.tables import ancestry, failure_texts, names, revisions, runs, schema
from bot.results.store.tables import combine as merge
from bot.results.store.tables.blobs import RunColumns, raw
from bot.results.store.tables.database import ResultsDatabase
from bot.results.store.tables.failure_texts import TextReader
from bot.results.store.tables.names import SuiteRow
from bot.results.store.write import affected, series, write
from bot.results.store.write import pending_checks as checks
from bot.results.store.write.write import Infra, point_facts

NEWEST = 100


def _infra(seen: Mapping[str, SeenTest]) -> str:
    # From this commit alone: whether it belongs to the series must not depend on which others have arrived. The exit
    # status of the command of the tests would only change the words.
    return infra(seen, None, exit_status=None) or compare.untested(seen)


def _target_ids(connection: sa.Connection, repository: str | None, lab: str | None, target: str | None) -> list[int]:
    """Return the IDs of targets; None matches all. The letter case of the repository does not matter."""
    table = schema.targets
    name = repository.lower() if repository else None
    filters = {sa.func.lower(table.c.repository): name, table.c.lab: lab, table.c.target: target}
    statement = sa.select(table.c.id).where(
        *(column == value for column, value in filters.items() if value is not None)
    )
    return list(connection.execute(statement).scalars())


class ResultsStore:
    """The results of all repositories, in the database of a URL (that of the engine: DATABASE_URL).

    `clock` returns the time in seconds since 1970. Raises DatabaseError for a URL that names no database.
    """

    def __init__(
        self,
        url: str,
        *,
        infra: Infra = _infra,
        renames: Renames = find_renames,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = ResultsDatabase(url)
        self._infra = infra
        self._renames = renames
        self._clock = clock
        self._suite_names = names.SuiteNames()
        self.failures = FailureReports(self._database, self._suite_names, clock)
        self.timelines = Timelines(self._database.reading, self._suite_names)
        self.grids = Grids(self._database.reading, self._suite_names)
        self.lists = ListsOfTests(self._database.reading, self._suite_names)
        self.commits = CommitsWithResults(self._database.reading)
        self.labs = LabReports(self._database.reading)
        self.revisions = revisions.Revisions(self._database.reading)

    def open(self) -> None:
        """Bring the tables up to date; raise DatabaseError, in one line, if they cannot be used."""
        self._database.open()

    def close(self) -> None:
        """Disconnect."""
        self._database.close()

    # Runs

    def run(self, key: RunKey) -> Run | None:
        """Return a run; None if nothing is stored about it."""
        with self._database.reading() as connection:
            numbered_run = runs.find(connection, key)
        return None if numbered_run is None else numbered_run[1]

    def runs(
        self,
        repository: str | None = None,
        *,
        lab: str | None = None,
        target: str | None = None,
        sha: str | None = None,
        state: RunState | None = None,
        last_listed: RunKey | None = None,
        limit: int = NEWEST,
    ) -> list[Run]:
        """Return runs, newest first; `last_listed` is the last one of the page before.

        Raises LookupError if `last_listed` is not stored.

        Filters that are None match anything. The repository may be in any letter case: a run whose folder writes it
        otherwise than app.yaml is refused, and listed under its own name.
        """
        table = schema.runs
        sort_key = (table.c.received_at, table.c.id)
        statement = runs.select().order_by(*(column.desc() for column in sort_key)).limit(limit)
        anywhere = not (repository or lab or target or sha)
        if state is not None:
            statement = statement.where((table.c.state if anywhere else schema.unindexed_state) == state.value)
        with self._database.reading() as connection:
            if last_listed is not None:
                last = runs.find(connection, last_listed, any_case=True)
                if last is None:
                    raise LookupError(last_listed.folder)
                statement = statement.where(sa.tuple_(*sort_key) < sa.tuple_(last[1].received_at, last[0]))
            # One statement with the index of states; below, one for each target with the indices of targets.
            if state is not None and anywhere:
                return [runs.read(row) for row in connection.execute(statement).mappings()]
            # Indices have the runs of a target in their order, and the runs of a commit.
            if sha is not None:
                statement = statement.where(table.c.sha == sha)
            rows = [
                row
                for number in _target_ids(connection, repository, lab, target)
                for row in connection.execute(statement.where(table.c.target_id == number)).mappings()
            ]
            rows.sort(key=lambda row: (row["received_at"], row["id"]), reverse=True)
            return [runs.read(row) for row in rows[:limit]]

    def processed(self, versions: Mapping[RunKey, str]) -> set[RunKey]:
        """Return the runs that are stored, or were processed with this version of their manifest."""
        with self._database.reading() as connection:
            return runs.processed_runs(connection, versions)

    def commits_since(self, repository: str, moment: float) -> set[tuple[TargetKey, str]]:
        """Return the targets and commits with a run that arrived since a moment, in seconds since 1970."""
        table, targets = schema.runs, schema.targets
        statement = (
            sa.select(targets.c.lab, targets.c.target, table.c.sha)
            .select_from(targets.join(table))
            .where(targets.c.repository == repository, table.c.received_at >= moment)
            .distinct()
        )
        with self._database.reading() as connection:
            return {(TargetKey(repository, row.lab, row.target), row.sha) for row in connection.execute(statement)}

    def commits_with_runs(self, target: TargetKey, shas: Collection[str]) -> set[str]:
        """Return those of the commits with a run on the target, in any state."""
        table = schema.runs
        with self._database.reading() as connection:
            number = runs.target_id(connection, target)
            if number is None:
                return set()
            statement = sa.select(table.c.sha).where(table.c.target_id == number).distinct()
            return {
                sha
                for chunk in schema.in_chunks(list(shas))
                for sha in connection.scalars(statement.where(table.c.sha.in_(chunk)))
            }

    def waiting(self, repository: str) -> list[Run]:
        """Return the runs of a repository that wait for their files, oldest first."""
        table = schema.runs
        statement = runs.select().where(
            table.c.state == RunState.WAITING.value, schema.targets.c.repository == repository
        )
        oldest_first = statement.order_by(table.c.received_at, table.c.id)
        with self._database.reading() as connection:
            return [runs.read(row) for row in connection.execute(oldest_first).mappings()]

    def waiting_counts(self) -> dict[str, int]:
        """Return how many runs of each repository wait for their files; repositories without one are left out."""
        table, targets = schema.runs, schema.targets
        statement = (
            sa.select(targets.c.repository, sa.func.count().label("runs"))
            .select_from(table.join(targets))
            .where(table.c.state == RunState.WAITING.value)
            .group_by(targets.c.repository)
        )
        with self._database.reading() as connection:
            return {row.repository: row.runs for row in connection.execute(statement)}

    def newest(self, *repositories: str) -> dict[TargetKey, float]:
        """Return when the newest stored run of each target of these repositories arrived, in seconds since 1970."""
        table, targets = schema.runs, schema.targets
        # One subquery per target stops at its last run in the index `nightjar_runs_received`.
        last_received = (
            sa.select(table.c.received_at)
            .where(table.c.target_id == targets.c.id, schema.unindexed_state == RunState.STORED.value)
            .order_by(table.c.received_at.desc())
            .limit(1)
            .correlate(targets)
            .scalar_subquery()
        )
        columns = (targets.c.repository, targets.c.lab, targets.c.target, last_received.label("received_at"))
        with self._database.reading() as connection:
            rows = [
                row
                for chunk in schema.in_chunks(repositories)
                for row in connection.execute(sa.select(*columns).where(targets.c.repository.in_(chunk)))
            ]
            return {
                TargetKey(row.repository, row.lab, row.target): row.received_at
                for row in rows
                if row.received_at is not None
            }

    def targets(self, repository: str, sha: str) -> list[TargetKey]:
        """Return the targets with anything stored about a commit."""
        table, targets_table = schema.runs, schema.targets
        statement = (
            sa.select(targets_table.c.lab, targets_table.c.target)
            .select_from(table.join(targets_table))
            .where(targets_table.c.repository == repository, table.c.sha == sha)
            .where(runs.in_reported_state)
            .distinct()
        )
        with self._database.reading() as connection:
            return sorted(TargetKey(repository, row.lab, row.target) for row in connection.execute(statement))

    def usage(self, repository: str, lab: str, since: float) -> tuple[int, int]:
        """Return how many runs of a lab arrived since a moment, and the bytes of the ingested files."""
        table, targets = schema.runs, schema.targets
        # A refused run counts too, but without its bytes: its files were not ingested.
        ingested = table.c.state != RunState.REFUSED.value
        statement = (
            sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((ingested, table.c.bytes), else_=0)), 0))
            .select_from(table.join(targets))
            .where(targets.c.repository == repository, targets.c.lab == lab, table.c.received_at >= since)
        )
        with self._database.reading() as connection:
            count, size = connection.execute(statement).one()
            return int(count), int(size)

    def admission(self, repository: str, sha: str) -> Admission | None:
        """Return the admission of a commit for which a run of any lab was ingested, or None."""
        statement = runs.select().where(
            schema.targets.c.repository == repository,
            schema.runs.c.sha == sha,
            runs.in_reported_state,
        )
        with self._database.reading() as connection:
            return runs.admission(runs.read(row) for row in connection.execute(statement).mappings())

    # Store runs

    def put_state(self, run: Run, renames: Renames | None = None) -> bool:
        """Store the state of a run that has no results; return whether it has changed.

        `renames` finds the renamed tests. It may raise `SearchNeeded`; then nothing is stored. Without it, the store
        searches for them between two transactions.

        A run with stored results stays unchanged. The check run shows runs that wait for files or are incomplete, but
        no refused ones.
        """

        def save(connection: sa.Connection, search: Renames) -> bool:
            stored = runs.find(connection, run.key)
            if stored is not None and (stored[1].state is RunState.STORED or stored[1] == run):
                return False
            target_id = runs.target_id(connection, run.key.about, make=True)
            assert target_id is not None
            number, old_run = stored or (None, None)
            runs.save(connection, target_id, run, number)
            self._follow(connection, target_id, search, old_run, run)
            revisions.grow(connection, run.key.repository)
            return True

        return self._save(save, renames)

    def put(self, run: Run, columns: Columns, renames: Renames | None = None, *, replace: bool = False) -> bool:
        """Store a run with its results; return False, and change nothing, if its folder is stored already.

        `renames` is as in `put_state`. The first results stay, because objects in the bucket are written once. With
        `replace`, which is for reading the bucket again, new results replace them.
        """
        suite_name = run.claims.suite if run.claims else ""
        with self._database.reading() as connection:
            stored = runs.find(connection, run.key)
            if not replace and stored is not None and stored[1].state is RunState.STORED:
                return False
            suite = names.find(connection, run.key.repository, suite_name) or SuiteRow(0, 0)
            # The slow part comes before the write transaction, because all other writers wait for that.
            laid_out = write.lay_out(connection, self._suite_names, suite, columns)
            texts = failure_texts.prepare(connection, columns)

        def save(connection: sa.Connection, search: Renames) -> bool:
            # Look again: another process may have stored the run meanwhile.
            stored = runs.find(connection, run.key)
            if not replace and stored is not None and stored[1].state is RunState.STORED:
                return False
            current = names.find(connection, run.key.repository, suite_name, make=True)
            assert current is not None
            is_current = current.names == suite.names  # or somebody else has added names meanwhile
            ordered = laid_out if is_current else write.lay_out(connection, self._suite_names, current, columns)
            suites = {suite_name: names.add(connection, current, ordered.new_count, ordered.new_names)}
            target_id = runs.target_id(connection, run.key.about, make=True)
            assert target_id is not None
            number, old_run = stored or (None, None)
            text_numbers = failure_texts.save(connection, texts, columns)
            saved = runs.save(connection, target_id, run, number)
            changed = write.save(connection, saved, ordered, text_numbers, is_new=number is None)
            columns_of = {saved: ordered.stored}
            self._follow(
                connection, target_id, search, old_run, run, columns_of, suites, has_changed=changed or old_run != run
            )
            revisions.grow(connection, run.key.repository)
            return True

        return self._save(save, renames)

    def _save(self, save: Callable[[sa.Connection, Renames], bool], renames: Renames | None) -> bool:
        """Call `save` in a write transaction, with `renames` or the result of a search outside of the transaction."""

        def save_in_transaction(renames: Renames) -> bool:
            with self._database.writing() as connection:
                return save(connection, renames)

        return (
            write_with_searches(save_in_transaction, self._renames) if renames is None else save_in_transaction(renames)
        )

    def _follow(
        self,
        connection: sa.Connection,
        target_id: int,
        search: Renames,
        old_run: Run | None,
        run: Run,
        columns: Mapping[int, RunColumns] = MappingProxyType({}),
        suites: Mapping[str, SuiteRow] = MappingProxyType({}),
        *,
        has_changed: bool = True,
    ) -> None:
        """Update everything that follows from a run: the points of its suites, and which check runs are pending.

        `columns` has columns that need not be read, by the number of their run, and `suites` rows of suites by name.
        Without `has_changed`, the same results were ingested again: a check run changes only if the rules for points
        have changed.
        """
        touched = set()
        reported_suites = {
            reported_run.claims.suite
            for reported_run in (old_run, run)
            if reported_run and reported_run.claims and reported_run.state in runs.REPORTED
        }
        for suite_name in sorted(reported_suites):
            if has_changed:
                touched.add(run.key.sha)
            suite = suites.get(suite_name) or names.find(connection, run.key.repository, suite_name, make=True)
            assert suite is not None
            suite_series = series.find(connection, self._suite_names, suite, suite_name, target_id)
            facts, statuses = point_facts(connection, suite_series, run.key.sha, columns, self._infra)
            if facts is not None and (series.place(connection, suite_series, facts, statuses, search) or has_changed):
                touched |= {
                    run.key.sha,
                    *affected.affected_commits(connection, run.key.repository, suite_series, facts),
                }
        checks.touch(connection, target_id, touched, self._clock())

    # The results of a commit

    def state(self, target: TargetKey, sha: str) -> TargetState:
        """Return all that is known about a commit on a target; the order of arrival does not matter."""
        suites: dict[str, SuiteState] = {}
        admission = None
        with self._database.reading() as connection:
            target_id = runs.target_id(connection, target)
            reported = [] if target_id is None else runs.reported(connection, target_id, sha)
            admission = runs.admission(run for _, run in reported)
            missing = (
                checks.missing_suites(connection, target_id, sha, [run for _, run in reported]) if target_id else ()
            )
            for suite_name in sorted({run.claims.suite for _, run in reported if run.claims}):
                of_suite = [(number, run) for number, run in reported if run.claims and run.claims.suite == suite_name]
                suites[suite_name] = self._suite_state(connection, target.repository, suite_name, of_suite)
        return TargetState(
            target,
            sha,
            suites,
            admission.pull_request if admission else None,
            admission.mainline if admission else False,
            missing,
        )

    def _suite_state(
        self, connection: sa.Connection, repository: str, suite_name: str, reported: list[tuple[int, Run]]
    ) -> SuiteState:
        """Return the combined result of the runs of a suite at a commit; `reported` are its numbered runs."""
        shards = runs.shards(run for _, run in reported)
        stored = [(number, run) for number, run in reported if run.state is RunState.STORED]
        suite = names.find(connection, repository, suite_name)
        seen, reasons = self._verdicts(connection, suite, stored) if suite and stored else ({}, {})
        return SuiteState(
            suite_name,
            tuple(run for _, run in reported),
            seen,
            merge.Details(reasons, TextReader(self._database.reading).text),
            shards.total,
            shards.missing,
            shards.waiting,
            shards.broken,
        )

    def seen(self, target: TargetKey, suite: str, sha: str) -> dict[str, SeenTest]:
        """Return the verdict of each test of a suite at a commit; empty if nothing is stored."""
        with self._database.reading() as connection:
            target_id = runs.target_id(connection, target)
            row = names.find(connection, target.repository, suite)
            if target_id is None or row is None:
                return {}
            reported = runs.reported(connection, target_id, sha, suite)
            stored = [(number, run) for number, run in reported if run.state is RunState.STORED]
            return self._verdicts(connection, row, stored)[0]

    def durations(self, target: TargetKey, suite: str, sha: str) -> dict[str, float]:
        """Return how many seconds each test of a suite took at a commit, from the last run that reported it.

        They are at most three percent off (`nightjar_formats.columns`).
        """
        table = schema.columns
        with self._database.reading() as connection:
            row = names.find(connection, target.repository, suite)
            target_id = runs.target_id(connection, target)
            if row is None or target_id is None:
                return {}
            numbers = runs.stored(runs.reported(connection, target_id, sha, suite))
            statement = sa.select(table.c.run_id, table.c.durations).where(table.c.run_id.in_(numbers))
            stored = {row.run_id: raw(row.durations) for row in connection.execute(statement)}
            name_of = self._suite_names.all(connection, row)
            seconds: dict[str, float] = {}
            # In the order of the runs, so that a later one replaces what earlier ones measured. Code 0 is no duration.
            for column in (stored[number] for number in numbers):
                timed = (duration(code) or 0.0 for code in column if code)
                seconds.update(zip(compress(name_of, column), timed, strict=True))
            return seconds

    def changed(self, target: TargetKey, suite: str, old_sha: str, new_sha: str) -> dict[str, ResultChange]:
        """Return the tests whose results differ between two commits, with both results."""
        with self._database.reading() as connection:
            return baselines.changed(connection, self._suite_names, target, suite, (old_sha, new_sha))

    def _verdicts(
        self, connection: sa.Connection, suite: SuiteRow, stored: Sequence[tuple[int, Run]]
    ) -> tuple[dict[str, SeenTest], dict[str, Reason]]:
        columns = runs.columns(connection, [number for number, _ in stored])
        return merge.verdicts(self._suite_names.all(connection, suite), columns)

    def baselines(self, target: TargetKey, suite: str, sha: str, *, limit: int = NEWEST) -> list[Candidate]:
        """Return the commits that a commit may be compared with if they are its ancestors, newest first."""
        with self._database.reading() as connection:
            return baselines.baselines(connection, target, suite, sha, limit)

    def relations(self, repository: str, shas: Collection[str]) -> list[Relation]:
        """Return the stored relations of some commits to others."""
        with self._database.reading() as connection:
            return ancestry.relations(connection, repository, shas)

    def learn(self, repository: str, relations: Sequence[Relation]) -> None:
        """Store which commits are ancestors of others."""
        with self._database.writing() as connection:
            ancestry.learn(connection, repository, relations)
            revisions.grow(connection, repository)

    # Check runs

    def scheduled_checks(self, repository: str, moment: float, settle: float, deadline: float) -> list[PendingCheck]:
        """Return the check runs of a repository that must be written at a moment: see `pending_checks`."""
        with self._database.reading() as connection:
            return checks.scheduled_checks(connection, repository, moment, settle, deadline)

    def complete_check(self, target: TargetKey, sha: str) -> PendingCheck | None:
        """Return the check run of a commit if it is pending and expects no more results."""
        with self._database.reading() as connection:
            target_id = runs.target_id(connection, target)
            return None if target_id is None else checks.complete_check(connection, target_id, sha)

    def repositories_with_open_checks(self) -> set[str]:
        """Return the repositories with check runs that are pending, or of which more results are expected."""
        targets = schema.targets
        statement = sa.select(targets.c.repository).select_from(schema.checks.join(targets)).where(schema.OPEN)
        with self._database.reading() as connection:
            return set(connection.scalars(statement.distinct()))

    def announced(self, pending: PendingCheck) -> None:
        """Store that a check run is being written."""
        with self._database.writing() as connection:
            target_id = runs.target_id(connection, pending.target)
            if target_id is not None:
                checks.announced(connection, target_id, pending)

    def touch(self, target: TargetKey, sha: str) -> None:
        """Mark the check run of a commit as pending, although its results are the same."""
        with self._database.writing() as connection:
            target_id = runs.target_id(connection, target)
            if target_id is not None:
                checks.touch(connection, target_id, [sha], self._clock())

    def is_pending(self, target: TargetKey, sha: str) -> bool:
        """Return whether the check run of a commit is pending, or expects more results."""
        with self._database.reading() as connection:
            target_id = runs.target_id(connection, target)
            return target_id is not None and checks.is_pending(connection, target_id, sha)

    # Histories

    def history(
        self, repository: str, suite: str, test_id: str, aliases: Aliases = NO_ALIASES
    ) -> dict[TargetKey, TestHistory]:
        """Return the outcome of a test on each target from commit to commit, under its earlier names too."""
        with self._database.reading() as connection:
            return history.history(connection, self._suite_names, repository, suite, test_id, aliases)

    def flakiest(
        self, target: TargetKey, suite: str, *, limit: int = 10, since: float = 0.0, aliases: Aliases = NO_ALIASES
    ) -> list[FlipCount]:
        """Return the tests that changed between good and bad most often, in commits made since a moment."""
        with self._database.reading() as connection:
            return baselines.flakiest(connection, self._suite_names, target, suite, limit, since, aliases)

    def snapshot(self, repository: str) -> dict[str, object]:
        """Return everything known about a repository as JSON, which does not depend on the order of arrival."""
        with self._database.reading() as connection:
            return snapshot.of(connection, repository, TextReader(self._database.reading).text)
