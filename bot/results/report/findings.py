"""The data of a check run: the state of one target at one commit, compared with its baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from nightjar_formats.model import Detail, SeenTest, Status, Trouble

from bot.core.patterns import SPACE, Pattern
from bot.core.sorted_sets import SORTED
from bot.results.compare.context import FailureContext
from bot.results.compare.diff import Comparison, untested
from bot.results.compare.failure_class import FailureClass, class_of_failure
from bot.results.compare.flaky import Flakiness
from bot.results.compare.health import SuiteHealth
from bot.results.compare.quarantine import NO_QUARANTINE, Quarantine
from bot.results.measurements.unexpected import NOT_COMPARED, NumbersOfPull, UnexpectedNumber
from bot.results.state import SuiteState, TargetState

if TYPE_CHECKING:
    from bot.results.settings.quarantine import QuarantinedTest

RANK = {
    Trouble.CRASH: 0,
    Trouble.TIMEOUT: 2,
    Trouble.SETUP: 3,
    Trouble.TEARDOWN: 3,
    Trouble.COLLECTION: 4,
    Trouble.INTERNAL: 5,
}
"""The order of failures, the most meaningful first: an unreadable file is often a fault of the lab."""
ASSERTED = 1
"""The rank of all other troubles: the test ran, and its result was wrong."""
LAST_LINE = 1_000_000
"""No file has more lines; GitHub refuses a whole check run because of one line number that it cannot store."""
FOREIGN = ("site-packages/", "dist-packages/")
_BEGINS = rf"{SPACE}\"'(\["
# A folder excludes the characters before it; otherwise the match from each place would read the rest of the line.
_FRAME = Pattern(rf"(?:^|[{_BEGINS}])(?P<folder>(?:[^{_BEGINS}]*/)?)\x00(?::|\", line )(?P<line>\d{{1,7}})\b")
"""A frame in a text in which U+0000 replaces the path of a file."""


_NOTHING = Detail()
FLAKY_RUN = Flakiness(runs=1, proved=1)
"""The flakiness of a test of which only this run is known, in which it both failed and passed."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The commit that a suite was compared with; `url` is its page as GitHub names it."""

    sha: str
    url: str


@dataclass(frozen=True, slots=True)
class ComparedSuite:
    """The changes in one suite. `baseline` is None for the first run, or if no ancestor has results.

    `confirmed` are the still failing tests that began to fail at the baseline; `good` is the baseline's nearest
    ancestor with results, where they did not fail. `flakiness` has only tests whose failures it explains.
    """

    comparison: Comparison
    baseline: Baseline | None = None
    confirmed: frozenset[str] = frozenset()
    good: Baseline | None = None
    flakiness: Mapping[str, Flakiness] = field(default_factory=dict[str, Flakiness])


@dataclass(frozen=True, slots=True)
class IgnoredFailures:
    """The failures that somebody ignores for a pull request: pairs of suite and test ID. `at` is ISO 8601."""

    by: str
    sha: str
    at: str
    tests: Annotated[frozenset[tuple[str, str]], SORTED]


@dataclass(frozen=True)
class NewFailure:
    """One new failure. Reading its details may take a query, so the report reads only a few."""

    suite: str
    test: str
    seen: SeenTest
    details: Mapping[str, Detail]

    @cached_property
    def detail(self) -> Detail:
        """The stored details of the failure."""
        return self.details.get(self.test, _NOTHING)

    @property
    def path(self) -> str:
        """The file of the test, from the lab's report or its ID."""
        return self.detail.path or self.test.partition("::")[0]

    @property
    def line(self) -> int | None:
        """The line in that file from the report, or else from the last frame of the failure's text; None if unknown."""
        line = self.detail.line
        if line is not None and 1 <= line <= LAST_LINE:
            return line
        return _last_frame(self.detail.text, self.path)

    @property
    def message(self) -> str:
        """Its message in one line."""
        return next((line.strip() for line in self.seen.message.splitlines() if line.strip()), "")


@dataclass(frozen=True)
class Findings:
    """All data of a report; `compared` has an entry for each suite of the state.

    `over`: the bot no longer waits for missing results. `files` are the paths of the repository at the commit, None if
    unknown. `contacts`, `reproduce` and `reproduce_suites` come from app.yaml. `notice` (Markdown) answers the person
    who pressed a button. `contexts` are the contexts of listed failures, by suite and test. `quarantine` applies to
    this target now, `ended` has the items that applied until an earlier day. `unreliable` are the suites with
    unreliable results. `degraded` (Markdown) says why the target accepts fewer requests than usual; it is empty if it
    does not. `numbers` compares what a pull request's tests measured with the nightly runs. `benchmark` is the command
    that compares head and base on the device; empty if nobody needs it, or the target takes no requests.
    """

    state: TargetState
    compared: Mapping[str, ComparedSuite]
    files: Collection[str] | None = None
    contacts: tuple[str, ...] = ()
    reproduce: str = ""
    reproduce_suites: Mapping[str, str] = field(default_factory=dict[str, str])
    ignored: IgnoredFailures | None = None
    over: bool = False
    notice: str = ""
    contexts: Mapping[tuple[str, str], FailureContext] = field(default_factory=dict)
    quarantine: Quarantine = NO_QUARANTINE
    ended: Quarantine = NO_QUARANTINE
    unreliable: Mapping[str, SuiteHealth] = field(default_factory=dict)
    degraded: str = ""
    numbers: NumbersOfPull = NOT_COMPARED
    benchmark: str = ""

    @cached_property
    def unexpected_numbers(self) -> list[UnexpectedNumber]:
        """The numbers of a pull request that the nightly runs did not lead to expect, without quarantined tests."""
        return [number for number in self.numbers.unexpected if not self.quarantine.of(number.test)]

    @cached_property
    def suites(self) -> tuple[tuple[SuiteState, ComparedSuite], ...]:
        """The suites with their comparisons, by name."""
        return tuple((self.state.suites[name], self.compared[name]) for name in sorted(self.state.suites))

    @cached_property
    def _arrived(self) -> tuple[tuple[SuiteState, ComparedSuite], ...]:
        """The suites with results, even without any test; for the other suites there is nothing to report yet."""
        return tuple((suite, compared) for suite, compared in self.suites if suite.seen or suite.complete)

    @cached_property
    def reported(self) -> tuple[tuple[SuiteState, ComparedSuite], ...]:
        """The suites whose results are usable."""
        return tuple((suite, compared) for suite, compared in self._arrived if not compared.comparison.infra)

    @cached_property
    def infra(self) -> tuple[tuple[str, str], ...]:
        """The suites whose results are unusable, and why."""
        return tuple(
            (suite.suite, compared.comparison.infra) for suite, compared in self._arrived if compared.comparison.infra
        )

    @cached_property
    def untested(self) -> int:
        """The number of tests if all suites that have arrived skipped all tests; 0 if any test ran."""
        skipped = bool(self.reported) and all(untested(suite.seen) for suite, _ in self.reported)
        return sum(len(suite.seen) for suite, _ in self.reported) if skipped else 0

    @cached_property
    def failure_classes(self) -> Mapping[tuple[str, str], FailureClass]:
        """The class of each failed test, by suite and test ID, whether somebody ignores it or not."""
        return {
            (suite.suite, test): failure_class
            for suite, compared in self.suites
            for test, failure_class in _classes(compared.comparison, self.quarantine)
        }

    def count(self, failure_class: FailureClass, suite: str | None = None) -> int:
        """Return the number of failures of a class, of one suite or of all."""
        return sum(
            failure_class is candidate and suite in (None, candidate_suite)
            for (candidate_suite, _), candidate in self.failure_classes.items()
        )

    @cached_property
    def all_new_failures(self) -> tuple[NewFailure, ...]:
        """All new failures, ignored ones too; those that say most about the code come first."""
        failures = [
            _failure(suite, test) for suite, compared in self.reported for test in compared.comparison.new_failures
        ]
        return tuple(sorted(failures, key=_evidence))

    @cached_property
    def new_failures(self) -> tuple[NewFailure, ...]:
        """The new failures that are neither ignored nor of quarantined tests."""
        ignored = self.ignored.tests if self.ignored else frozenset()
        return tuple(failure for failure in self._unquarantined if (failure.suite, failure.test) not in ignored)

    @property
    def ignored_failures(self) -> int:
        """The number of ignored new failures."""
        return len(self._unquarantined) - len(self.new_failures)

    @cached_property
    def _unquarantined(self) -> tuple[NewFailure, ...]:
        classes = self.failure_classes
        return tuple(
            failure for failure in self.all_new_failures if classes[failure.suite, failure.test] is FailureClass.NEW
        )

    @property
    def quarantined_counts(self) -> tuple[int, int]:
        """The numbers of failures of quarantined tests: of new ones, and of those in suites without a baseline."""
        uncompared = {suite.suite for suite, compared in self.reported if not compared.comparison.has_baseline}
        new_failures = len(self.all_new_failures) - len(self._unquarantined)
        return new_failures, sum(failure.suite in uncompared for failure, _ in self.quarantined)

    @cached_property
    def quarantined(self) -> tuple[tuple[NewFailure, QuarantinedTest], ...]:
        """The failures that count as quarantined, new or not, each with its item of app.yaml."""
        classes = self.failure_classes
        return tuple(
            (failure, item)
            for failure, item in self._failing_in(self.quarantine)
            if classes[failure.suite, failure.test] is FailureClass.QUARANTINED
        )

    @cached_property
    def released(self) -> tuple[tuple[NewFailure, QuarantinedTest], ...]:
        """The failing tests whose quarantine has ended."""
        return tuple(
            (failure, item) for failure, item in self._failing_in(self.ended) if not self.quarantine.of(failure.test)
        )

    def _failing_in(self, quarantine: Quarantine) -> tuple[tuple[NewFailure, QuarantinedTest], ...]:
        return tuple(
            (_failure(suite, test), item)
            for suite, compared in self.reported
            for test in compared.comparison.failing
            if (item := quarantine.of(test))
        )

    @cached_property
    def known_flaky(self) -> tuple[tuple[NewFailure, Flakiness], ...]:
        """The failures that the known flakiness of their tests explains."""
        return tuple(
            (_failure(suite, test), compared.flakiness.get(test, FLAKY_RUN))
            for suite, compared in self.reported
            for test in compared.comparison.known_flaky
            if self.failure_classes[suite.suite, test] is FailureClass.KNOWN_FLAKY
        )

    @cached_property
    def unjudged(self) -> int:
        """The number of failing tests in suites without a baseline: whether they are new is unknown."""
        return self.count(FailureClass.UNJUDGED)

    @cached_property
    def external_id(self) -> str:
        """The ID of the newest run, by the times in the manifests."""
        runs = [run for suite in self.state.suites.values() for run in (*suite.runs, *suite.waiting, *suite.broken)]
        newest = max(runs, key=lambda run: (run.claims.started_at if run.claims else "", run.key.run_id), default=None)
        return newest.key.run_id if newest else ""


def _classes(comparison: Comparison, quarantine: Quarantine) -> Iterator[tuple[str, FailureClass]]:
    """Yield the failed tests of a suite with their classes."""
    flaky, known_flaky, new = set(comparison.flaky), set(comparison.known_flaky), set(comparison.new_failures)
    for test in comparison.failing:
        if comparison.infra:
            yield test, FailureClass.UNUSABLE
            continue
        yield (
            test,
            class_of_failure(
                failed_before=test not in new if comparison.has_baseline else None,
                also_passed=test in flaky,
                explained=test in known_flaky,
                quarantined=quarantine.of(test) is not None,
            ),
        )


def _failure(suite: SuiteState, test: str) -> NewFailure:
    return NewFailure(suite.suite, test, suite.seen.get(test, SeenTest(Status.FAILED)), suite.details)


def _last_frame(text: str, path: str) -> int | None:
    r"""Return the line of the last frame in a file: pytest writes `path:12:`, Python `File "path", line 12`.

    The path may follow the lab's own folder, as in `/home/lab/src/tests/test_a.py:12:`, unless it has no folder itself
    (then it may be another file of the same name), or that folder has installed packages.
    """
    last = None
    for text_line in text.replace("\0", "\N{REPLACEMENT CHARACTER}").splitlines():
        if not path or path not in text_line:
            continue
        # From the right: in `/home/lab/a/a/a:12`, the path `a/a` is also part of its folder.
        for match in _FRAME.finditer("\0".join(text_line.rsplit(path))):
            folder = match["folder"]
            if (not folder or "/" in path) and not any(name in folder for name in FOREIGN):
                last = int(match["line"])
    return last if last is not None and 1 <= last <= LAST_LINE else None


def _evidence(failure: NewFailure) -> tuple[int, bool, str, str]:
    """Return the sort key of a failure: those that say most about the code come first."""
    return RANK.get(failure.seen.trouble, ASSERTED), not failure.seen.message, failure.suite, failure.test
