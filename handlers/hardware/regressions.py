"""Confirmed regressions of hardware targets on the nightly branch: people are told once for each lab, target and night.

It goes by the same delivery as the check run, and by the same comparison, but it is asked on its own: what goes wrong
here keeps no check from being written. A night in which nothing fails, and nothing failed before, costs no request.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.effects.issues import EnsureIssue, is_posted
from bot.effects.remember import StoreRecord
from bot.engine.records import Key, Record
from bot.news.effects import IssueState, message_effects
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.deliveries import CHECK_EVENT, check_event_in
from bot.results.model import BAD, TargetKey
from bot.results.report.baseline import compared_suites
from bot.results.report.findings import Findings
from bot.results.service import RESULTS
from handlers.hardware import texts
from handlers.hardware.regression_state import KnownRegressions, judge
from handlers.hardware.regression_text import issue_body, issue_title, news_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.config.alarms import Place
    from bot.results.state import TargetState

NAME = "regressions"
OLD = 7 * 86400.0
"""Seconds after which a commit is history: what an empty database reads out of a full bucket is no news."""


router = Router()

REGRESSIONS = Record(
    "regressions", 1, KnownRegressions, "the regressions of a target, and what was reported about them", days=None
)


@router.on(CHECK_EVENT.name, name=NAME, feature="regressions")
async def report_regressions(context: Context) -> Plan:
    """Look at a night of which everything has come that will, and decide what people are told of it."""
    check_event, results, regressions = (
        check_event_in(context.delivery.payload),
        context.config.results,
        context.config.regressions,
    )
    lab = results.labs.get(check_event.about.lab) if results else None
    if regressions is None or lab is None or check_event.about.target not in lab.targets:
        return NOTHING
    if not check_event.over:
        return Plan(why=texts.NOT_OVER)
    about = context.part(RESULTS).canonical(check_event.about)
    admission = await context.part(RESULTS).admission(about.repository, check_event.sha)
    if admission is None or not admission.mainline:
        return Plan(why=texts.NOT_NIGHTLY)
    key = REGRESSIONS.of(context.repository.id, about.lab, about.target)
    known = await context.records.get(key) or KnownRegressions()
    if admission.committed_at < max(known.committed_at, context.delivery.received_at - OLD):
        return Plan(why=texts.NIGHTLY_TOO_OLD)
    behind = known.nightly_sha != check_event.sha and "issue" in regressions.to
    behind = behind and not await is_posted(context.records, context.repository.id, known.news)
    state = await context.part(RESULTS).state(about, check_event.sha)
    if not (known.failing or known.late or _fails(state)):
        now = (
            known
            if known.nightly_sha == check_event.sha
            else KnownRegressions(check_event.sha, admission.committed_at, news=known.news)
        )
        closed = EnsureIssue(_issue_of(about), news_key=known.news, as_of=now.committed_at)
        return Plan((*_remembered(key, known, now), *([closed] if behind else [])), why=texts.NOTHING_FAILS)
    findings = Findings(
        state,
        await compared_suites(
            context.part(RESULTS), context.github, context.repository.full_name, state, context.config.aliases
        ),
        contacts=lab.contacts,
    )
    # In a thread, as it reads details from the database; linear in the tests of the runs (tests/test_handler_work.py).
    return await asyncio.to_thread(
        decide_regressions, findings, known, admission.committed_at, regressions.to, key, behind=behind
    )


def decide_regressions(
    findings: Findings,
    known: KnownRegressions,
    committed_at: float,
    to: Sequence[Place],
    key: Key[KnownRegressions],
    *,
    behind: bool = False,
) -> Plan:
    """Return what is remembered of a night, under a key, and what is told of it.

    It is remembered first: where a channel is away for hours, the next night is judged by what was told in this one.
    `behind`: the issue does not say what was told last, GitHub having been away for too long; so it is brought up to
    date even without news.
    """
    now, changes = judge(findings, known, committed_at)
    issue = _issue_of(findings.state.about)
    title, body = issue_title(findings), issue_body(findings, now.failing)
    if not changes:
        remaining = EnsureIssue(issue, title, body, news_key=known.news, as_of=committed_at)
        why = texts.ALREADY_REPORTED if known.reported and known.nightly_sha == now.nightly_sha else texts.NO_NEWS
        return Plan((*_remembered(key, known, now), *([remaining] if behind else [])), why=why)
    news = news_of(findings, changes, now.failing)
    now = replace(now, news=f"{issue}:{now.nightly_sha}")
    issue_state = IssueState(issue, title, body, begins=bool(changes.began), as_of=committed_at)
    return Plan((*_remembered(key, known, now), *message_effects(to, now.news, news, issue_state)), why=news.title)


def _issue_of(about: TargetKey) -> str:
    return f"regressions:{about.lab}/{about.target}"


def _remembered(key: Key[KnownRegressions], before: KnownRegressions, now: KnownRegressions) -> tuple[Effect, ...]:
    return (StoreRecord.of(key, now),) if now != before else ()


def _fails(state: TargetState) -> bool:
    return any(seen.status in BAD for suite in state.suites.values() for seen in suite.seen.values())
