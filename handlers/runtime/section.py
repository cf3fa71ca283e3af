"""Write the section about runtimes; the server does this in a separate process (`bot.core.untrusted`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.results.compare.renames import MAX_STEPS, search_renames
from handlers.ci_reports import wording
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes
from handlers.runtime import texts

SMALLEST_CHANGE = 30.0
"""Seconds; a smaller difference of a suite's total is not reported, whatever its percentage."""
MOST_NEW = 10
"""New tests that the section lists, the slowest ones."""
MOST_SUITES = 20
MOST_PERCENT = 1_000.0
"""A greater change is shown as a factor."""
MINUTES = 100.0
"""Seconds; a longer time is shown in minutes."""


@dataclass(frozen=True, slots=True)
class RuntimeChange:
    """By how much the total of a suite differs from the base's; times are in seconds."""

    suite: str
    before: float
    now: float

    @property
    def percent(self) -> float:
        """Return the difference in percent of the base's total."""
        return 100.0 * (self.now - self.before) / self.before


@dataclass(frozen=True, slots=True)
class NewTest:
    """A test that the base does not have, and the seconds that it takes."""

    suite: str
    test: str
    seconds: float
    perhaps_renamed: bool = False
    """Renamed tests were not searched for in its suite, as so many names changed."""


def describe_runtimes(tested: HeadAndBase, percent: int, least: float, *, most_steps: int = MAX_STEPS) -> str:
    """Return the section's text, empty if there is nothing to report.

    A suite is listed if its total differs by more than `percent`, a new test if it takes `least` seconds or more.
    `most_steps` bounds the search for renamed tests in each suite.
    """
    changes = changed(tested, percent)
    new = slow_new_tests(tested, least, most_steps=most_steps)
    if not (changes or new):
        # If no suite could be compared, report why: otherwise nobody would learn of it.
        lines = [] if tested.suites else list(tested.troubles)
    else:
        lines = [_change_line(tested, one) for one in changes[:MOST_SUITES]]
    if not (lines or new):
        return ""
    several = len(tested.suites) > 1
    rows = [f"{wording.name_of_test(one.suite, one.test, several=several)}, {_time(one.seconds)}" for one in new]
    parts = [
        "\n".join(
            [wording.heading(texts.RUNTIMES_TITLE, tested), *(["", *(f"- {line}" for line in lines)] if lines else [])]
        )
    ]
    if rows:
        parts.append(f"{texts.SLOW_TITLE}:\n{wording.rows_of(rows[:MOST_NEW], len(rows))}")
    if any(one.perhaps_renamed for one in new):
        parts.append(texts.RUNTIMES_UNSEARCHED.format(most=most_steps))
    return "\n\n".join(parts)


def changed(tested: HeadAndBase, percent: int) -> list[RuntimeChange]:
    """Return the suites whose total differs by more than `percent`, the most changed first.

    Incomplete suites are left out: missing tests would look like saved time.
    """
    found = []
    for name, here, base in _pairs(tested):
        one = RuntimeChange(name, sum(base.suite.seconds.values()), sum(here.seconds.values()))
        much = abs(one.now - one.before) >= SMALLEST_CHANGE
        whole = here.complete and base.suite.complete
        if whole and one.before > 0 and much and abs(one.percent) > percent:
            found.append(one)
    return sorted(found, key=lambda one: (-abs(one.now - one.before), one.suite))


def slow_new_tests(tested: HeadAndBase, least: float, *, most_steps: int = MAX_STEPS) -> list[NewTest]:
    """Return the tests that the base does not have and that take `least` seconds or more, the slowest first.

    One that was renamed, or was skipped with its whole file, is not new.
    """
    found = []
    for name, here, base in _pairs(tested):
        new = {test for test in here.seen if test not in base.suite.seen and not base.suite.skipped(test)}
        slow = {test for test in new if here.seconds.get(test, 0.0) >= least}
        if not slow:
            continue
        renamed = search_renames(base.suite.seen.keys() - here.seen.keys(), new, most_steps=most_steps)
        # None: the search was given up, and each row says that it may be a renamed test.
        slow -= set((renamed or {}).values())
        found += [NewTest(name, test, here.seconds[test], renamed is None) for test in slow]
    return sorted(found, key=lambda one: (-one.seconds, one.suite, one.test))


def _pairs(tested: HeadAndBase) -> list[tuple[str, SuiteOutcomes, BaseSuite]]:
    both: Mapping[str, BaseSuite] = tested.bases
    return [(name, here, both[name]) for name, here in sorted(tested.suites.items()) if name in both]


def _change_line(tested: HeadAndBase, one: RuntimeChange) -> str:
    base = tested.bases[one.suite]
    return texts.RUNTIME_CHANGED.format(
        suite=wording.suite_name(one.suite),
        change=_change(one),
        before=_time(one.before),
        now=_time(one.now),
        tests_before=len(base.suite.seen),
        tests=len(tested.suites[one.suite].seen),
        base=wording.link_to_commit(base),
    )


def _change(one: RuntimeChange) -> str:
    if one.percent < MOST_PERCENT:
        return f"{one.percent:+,.1f} %"
    return texts.MANY_TIMES.format(times=one.now / one.before)


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < MINUTES else f"{seconds / 60:,.1f} min"
