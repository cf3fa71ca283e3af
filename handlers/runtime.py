"""How long the tests of a pull request's head take: suites whose total differs much from the base, and slow new tests.

Told only where it is worth it, as the predecessor meant to (30 %). Differs from it on purpose: it asked the CI server
for its last 26 builds and compared whole builds with their mean; here tests are compared with those of the nearest
ancestor that was tested, suite by suite, and a section that has nothing to tell is taken away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.ci import reports, words
from bot.ci.outcomes import Base, Outcomes, Suite
from bot.config.types import seconds
from bot.effects.sections import HandOverSection
from bot.plan import NOTHING, Context, Plan, Router
from bot.results.events import CHECK_DUE
from bot.results.renames import renames
from bot.sections import SECTION_DUE, Due

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.config.ci_tests import Runtime
    from bot.events import Delivery

NAME = "runtime"
FEATURE = "runtime"
TITLE = "Runtime of tests"

SMALLEST_CHANGE = 30.0
"""Seconds; a total that differs by less is not worth a word, whatever part of it that is."""
MOST_NEW = 10
"""New tests that are told, the slowest."""
MOST_SUITES = 20
MOST_PERCENT = 1_000.0
"""A greater change is told as a factor."""
MINUTES = 100.0
"""Seconds from which on a time is told in minutes."""

CHANGED = "{suite}: {change} ({before} → {now}, {tests_before:,} → {tests:,} tests), compared with {base}."
MANY_TIMES = "{times:,.0f} times as long"
SLOW_TITLE = "Slow new tests"
TROUBLE = "**Runtime of tests:** how long they take at {sha} could not be found out: {why}"

router = Router()


@dataclass(frozen=True, slots=True)
class Change:
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


@router.on(CHECK_DUE, name="runtime-results", feature=FEATURE)
async def ask_after_results(context: Context) -> Plan:
    """Have the section computed for results that CI uploaded."""
    return await reports.ask_after_results(context, context.config.runtime, NAME)


def concerns(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a workflow run is one of those that run the tests."""
    return reports.is_of_tests(delivery, config.runtime)


@router.on(reports.WORKFLOW_RUN, reports.COMPLETED, name="runtime-run", feature=FEATURE, concerns=concerns)
async def ask_after_run(context: Context) -> Plan:
    """Have the section computed for a workflow run that has ended."""
    return await reports.ask_after_run(context, context.config.runtime, NAME)


async def tell_of_failure(context: Context, told: str) -> Plan:
    """Show in the section that nothing could be found out, and why."""
    return reports.trouble(context, NAME, TROUBLE, told, why="how long tests take could not be found out")


@router.on(SECTION_DUE, NAME, name=NAME, feature=FEATURE, on_failure=tell_of_failure)
async def show(context: Context) -> Plan:
    """Say what takes longer or shorter at a head; with nothing to say, take the section away."""
    config, due = context.config.runtime, Due.of(context.delivery.payload)
    if config is None:
        return NOTHING
    found = await reports.find(context, config, due)
    if isinstance(found, str):
        return Plan(why=found)
    text = await asyncio.to_thread(decide, found.tested, config)
    return Plan((HandOverSection(NAME, due.number, due.sha, text, found.as_of),), why=f"results of {due.sha}")


def decide(tested: Outcomes, config: Runtime) -> str:
    """Return the section's text, empty where nothing is worth telling."""
    changes = changed(tested, config.change)
    new = slow_new_tests(tested, seconds(config.slow))
    if not (changes or new):
        # What could not be compared is told where it was all that there is, or nobody would ever learn of it.
        lines = [] if tested.suites else list(tested.troubles)
    else:
        lines = [_change_line(tested, one) for one in changes[:MOST_SUITES]]
    if not (lines or new):
        return ""
    several = len(tested.suites) > 1
    rows = [f"{words.name_of_test(one.suite, one.test, several=several)}, {_time(one.seconds)}" for one in new]
    parts = ["\n".join([words.heading(TITLE, tested), *(["", *(f"- {line}" for line in lines)] if lines else [])])]
    if rows:
        parts.append(f"{SLOW_TITLE}:\n{words.rows_of(rows[:MOST_NEW], len(rows))}")
    return "\n\n".join(parts)


def changed(tested: Outcomes, percent: int) -> list[Change]:
    """Return the suites whose total differs by more than so much, the most changed first.

    Only what is complete can be compared.
    """
    found = []
    for name, here, base in _pairs(tested):
        one = Change(name, sum(base.suite.seconds.values()), sum(here.seconds.values()))
        much = abs(one.now - one.before) >= SMALLEST_CHANGE
        whole = here.complete and base.suite.complete
        if whole and one.before > 0 and much and abs(one.percent) > percent:
            found.append(one)
    return sorted(found, key=lambda one: (-abs(one.now - one.before), one.suite))


def slow_new_tests(tested: Outcomes, least: float) -> list[NewTest]:
    """Return the tests that the base does not have and that take so many seconds at least, the slowest first.

    One that was renamed, or was skipped with its whole file, is not new.
    """
    found = []
    for name, here, base in _pairs(tested):
        new = {test for test in here.seen if test not in base.suite.seen and not base.suite.skipped(test)}
        slow = {test for test in new if here.seconds.get(test, 0.0) >= least}
        if slow:
            slow -= set(renames(base.suite.seen.keys() - here.seen.keys(), new).values())
        found += [NewTest(name, test, here.seconds[test]) for test in slow]
    return sorted(found, key=lambda one: (-one.seconds, one.suite, one.test))


def _pairs(tested: Outcomes) -> list[tuple[str, Suite, Base]]:
    both: Mapping[str, Base] = tested.bases
    return [(name, here, both[name]) for name, here in sorted(tested.suites.items()) if name in both]


def _change_line(tested: Outcomes, one: Change) -> str:
    base = tested.bases[one.suite]
    return CHANGED.format(
        suite=words.suite_name(one.suite),
        change=_change(one),
        before=_time(one.before),
        now=_time(one.now),
        tests_before=len(base.suite.seen),
        tests=len(tested.suites[one.suite].seen),
        base=words.commit_link(base),
    )


def _change(one: Change) -> str:
    if one.percent < MOST_PERCENT:
        return f"{one.percent:+,.1f} %"
    return MANY_TIMES.format(times=one.now / one.before)


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < MINUTES else f"{seconds / 60:,.1f} min"
