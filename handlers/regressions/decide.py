"""Decide which changes of a target are news: failures that began to last, recovered or were removed. No I/O."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nightjar_formats.model import TargetKey
from nightjar_formats.strict_json import read_json

from bot.engine.records import Record
from bot.results.compare.diff import absent
from bot.results.compare.health import SuiteHealth
from bot.results.compare.quarantine import Quarantine
from bot.results.report.compared import exit_status
from bot.results.state import SuiteState
from bot.results.store.failures import Failure, SuiteFailures

STEADY_WAIT = 7 * 86400.0
"""The least seconds between two commits with a message about steady failures in unreliable results of a target."""
RECOVERED, REMOVED = "recovered", "removed"
"""The stored ways in which a reported failure ends."""


@dataclass(frozen=True, slots=True)
class Regression:
    """Tests of a suite that began to fail together: at the commit `since`; `good` is empty if they never passed."""

    suite: str
    since: str
    good: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownRegressions:
    """The newest nightly run of a target that was evaluated: the commit `nightly_sha`.

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


REGRESSIONS = Record(
    "regressions", 1, KnownRegressions, "the last evaluated nightly run of a target, and its message", days=None
)


@dataclass(frozen=True, slots=True)
class RegressionChanges:
    """The changes to report: tests whose failure lasts, that recovered, and that were removed while they failed.

    Also the suites whose results became `unreliable`, or are `reliable` again.
    """

    began: tuple[Failure, ...] = ()
    recovered: tuple[Failure, ...] = ()
    removed: tuple[Failure, ...] = ()
    unreliable: tuple[str, ...] = ()
    reliable: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.of_tests or self.unreliable or self.reliable)

    @property
    def of_tests(self) -> bool:
        """Return whether there is any of single tests."""
        return bool(self.began or self.recovered or self.removed)


@dataclass(frozen=True, slots=True)
class JudgedTarget:
    """A target with the newest of its runs, the commit `sha`, and what its texts need.

    `page` is that of the repository, empty if unknown. `late` is an older commit whose results have just arrived, with
    its time in seconds since 1970. `quarantined` counts new lasting failures of quarantined tests, which are not
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


def judge(
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
            back, missing = absent(state.seen, [one.test for one in suite.absent], exit_status=exit_status(state))
            recovered += [one for one in suite.absent if one.test in back]
            removed += [one for one in suite.absent if one.test in missing]
            still += [one for one in suite.absent if one.test not in back and one.test not in missing]
    return RegressionChanges(tuple(began), tuple(recovered), tuple(removed)), (*still, *began)


def without_quarantined(
    changes: RegressionChanges, failing: Sequence[Failure], quarantine: Quarantine
) -> tuple[RegressionChanges, tuple[Failure, ...], int]:
    """Return both without failures of quarantined tests that began to last, and how many those are.

    They are not stored as reported either: if a test still fails when the quarantine ends, that is news.
    """
    held = {one for one in changes.began if quarantine.of(one.test)}
    began = tuple(one for one in changes.began if one not in held)
    return replace(changes, began=began), tuple(one for one in failing if one not in held), len(held)


def without_unreliable(
    changes: RegressionChanges,
    failing: Sequence[Failure],
    unreliable: Collection[str],
    known: Collection[str],
    *,
    with_steady: bool = False,
) -> tuple[RegressionChanges, tuple[Failure, ...], int]:
    """Return both without changes of tests in suites whose results are unreliable, and how many changes those are.

    They are not stored as reported either: changes that still hold when the results are reliable again are news.
    `known` are the suites that were reported as unreliable; the changes say which became unreliable, and which reliable
    again. `with_steady`: steady failures stay among the changes.
    """
    sides = (changes.recovered, changes.removed)
    recovered, removed = ([one for one in side if one.suite not in unreliable] for side in sides)
    new = {one for one in changes.began if one.suite in unreliable and not (with_steady and one.steady)}
    ended = [one for side in sides for one in side if one.suite in unreliable]
    reported = RegressionChanges(
        tuple(one for one in changes.began if one not in new),
        tuple(recovered),
        tuple(removed),
        tuple(sorted(set(unreliable) - set(known))),
        tuple(sorted(set(known) - set(unreliable))),
    )
    return reported, (*(one for one in failing if one not in new), *ended), len(new) + len(ended)


def grouped(failures: Iterable[Failure]) -> tuple[Regression, ...]:
    """Group failures that began together, by suite; the tests of each group are sorted."""
    groups: dict[Regression, list[str]] = {}
    for one in sorted(failures, key=lambda one: (one.suite, one.test)):
        groups.setdefault(Regression(one.suite, one.since, one.good, ()), []).append(one.test)
    return tuple(replace(group, tests=tuple(tests)) for group, tests in groups.items())


def packed(failures: Mapping[str, Sequence[Failure]]) -> str:
    """Return failures, by how they ended, as compressed text: thousands of similar names go into one effect."""
    plain = {
        kind: [[one.suite, one.since, one.good, *one.tests] for one in grouped(those)]
        for kind, those in failures.items()
    }
    # Sorted, because the key of the message is a digest of this text. Base64, because effects are stored as JSON.
    return base64.b64encode(zlib.compress(json.dumps(plain, sort_keys=True).encode())).decode()


def unpacked(text: str) -> dict[str, list[Failure]]:
    """Return the failures that `packed` compressed."""
    plain = read_json(zlib.decompress(base64.b64decode(text)))
    return {
        kind: [Failure(suite, test, since, good) for suite, since, good, *tests in groups for test in tests]
        for kind, groups in plain.items()
    }
