"""Decide which changes of a target are news: failures that began to last, recovered or were removed. No I/O."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nightjar_formats.model import TargetKey
from nightjar_formats.strict_json import read_json

from bot.results.compare.diff import absent
from bot.results.compare.health import SuiteHealth
from bot.results.compare.quarantine import Quarantine
from bot.results.report.compared import exit_status
from bot.results.state import SuiteState
from bot.results.store.failures.failures import Failure, SuiteFailures

STEADY_WAIT = 7 * 86400.0
"""The least seconds between two commits with a message about steady failures in unreliable results of a target."""
REMOVED = "removed"
"""The stored way in which a reported failure ends whose test was removed."""


@dataclass(frozen=True, slots=True)
class Regression:
    """Tests of a suite that began to fail together: at the commit `since`; `good` is empty if they never passed."""

    suite: str
    since: str
    good: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """The newest nightly run of a target that was evaluated, the commit `nightly_sha`, and what was reported.

    `committed_at` is the time of that commit, in seconds since 1970. `news` is the key of the newest message, empty if
    there was none yet; `page` is the page of the repository. `unreliable` are the suites that a message reported as
    unreliable. `steady_at` is the time of the commit of the last message about steady failures in unreliable results.
    Reported failures are in the result store.
    """

    nightly_sha: str = ""
    committed_at: float = 0.0
    news: str = ""
    page: str = ""
    unreliable: tuple[str, ...] = ()
    steady_at: float = 0.0


@dataclass(frozen=True, slots=True)
class RegressionChanges:
    """The changes to report: tests whose failure lasts, that recovered, and that were removed while they failed.

    `unreliable` and `reliable` are the suites whose results became unreliable, or are reliable again.
    """

    began: tuple[Failure, ...] = ()
    recovered: tuple[Failure, ...] = ()
    removed: tuple[Failure, ...] = ()
    unreliable: tuple[str, ...] = ()
    reliable: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is a change to report."""
        return bool(self.has_tests or self.unreliable or self.reliable)

    @property
    def has_tests(self) -> bool:
        """Return whether a single test changed."""
        return bool(self.began or self.recovered or self.removed)


@dataclass(frozen=True, slots=True)
class EvaluatedTarget:
    """A target with the newest of its runs, the commit `sha`, and what its texts need.

    `page` is the page of the repository, empty if unknown. `late` is an older commit whose results have just arrived,
    with its time in seconds since 1970. `quarantined` counts new lasting failures of quarantined tests, which are not
    reported. `unreliable` has the suites with unreliable results, by name, and `held` counts the changes of their
    tests, which are not reported either.
    """

    about: TargetKey
    sha: str
    committed_at: float
    page: str = ""
    contacts: tuple[str, ...] = ()
    late: tuple[str, float] | None = None
    quarantined: int = 0
    unreliable: Mapping[str, SuiteHealth] = field(default_factory=dict)
    held: int = 0


def find_changes(
    suites: Iterable[SuiteFailures], given_up: Collection[str], suite_at: Callable[[SuiteFailures], SuiteState]
) -> tuple[RegressionChanges, tuple[Failure, ...]]:
    """Return the changes in the newest runs of a target, and all failures that people know about after that.

    `given_up` are the suites that the lab no longer sends; their failures are removed. `suite_at` returns a suite at
    its newest run, and is called only where a failing test is absent from it.
    """
    began, still, recovered, removed = list[Failure](), list[Failure](), list[Failure](), list[Failure]()
    for suite in suites:
        # Otherwise the issue would stay open for ever (docs/decisions/regression-notifications.md).
        if suite.suite in given_up:
            removed += [*suite.still, *suite.recovered, *suite.absent]
            continue
        began += suite.began
        still += suite.still
        recovered += suite.recovered
        if suite.absent:
            state = suite_at(suite)
            # A file that could not be collected runs again under the IDs of its tests.
            recovered_files, missing = absent(
                state.seen, [failure.test for failure in suite.absent], exit_status=exit_status(state)
            )
            recovered += [failure for failure in suite.absent if failure.test in recovered_files]
            removed += [failure for failure in suite.absent if failure.test in missing]
            still += [
                failure
                for failure in suite.absent
                if failure.test not in recovered_files and failure.test not in missing
            ]
    return RegressionChanges(tuple(began), tuple(recovered), tuple(removed)), (*still, *began)


def without_quarantined(
    changes: RegressionChanges, failing: Sequence[Failure], quarantine: Quarantine
) -> tuple[RegressionChanges, tuple[Failure, ...], int]:
    """Return the changes and the failures without new failures of quarantined tests, and the number of those.

    The bot does not store these failures as reported: if a test still fails when its quarantine ends, that is news.
    """
    held = {failure for failure in changes.began if quarantine.of(failure.test)}
    began = tuple(failure for failure in changes.began if failure not in held)
    return replace(changes, began=began), tuple(failure for failure in failing if failure not in held), len(held)


def without_unreliable(
    changes: RegressionChanges,
    failing: Sequence[Failure],
    unreliable: Collection[str],
    reported_suites: Collection[str],
    *,
    with_steady: bool = False,
) -> tuple[RegressionChanges, tuple[Failure, ...], int]:
    """Return the changes and the failures of reliable suites only, and the number of changes that are left out.

    The bot does not store these changes as reported: those that still hold when the results are reliable again are
    news. `reported_suites` are the suites that were reported as unreliable; the returned changes say which suites
    became unreliable, and which are reliable again. `with_steady`: steady failures stay among the changes.
    """
    sides = (changes.recovered, changes.removed)
    recovered, removed = ([failure for failure in side if failure.suite not in unreliable] for side in sides)
    new = {failure for failure in changes.began if failure.suite in unreliable and not (with_steady and failure.steady)}
    ended = [failure for side in sides for failure in side if failure.suite in unreliable]
    reported = RegressionChanges(
        tuple(failure for failure in changes.began if failure not in new),
        tuple(recovered),
        tuple(removed),
        tuple(sorted(set(unreliable) - set(reported_suites))),
        tuple(sorted(set(reported_suites) - set(unreliable))),
    )
    return reported, (*(failure for failure in failing if failure not in new), *ended), len(new) + len(ended)


def group_failures(failures: Iterable[Failure]) -> tuple[Regression, ...]:
    """Group failures that began together, by suite; the tests of each group are sorted."""
    groups: dict[Regression, list[str]] = {}
    for failure in sorted(failures, key=lambda failure: (failure.suite, failure.test)):
        groups.setdefault(Regression(failure.suite, failure.since, failure.good, ()), []).append(failure.test)
    return tuple(replace(group, tests=tuple(tests)) for group, tests in groups.items())


def pack_failures(failures: Mapping[str, Sequence[Failure]]) -> str:
    """Return failures, by how they ended, as compressed text: thousands of similar names go into one effect.

    Before compression, the text is JSON such as `{"recovered": [[SUITE, SINCE, GOOD, TEST, TEST]]}`.
    """
    plain = {
        kind: [[group.suite, group.since, group.good, *group.tests] for group in group_failures(ended)]
        for kind, ended in failures.items()
    }
    # Sorted, because the key of the message is a digest of this text. Base64, because effects are stored as JSON.
    return base64.b64encode(zlib.compress(json.dumps(plain, sort_keys=True).encode())).decode()


def unpack_failures(text: str) -> dict[str, list[Failure]]:
    """Return the failures that `pack_failures` compressed."""
    plain = read_json(zlib.decompress(base64.b64decode(text)))
    return {
        kind: [Failure(suite, test, since, good) for suite, since, good, *tests in groups for test in tests]
        for kind, groups in plain.items()
    }
