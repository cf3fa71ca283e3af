"""The part of the store for lasting failures of targets, and for the messages that reported them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.flaky import Flakiness
from bot.results.compare.health import SuiteHealth
from bot.results.store.failures import failures
from bot.results.store.failures.failures import Failure, FailureEnd, NewestRun, SuiteFailures
from bot.results.store.history import flakiness, health
from bot.results.store.tables import revisions
from bot.results.store.tables.database import ResultsDatabase
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import SuiteOnTarget


class FailureReports:
    """Failures that last, and reports of them; calls block, as those of `ResultsStore`.

    `aliases` are the names of tests that maintainers renamed.
    """

    def __init__(self, database: ResultsDatabase, known: SuiteNames, now: Callable[[], float]) -> None:
        self._database = database
        self._known = known
        self._now = now

    def newest_runs(self, about: TargetKey) -> list[NewestRun]:
        """Return the newest run of each suite of a target, the newest of them first."""
        with self._database.reading() as connection:
            return failures.newest_runs(connection, about)

    def late_run(self, about: TargetKey, sha: str) -> tuple[str, float] | None:
        """Return the older nightly run, and when it was committed, that arrived last after the run of a commit."""
        with self._database.reading() as connection:
            return failures.late_run(connection, about, sha)

    def given_up(self, about: TargetKey, sha: str) -> set[str]:
        """Return the suites without results at a nightly run, at the one before, and at all later ones."""
        with self._database.reading() as connection:
            return failures.given_up(connection, about, sha)

    def reported(self, about: TargetKey, aliases: Aliases = NO_ALIASES) -> list[Failure]:
        """Return the reported failures of a target that have not ended, under the tests' current names."""
        with self._database.reading() as connection:
            return failures.reported(connection, self._known, about, aliases)

    def ends(self, about: TargetKey, reported: Collection[Failure]) -> dict[Failure, FailureEnd]:
        """Return how failures of a target ended, by the names with which they were reported; others are left out."""
        with self._database.reading() as connection:
            return failures.ends(connection, self._known, about, reported)

    def of_target(
        self, about: TargetKey, before: Mapping[str, str], aliases: Aliases = NO_ALIASES
    ) -> list[SuiteFailures]:
        """Return the failures in the newest run of each suite; `before` names the nearest ancestor of each."""
        with self._database.reading() as connection:
            return [
                failures.of_suite(connection, self._known, about, one, before.get(one.suite, ""), aliases)
                for one in failures.newest_runs(connection, about)
            ]

    def flakiness(
        self, about: TargetKey, suite: str, sha: str, now: Mapping[str, SeenTest], aliases: Aliases = NO_ALIASES
    ) -> dict[str, Flakiness]:
        """Return how flaky tests of a suite are, up to a commit at which they ended like `now`."""
        with self._database.reading() as connection:
            return flakiness.of_tests(connection, self._known, about, suite, sha, now, aliases)

    def newest_flakiness(
        self, suites: Sequence[SuiteOnTarget], test: str, aliases: Aliases = NO_ALIASES
    ) -> dict[int, tuple[str, Flakiness]]:
        """Return the commit of each suite's newest run, and how flaky a test is there, by the number of its series."""
        with self._database.reading() as connection:
            return flakiness.at_newest_runs(connection, self._known, suites, test, aliases)

    def health(self, about: TargetKey, sha: str = "") -> dict[str, SuiteHealth]:
        """Return how reliable the results of each suite of a target are at a commit, by default at its newest run."""
        with self._database.reading() as connection:
            return health.of_target(connection, about, sha)

    def moments(self, about: TargetKey, shas: Collection[str]) -> dict[str, float]:
        """Return when commits that a target tested were committed, in seconds since 1970."""
        with self._database.reading() as connection:
            return failures.moments(connection, about, shas)

    def report(
        self,
        about: TargetKey,
        sha: str,
        began: Collection[Failure],
        ended: Mapping[str, Collection[Failure]],
        aliases: Aliases = NO_ALIASES,
    ) -> None:
        """Store which failures a nightly run's message reports, and how others ended."""
        with self._database.writing() as connection:
            failures.report(connection, self._known, about, sha, self._now(), began, ended, aliases)
            # Pages show these messages, and are rendered again only after the revision has grown.
            revisions.grow(connection, about.repository)
