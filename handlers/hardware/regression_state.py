"""Which tests of a target people were told of as failing, since when, and what a night makes of them: no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bot.results.compare.diff import GOOD, MASS_TESTS, absent
from bot.results.model import BAD
from bot.results.report.compared import exit_status
from bot.results.report.findings import Baseline, Findings
from bot.results.state import SuiteState

MOST_TESTS = 2_000
"""Tests that are kept for one target. Where there are more, the largest regression is cut: it has one cause."""
COMMIT_PAGE, COMPARE_PAGE = "/commit/", "{repository}/compare/{good}...{since}"
"""https://docs.github.com/en/pull-requests/committing-changes-to-your-project/viewing-and-comparing-commits"""


@dataclass(frozen=True, slots=True)
class Regression:
    """Tests of a suite that began to fail together.

    They began at the commit `since`, and ended well at `good`; `url` is the page of what changed between the two, empty
    where it is not known. `mass`: so many at once that none of them is confirmed.
    """

    suite: str
    since: str
    good: str
    url: str
    tests: tuple[str, ...]
    mass: bool = False


@dataclass(frozen=True, slots=True)
class KnownRegressions:
    """What is known of a target after the newest nightly run that was judged, the commit `nightly_sha`.

    `committed_at` is when that was committed, in seconds since 1970. `reported`: people had a message about this
    run, and get no second one. They know of `failing`; a message with the next run in which it fails names `late`.
    `news` is the key of the newest message, empty where there was none yet.
    """

    nightly_sha: str = ""
    committed_at: float = 0.0
    reported: bool = False
    failing: tuple[Regression, ...] = ()
    late: tuple[Regression, ...] = ()
    news: str = ""


@dataclass(frozen=True, slots=True)
class RegressionChanges:
    """What is news in a night: tests that began to fail, that end well again, and that are gone without that."""

    began: tuple[Regression, ...] = ()
    well: tuple[Regression, ...] = ()
    removed: tuple[Regression, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.began or self.well or self.removed)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What became of a regression's tests.

    Of `unknown` ones, such as skipped ones, a night tells nothing; `left` are these and the failing ones.
    """

    failing: Regression
    unknown: Regression
    left: Regression
    well: Regression
    removed: Regression


def judge(
    findings: Findings, known: KnownRegressions, committed_at: float
) -> tuple[KnownRegressions, RegressionChanges]:
    """Return what is known after a night, and what of it is told: one message for a night at most.

    The night must not be older than the one that was judged last. It is judged again when more of it arrives, or of the
    nights before; what that shows once people had their message waits for the next night.
    """
    nightly_sha, fresh = findings.state.sha, _began(findings)
    if known.reported and known.nightly_sha == nightly_sha:
        late = (*known.late, *_without(fresh, (*known.failing, *known.late)))
        return replace(known, late=_bounded(late)), RegressionChanges()
    ended = _ended(findings, (*known.failing, *known.late))
    fates = [_fate(findings, ended.get(regression.suite), regression) for regression in known.failing]
    came_late = [_fate(findings, ended.get(regression.suite), regression) for regression in known.late]
    failing = _some(fate.left for fate in fates)
    began = _without((*_some(fate.failing for fate in came_late), *fresh), failing)
    changes = RegressionChanges(began, _some(fate.well for fate in fates), _some(fate.removed for fate in fates))
    late = _some(fate.unknown for fate in came_late)
    return KnownRegressions(
        nightly_sha, committed_at, bool(changes), _bounded((*failing, *began)), late, known.news
    ), changes


def _began(findings: Findings) -> tuple[Regression, ...]:
    """Return what this night confirms, and what of it is a mass; a flaky test is in none of it, as it says nothing."""
    found = []
    for suite, reported in findings.reported:
        if reported.comparison.mass and reported.baseline:
            tests = reported.comparison.new_failures
            found.append(_since(suite.suite, findings.state.sha, reported.baseline, tests, mass=True))
        elif reported.confirmed and reported.baseline and reported.good:
            found.append(
                _since(suite.suite, reported.baseline.sha, reported.good, tuple(sorted(reported.confirmed)), mass=False)
            )
    return tuple(found)


def _since(suite: str, since: str, good: Baseline, tests: tuple[str, ...], *, mass: bool) -> Regression:
    repository, is_page, _ = good.url.partition(COMMIT_PAGE)
    url = COMPARE_PAGE.format(repository=repository, good=good.sha, since=since) if is_page else ""
    return Regression(suite, since, good.sha, url, tests, mass)


@dataclass(frozen=True, slots=True)
class _Ended:
    """How the tests of all regressions of a suite ended: found at once, as each look goes through the whole suite."""

    renamed: Mapping[str, str]
    failing: frozenset[str]
    well: frozenset[str]
    removed: frozenset[str]


def _ended(findings: Findings, regressions: Iterable[Regression]) -> dict[str, _Ended]:
    """Return how the tests of regressions ended, by suite; suites that tell nothing are missing."""
    tests = defaultdict[str, list[str]](list)
    for regression in regressions:
        tests[regression.suite] += regression.tests
    ended = {}
    for suite, reported in findings.reported:
        if suite.suite in tests:
            renamed = dict(reported.comparison.renamed)
            sides = _sorted(suite, [renamed.get(test, test) for test in tests[suite.suite]])
            ended[suite.suite] = _Ended(renamed, *map(frozenset, sides))
    return ended


def _fate(findings: Findings, ended: _Ended | None, regression: Regression) -> _Fate:
    failing, unknown, well, removed = list[str](), list[str](), list[str](), list[str]()
    if ended is not None:
        tests = dict.fromkeys(ended.renamed.get(test, test) for test in regression.tests)
        sides = (ended.failing, ended.well, ended.removed)
        failing, well, removed = ([test for test in tests if test in side] for side in sides)
        removed.sort()
        unknown = sorted(tests.keys() - {*failing, *well, *removed})
    elif regression.suite in findings.state.suites or regression.suite in findings.state.missing_suites:
        unknown = [*regression.tests]
    else:
        # It was missing the night before, too: the lab has given it up.
        removed = [*regression.tests]
    left = sorted([*failing, *unknown])
    return _Fate(*(_part(regression, tests) for tests in (failing, unknown, left, well, removed)))


def _part(regression: Regression, tests: Iterable[str]) -> Regression:
    part = tuple(tests)
    # What is left of a mass when most of it is well again are tests like others.
    return replace(regression, tests=part, mass=regression.mass and len(part) >= MASS_TESTS)


def _sorted(suite: SuiteState, tests: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Return those of a suite's tests that fail, that end well, and that are gone."""
    seen = {test: suite.seen[test].status for test in tests if test in suite.seen}
    returned, removed = absent(suite.seen, tests, exit_status=exit_status(suite))
    failing = [test for test, status in seen.items() if status in BAD]
    well = [*(test for test, status in seen.items() if status in GOOD), *sorted(returned)]
    return failing, well, sorted(removed) if suite.complete else []


def _without(regressions: Iterable[Regression], others: Iterable[Regression]) -> tuple[Regression, ...]:
    """Return regressions without the tests that others have, and each test once."""
    known = {(other.suite, test) for other in others for test in other.tests}
    left = []
    for regression in regressions:
        tests = tuple(test for test in regression.tests if (regression.suite, test) not in known)
        known |= {(regression.suite, test) for test in tests}
        left.append(replace(regression, tests=tests))
    return _some(left)


def _some(regressions: Iterable[Regression]) -> tuple[Regression, ...]:
    return tuple(regression for regression in regressions if regression.tests)


def _bounded(regressions: Iterable[Regression]) -> tuple[Regression, ...]:
    every, room, remaining = tuple(regressions), MOST_TESTS, dict[int, Regression]()
    for place in sorted(range(len(every)), key=lambda place: len(every[place].tests)):
        remaining[place] = replace(every[place], tests=every[place].tests[:room])
        room -= len(remaining[place].tests)
    return _some(remaining[place] for place in sorted(remaining))
