"""Report how long the tests of a pull request's head take: suites whose total changed much, and slow new tests.

The section reports only significant differences, as the predecessor was meant to (30 %). It differs on purpose: the
predecessor asked the CI server for its last 26 builds and compared whole builds with their mean. This feature compares
the tests with those of the nearest tested ancestor, suite by suite, and removes a section that has nothing to report.
"""

from __future__ import annotations

from dataclasses import replace

from nightjar_formats.model import TargetKey

from bot.config.types import seconds
from bot.effects.section_state import SECTION_EVENT
from bot.feature import Feature
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.service import RESULTS
from bot.results.store.lists.earlier_durations import commits_per_day, earlier_durations
from handlers.ci_reports import sections as reports
from handlers.ci_reports.outcomes import HeadAndBase
from handlers.runtime import section, texts
from handlers.runtime.config import KEYS, RUNTIME, Runtime
from handlers.runtime.section import describe_runtimes

EARLIER_RUNS = 8
"""Runs of the base's branch with whose spread a head is compared."""
DAYS = 7
"""Days over which the tested commits are counted."""
NAME = "runtime"
KEY = "runtime"

router = Router()
reports.request_when_tested(router, NAME, KEY, lambda config: config.of(RUNTIME))


async def report_failure(context: Context, message: str) -> Plan:
    """Show in the section that there are no figures, and why."""
    return reports.failure_section(context, NAME, texts.RUNTIMES_FAILED, message, reason=texts.WHY_RUNTIMES_FAILED)


@router.on(SECTION_EVENT.name, NAME, name=NAME, feature=KEY, on_failure=report_failure)
async def show(context: Context) -> Plan:
    """Show which suites take longer or shorter at a head; remove the section if there is nothing to report."""
    config, event = context.config.of(RUNTIME), SECTION_EVENT.read(context.delivery.payload)
    if config is None:
        return NOTHING
    outcomes = await reports.read_outcomes(context, config, event)
    if isinstance(outcomes, str):
        return Plan(why=outcomes)
    tested = await _with_earlier_runs(context, config, outcomes.tested)
    outcomes = replace(outcomes, tested=tested)
    slow = seconds(config.slow)
    return await reports.compare(context, NAME, event, outcomes, describe_runtimes, config.change, slow)


async def _with_earlier_runs(context: Context, config: Runtime, tested: HeadAndBase) -> HeadAndBase:
    """Add how long the last runs of the base's branch took; of results in the bucket only, where they are stored."""
    if not config.lab or not config.target:
        return tested
    results = context.part(RESULTS)
    target = results.canonical(TargetKey(context.repository.full_name, config.lab, config.target))
    bases = {}
    for name, base in tested.bases.items():
        earlier = await results.read(earlier_durations, target, name, base.sha, EARLIER_RUNS)
        bases[name] = replace(base, totals=earlier.totals, longest=earlier.longest)
    per_day = await results.read(commits_per_day, target, context.delivery.received_at, DAYS)
    return replace(tested, bases=bases, runs_per_day=per_day)


FEATURE = Feature(
    name="runtime",
    config=KEYS,
    router=router,
    sections=(NAME,),
    preload=(section.__name__,),
    titles={
        "runtime-results": "Section on durations",
        "runtime-run": "Section on durations",
        "runtime": "Section on durations",
    },
)
