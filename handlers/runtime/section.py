"""Write the section about runtimes; the server does this in a separate process (`bot.core.untrusted`). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.listing import counted
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
LEAST_RUNS = 4
"""Runs of the base's branch from which their spread is known."""
LEAST_FACTOR = 2.0
"""A test became slower if it takes so many times as long as in the slowest of the base's last runs, or longer."""
HOURS = 60_000.0
"""Seconds; a longer time is shown in hours."""
MINUTES = 100.0
"""Seconds; a longer time is shown in minutes."""


@dataclass(frozen=True, slots=True)
class RuntimeChange:
    """By how much the total of a suite differs from the base's; times are in seconds."""

    suite: str
    base_seconds: float
    head_seconds: float

    @property
    def percent(self) -> float:
        """Return the difference in percent of the base's total."""
        return 100.0 * (self.head_seconds - self.base_seconds) / self.base_seconds


@dataclass(frozen=True, slots=True)
class GrownTest:
    """A test that takes much longer than in the base's last runs; times are in seconds."""

    suite: str
    test: str
    base_seconds: float
    head_seconds: float


@dataclass(frozen=True, slots=True)
class NewTest:
    """A test that the base does not have, and the seconds that it takes."""

    suite: str
    test: str
    seconds: float
    perhaps_renamed: bool = False
    """Renamed tests were not searched for in its suite, as so many names changed."""


def describe_runtimes(tested: HeadAndBase, percent: int, least_seconds: float, *, most_steps: int = MAX_STEPS) -> str:
    """Return the section's text, empty if there is nothing to report.

    A suite is listed if its total is outside the spread of the base's last runs, or differs by more than `percent`
    where these are not known. A new test is listed if it takes `least_seconds` or more.
    `most_steps` bounds the search for renamed tests in each suite.
    """
    changes = changed_suites(tested, percent)
    slow_tests = slow_new_tests(tested, least_seconds, most_steps=most_steps)
    grown_tests = slower_tests(tested)
    if not (changes or slow_tests or grown_tests):
        # If no suite could be compared, report why: otherwise nobody would learn of it.
        lines = [] if tested.suites else list(tested.troubles)
    else:
        lines = [_change_line(tested, change) for change in changes[:MOST_SUITES]]
    if not (lines or slow_tests or grown_tests):
        return ""
    several = len(tested.suites) > 1
    rows = [
        f"{wording.name_of_test(test.suite, test.test, several=several)}, {_time_text(test.seconds)}"
        for test in slow_tests
    ]
    parts = [
        "\n".join(
            [wording.heading(texts.RUNTIMES_TITLE, tested), *(["", *(f"- {line}" for line in lines)] if lines else [])]
        )
    ]
    if grown_tests:
        grown_rows = [
            texts.GROWN.format(
                test=wording.name_of_test(test.suite, test.test, several=several),
                before=_time_text(test.base_seconds),
                now=_time_text(test.head_seconds),
            )
            for test in grown_tests
        ]
        parts.append(f"{texts.GROWN_TITLE}:\n{wording.rows_of(grown_rows[:MOST_NEW], len(grown_rows))}")
    if rows:
        parts.append(f"{texts.SLOW_TITLE}:\n{wording.rows_of(rows[:MOST_NEW], len(rows))}")
    if any(test.perhaps_renamed for test in slow_tests):
        parts.append(texts.RUNTIMES_UNSEARCHED.format(most=most_steps))
    return "\n\n".join(parts)


def changed_suites(tested: HeadAndBase, percent: int) -> list[RuntimeChange]:
    """Return the suites whose total changed, the most changed first.

    It changed if it is outside the range of the base's last runs by the width of this range. If these are not known, it
    changed if it differs by more than `percent`.

    Incomplete suites are left out: missing tests would look like saved time.
    """
    changes = []
    for name, head, base in _suites_with_base(tested):
        change = RuntimeChange(name, sum(base.suite.seconds.values()), sum(head.seconds.values()))
        is_large = abs(change.head_seconds - change.base_seconds) >= SMALLEST_CHANGE
        is_change = abs(change.percent) > percent if change.base_seconds > 0 else False
        if len(base.totals) >= LEAST_RUNS:
            least, most = min(base.totals), max(base.totals)
            margin = max(SMALLEST_CHANGE, most - least)
            is_change = not least - margin < change.head_seconds < most + margin
        is_complete = head.complete and base.suite.complete
        if is_complete and change.base_seconds > 0 and is_large and is_change:
            changes.append(change)
    return sorted(changes, key=lambda change: (-abs(change.head_seconds - change.base_seconds), change.suite))


def slower_tests(tested: HeadAndBase) -> list[GrownTest]:
    """Return the tests that take much longer than in the slowest of the base's last runs, the most changed first."""
    grown = []
    for name, head, base in _suites_with_base(tested):
        for test, taken in head.seconds.items():
            base_seconds = base.suite.seconds.get(test)
            usual = max(base_seconds or 0.0, base.longest.get(test, 0.0))
            if base_seconds is not None and taken - usual >= SMALLEST_CHANGE and taken >= LEAST_FACTOR * usual:
                grown.append(GrownTest(name, test, usual, taken))
    return sorted(grown, key=lambda test: (test.base_seconds - test.head_seconds, test.suite, test.test))


def slow_new_tests(tested: HeadAndBase, least_seconds: float, *, most_steps: int = MAX_STEPS) -> list[NewTest]:
    """Return the tests that the base does not have and that take `least_seconds` or more, the slowest first.

    One that was renamed, or was skipped with its whole file, is not new.
    """
    slow_tests = []
    for name, head, base in _suites_with_base(tested):
        new = {test for test in head.seen if test not in base.suite.seen and not base.suite.skipped(test)}
        slow = {test for test in new if head.seconds.get(test, 0.0) >= least_seconds}
        if not slow:
            continue
        renamed = search_renames(base.suite.seen.keys() - head.seen.keys(), new, most_steps=most_steps)
        # None: the search was given up, and each row says that it may be a renamed test.
        slow -= set((renamed or {}).values())
        slow_tests += [NewTest(name, test, head.seconds[test], renamed is None) for test in slow]
    return sorted(slow_tests, key=lambda test: (-test.seconds, test.suite, test.test))


def _suites_with_base(tested: HeadAndBase) -> list[tuple[str, SuiteOutcomes, BaseSuite]]:
    return [(name, head, tested.bases[name]) for name, head in sorted(tested.suites.items()) if name in tested.bases]


def _change_line(tested: HeadAndBase, change: RuntimeChange) -> str:
    base = tested.bases[change.suite]
    text = texts.RUNTIME_CHANGED.format(
        suite=wording.suite_name(change.suite),
        change=_change(change),
        before=_time_text(change.base_seconds),
        now=_time_text(change.head_seconds),
        tests_before=len(base.suite.seen),
        tests=counted(len(tested.suites[change.suite].seen), "test"),
        base=wording.link_to_commit(base),
    )
    added = change.head_seconds - change.base_seconds
    if added <= 0:
        return text
    a_day = texts.COST_PER_DAY.format(time=_time_text(added * tested.runs_per_day), runs=tested.runs_per_day)
    return text + texts.COST.format(seconds=_time_text(added), per_day=a_day if tested.runs_per_day >= 1 else "")


def _change(change: RuntimeChange) -> str:
    if change.percent < MOST_PERCENT:
        return f"{change.percent:+,.1f} %"
    return texts.MANY_TIMES.format(times=change.head_seconds / change.base_seconds)


def _time_text(seconds: float) -> str:
    if seconds < MINUTES:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:,.1f} min" if seconds < HOURS else f"{seconds / 3600:,.1f} h"
