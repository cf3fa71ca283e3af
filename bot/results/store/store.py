"""Store results: what each run reported, and the combined result of all runs of a commit.

Results are stored as columns and change segments, not as a row for each (`docs/decisions/results-as-columns.md`).
Calls block, and may come from any number of threads and replicas at once. Each is one transaction, all of it or
nothing. Nothing is ever removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import sqlalchemy as sa
from nightjar_formats.columns.collect import Columns, Reason
from nightjar_formats.model import RunKey, SeenTest, TargetKey
from nightjar_formats.runs.infra import infra

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare import diff as compare
from bot.results.compare.ancestors import Candidate, Relation
from bot.results.compare.searching import Renames, write_with_searches
from bot.results.compare.searching import renames as find_renames
from bot.results.state import Admission, PendingCheck, Run, RunState, SuiteState, TargetState
from bot.results.store import (
    affected,
    ancestry,
    durations,
    failure_texts,
    history,
    names,
    revisions,
    run_lists,
    runs,
    schema,
    series,
    snapshot,
    trace,
    writing,
)
from bot.results.store import combine as merge
from bot.results.store import pending_checks as checks
from bot.results.store.blobs import Stored
from bot.results.store.commits_with_results import CommitsWithResults
from bot.results.store.database import ResultsDatabase
from bot.results.store.failure_texts import TextReader
from bot.results.store.grid import Grids
from bot.results.store.history import Change, Flaky
from bot.results.store.lab_reports import LabReports
from bot.results.store.lists_of_tests import ListsOfTests
from bot.results.store.names import SuiteRow
from bot.results.store.point_facts import Infra, point_facts
from bot.results.store.reported import FailureReports
from bot.results.store.timelines import Timelines
from bot.results.store.trace import TestHistory

NEWEST = 100


def _infra(seen: Mapping[str, SeenTest]) -> str:
    # By itself: whether a commit belongs to the series must not depend on which others have arrived. The exit status of
    # the tests' command would only change the words.
    return infra(seen, None, exit_status=None) or compare.untested(seen)


class ResultsStore:
    """The results of all repositories, in the database of a URL (that of the engine: DATABASE_URL).

    `now` is the time in seconds since 1970. Raises DatabaseError for a URL that names no database.
    """

    def __init__(
        self,
        url: str,
        *,
        infra: Infra = _infra,
        renames: Renames = find_renames,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._database = ResultsDatabase(url)
        self._infra = infra
        self._renames = renames
        self._now = now
        self._known = names.SuiteNames()
        self.failures = FailureReports(self._database, self._known, now)
        self.timelines = Timelines(self._database.reading, self._known)
        self.grids = Grids(self._database.reading, self._known)
        self.lists = ListsOfTests(self._database.reading, self._known)
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
        """Return a run, None if nothing is known about it."""
        with self._database.reading() as connection:
            found = runs.find(connection, key)
        return None if found is None else found[1]

    def runs(
        self,
        repository: str | None = None,
        *,
        lab: str | None = None,
        target: str | None = None,
        sha: str | None = None,
        state: RunState | None = None,
        before: RunKey | None = None,
        limit: int = NEWEST,
    ) -> list[Run]:
        """Return runs, newest first; `before` is the last one of the page before. Raises LookupError for its key.

        Filters that are None match anything. The repository may be in any letter case: a run whose folder writes it
        otherwise than app.yaml is refused, and listed under its own name.
        """
        with self._database.reading() as connection:
            return run_lists.page(connection, repository, lab, target, sha, state, before, limit)

    def known(self, versions: Mapping[RunKey, str]) -> set[RunKey]:
        """Return those of some runs that are stored, or were processed with this version of their manifest."""
        with self._database.reading() as connection:
            return runs.known(connection, versions)

    def waiting(self, repository: str) -> list[Run]:
        """Return the runs of a repository that wait for their files, oldest first."""
        with self._database.reading() as connection:
            return run_lists.waiting(connection, repository)

    def newest(self, repository: str) -> dict[TargetKey, float]:
        """Return when the newest stored run of each target arrived, in seconds since 1970."""
        with self._database.reading() as connection:
            return run_lists.newest(connection, repository)

    def targets(self, repository: str, sha: str) -> list[TargetKey]:
        """Return the targets with anything stored about a commit."""
        with self._database.reading() as connection:
            return run_lists.targets(connection, repository, sha)

    def usage(self, repository: str, lab: str, since: float) -> tuple[int, int]:
        """Return how many runs of a lab arrived since a moment, and the bytes of the ingested files."""
        with self._database.reading() as connection:
            return run_lists.usage(connection, repository, lab, since)

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

    def note(self, run: Run, renames: Renames | None = None) -> bool:
        """Store what is known about a run without results; return whether that is new.

        `renames` says which tests were renamed, and may raise `SearchNeeded`: then nothing has changed. Without it,
        they are searched for between two transactions.

        A run with stored results stays unchanged. The check run shows runs that wait for files or are incomplete, but
        no refused ones.
        """

        def write(connection: sa.Connection, search: Renames) -> bool:
            found = runs.find(connection, run.key)
            if found is not None and (found[1].state is RunState.STORED or found[1] == run):
                return False
            target = runs.target_id(connection, run.key.about, make=True)
            assert target is not None
            number, before = found or (None, None)
            runs.save(connection, target, run, number)
            self._follow(connection, target, search, before, run)
            revisions.grow(connection, run.key.repository)
            return True

        return self._written(write, renames)

    def put(self, run: Run, columns: Columns, renames: Renames | None = None, *, replace: bool = False) -> bool:
        """Store a run with its results; return False, and change nothing, if its folder is stored already.

        `renames` is as in `note`. The first results stay, because objects in the bucket are written once. `replace` is
        for reading the bucket again.
        """
        suite_name = run.claims.suite if run.claims else ""
        with self._database.reading() as connection:
            found = runs.find(connection, run.key)
            if not replace and found is not None and found[1].state is RunState.STORED:
                return False
            suite = names.find(connection, run.key.repository, suite_name) or SuiteRow(0, 0)
            # The slow part comes before the write transaction, because all other writers wait for that.
            laid_out = writing.lay_out(connection, self._known, suite, columns)
            texts = failure_texts.prepare(connection, columns)

        def write(connection: sa.Connection, search: Renames) -> bool:
            # Again, because another process may have stored the run meanwhile.
            found = runs.find(connection, run.key)
            if not replace and found is not None and found[1].state is RunState.STORED:
                return False
            now_known = names.find(connection, run.key.repository, suite_name, make=True)
            assert now_known is not None
            up_to_date = now_known.names == suite.names  # or somebody else has added names meanwhile
            ordered = laid_out if up_to_date else writing.lay_out(connection, self._known, now_known, columns)
            suites = {suite_name: names.add(connection, now_known, ordered.new, ordered.new_names)}
            target = runs.target_id(connection, run.key.about, make=True)
            assert target is not None
            number, before = found or (None, None)
            texts_of = failure_texts.save(connection, texts, columns)
            saved = runs.save(connection, target, run, number)
            changed = writing.save(connection, saved, ordered, texts_of, is_new=number is None)
            written = {saved: ordered.stored}
            self._follow(connection, target, search, before, run, written, suites, news=changed or before != run)
            revisions.grow(connection, run.key.repository)
            return True

        return self._written(write, renames)

    def _written(self, write: Callable[[sa.Connection, Renames], bool], renames: Renames | None) -> bool:
        def once(renames: Renames) -> bool:
            with self._database.writing() as connection:
                return write(connection, renames)

        return write_with_searches(once, self._renames) if renames is None else once(renames)

    def _follow(
        self,
        connection: sa.Connection,
        target: int,
        search: Renames,
        before: Run | None,
        run: Run,
        written: Mapping[int, Stored] = MappingProxyType({}),
        suites: Mapping[str, SuiteRow] = MappingProxyType({}),
        *,
        news: bool = True,
    ) -> None:
        """Update everything that follows from a run: the points of its suites, and which check runs are pending.

        `written` are columns that need not be read again, by the number of their run; `suites` likewise. Without
        `news`, the same results were read again, so a check changes only if the rules for points have changed.
        """
        touched = set()
        reported = {one.claims.suite for one in (before, run) if one and one.claims and one.state in runs.REPORTED}
        for suite_name in sorted(reported):
            if news:
                touched.add(run.key.sha)
            suite = suites.get(suite_name) or names.find(connection, run.key.repository, suite_name, make=True)
            assert suite is not None
            of = series.find(connection, self._known, suite, suite_name, target)
            facts, statuses = point_facts(connection, of, run.key.sha, written, self._infra)
            if facts is not None and (series.place(connection, of, facts, statuses, search) or news):
                touched |= {run.key.sha, *affected.by(connection, run.key.repository, of, facts)}
        checks.touch(connection, target, touched, self._now())

    # The results of a commit

    def state(self, about: TargetKey, sha: str) -> TargetState:
        """Return all that is known about a commit on a target; the order of arrival does not matter."""
        suites: dict[str, SuiteState] = {}
        admission = None
        with self._database.reading() as connection:
            target = runs.target_id(connection, about)
            reported = [] if target is None else runs.reported(connection, target, sha)
            admission = runs.admission(run for _, run in reported)
            missing = checks.missing_suites(connection, target, sha, [run for _, run in reported]) if target else ()
            for suite_name in sorted({run.claims.suite for _, run in reported if run.claims}):
                of_suite = [(number, run) for number, run in reported if run.claims and run.claims.suite == suite_name]
                suites[suite_name] = self._suite_state(connection, about.repository, suite_name, of_suite)
        return TargetState(
            about,
            sha,
            suites,
            admission.pull_request if admission else None,
            admission.mainline if admission else False,
            missing,
        )

    def _suite_state(
        self, connection: sa.Connection, repository: str, suite_name: str, reported: list[tuple[int, Run]]
    ) -> SuiteState:
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

    def seen(self, about: TargetKey, suite: str, sha: str) -> dict[str, SeenTest]:
        """Return the verdict of each test of a suite at a commit; empty if nothing is stored."""
        with self._database.reading() as connection:
            target = runs.target_id(connection, about)
            found = names.find(connection, about.repository, suite)
            if target is None or found is None:
                return {}
            reported = runs.reported(connection, target, sha, suite)
            return self._verdicts(connection, found, [one for one in reported if one[1].state is RunState.STORED])[0]

    def durations(self, about: TargetKey, suite: str, sha: str) -> dict[str, float]:
        """Return how many seconds each test of a suite took at a commit, for the tests whose runs reported it."""
        with self._database.reading() as connection:
            return durations.of_suite(connection, self._known, about, suite, sha)

    def changed(self, about: TargetKey, suite: str, before: str, after: str) -> dict[str, Change]:
        """Return the tests whose results differ between two commits, with both results."""
        with self._database.reading() as connection:
            return history.changed(connection, self._known, about, suite, (before, after))

    def _verdicts(
        self, connection: sa.Connection, suite: SuiteRow, stored: Sequence[tuple[int, Run]]
    ) -> tuple[dict[str, SeenTest], dict[str, Reason]]:
        columns = runs.columns(connection, [number for number, _ in stored])
        return merge.verdicts(self._known.every(connection, suite), columns)

    def baselines(self, about: TargetKey, suite: str, sha: str, *, limit: int = NEWEST) -> list[Candidate]:
        """Return the commits that another may be compared with if they are ancestors of it, newest first."""
        with self._database.reading() as connection:
            return history.baselines(connection, about, suite, sha, limit)

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

    def scheduled_checks(self, repository: str, now: float, settle: float, deadline: float) -> list[PendingCheck]:
        """Return the check runs of a repository that must be written at a moment: see `pending_checks`."""
        with self._database.reading() as connection:
            return checks.scheduled_checks(connection, repository, now, settle, deadline)

    def whole(self, about: TargetKey, sha: str) -> PendingCheck | None:
        """Return the check run of a commit if it is pending and expects no more results."""
        with self._database.reading() as connection:
            target = runs.target_id(connection, about)
            return None if target is None else checks.whole(connection, target, sha)

    def announced(self, pending: PendingCheck) -> None:
        """Note that a check run is being written."""
        with self._database.writing() as connection:
            target = runs.target_id(connection, pending.target)
            if target is not None:
                checks.announced(connection, target, pending)

    def touch(self, about: TargetKey, sha: str) -> None:
        """Mark the check run of a commit as pending, although its results are the same."""
        with self._database.writing() as connection:
            target = runs.target_id(connection, about)
            if target is not None:
                checks.touch(connection, target, [sha], self._now())

    def is_pending(self, about: TargetKey, sha: str) -> bool:
        """Return whether the check run of a commit is pending, or expects more results."""
        with self._database.reading() as connection:
            target = runs.target_id(connection, about)
            return target is not None and checks.is_pending(connection, target, sha)

    # Histories

    def history(
        self, repository: str, suite: str, test_id: str, aliases: Aliases = NO_ALIASES
    ) -> dict[TargetKey, TestHistory]:
        """Return the outcome of a test on each target from commit to commit, under its earlier names too."""
        with self._database.reading() as connection:
            return trace.of_test(connection, self._known, repository, suite, test_id, aliases)

    def flakiest(
        self, about: TargetKey, suite: str, *, limit: int = 10, since: float = 0.0, aliases: Aliases = NO_ALIASES
    ) -> list[Flaky]:
        """Return the tests that changed between good and bad most often, in commits made since a moment."""
        with self._database.reading() as connection:
            return history.flakiest(connection, self._known, about, suite, limit, since, aliases)

    def snapshot(self, repository: str) -> dict[str, object]:
        """Return everything known about a repository as JSON, which does not depend on the order of arrival."""
        with self._database.reading() as connection:
            return snapshot.of(connection, repository, TextReader(self._database.reading).text)
