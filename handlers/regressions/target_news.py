"""Messages about lasting failures of hardware targets on the nightly branch: one when they are confirmed.

The delivery of the check run triggers this handler, but its plan is separate: an error here does not prevent the check
run. When a run arrives, the newest known run of each suite is evaluated, so a late run may confirm a failure that is
still there. If nothing fails on a target and nothing failed before, the handler sends no request.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.effects.issues import EnsureIssue, is_posted
from bot.effects.remember import StoreRecord
from bot.engine.records import Key
from bot.news.effects import IssueState, message_effects
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import HistoryLink, history_link, no_history
from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.compare.quarantine import quarantine_at
from bot.results.deliveries import CHECK_EVENT, check_event_in
from bot.results.report.baseline import nearest_ancestors
from bot.results.report.texts import counted
from bot.results.service import RESULTS
from bot.results.store.contexts import AskedFailures
from handlers.regressions import texts
from handlers.regressions.config import REGRESSIONS as REGRESSIONS_KEY
from handlers.regressions.decide import (
    RECOVERED,
    REGRESSIONS,
    REMOVED,
    STEADY_WAIT,
    JudgedTarget,
    KnownRegressions,
    RegressionChanges,
    judge,
    packed,
    without_quarantined,
    without_unreliable,
)
from handlers.regressions.effects import StoreReports
from handlers.regressions.groups import NO_HOLD, REGRESSION_GROUP, WAITING_NEWS, NewsHold, active_targets
from handlers.regressions.target_text import issue_body, issue_title, regression_news
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bot.config.places import Place
    from bot.results.compare.context import FailureContext
    from bot.results.state import SuiteState
    from bot.results.store.failures import Failure, NewestRun, SuiteFailures
    from bot.results.store.store import ResultsStore

NAME = "regressions"
OLD = 30 * 86400.0
"""Seconds after which a commit is too old for a message: an empty database that reads a full bucket must not report."""
MOST_CONTEXTS = 200
"""New failures for which a message says how often they failed before, and on which other targets they fail."""
COMMIT_PAGE = "/commit/"


router = Router()


@router.on(CHECK_EVENT.name, name=NAME, feature="regressions")
async def report_regressions(context: Context) -> Plan:
    """Evaluate the newest runs of a target when no more results are expected, and decide which messages to send."""
    event, results = check_event_in(context.delivery.payload), context.config.of(LAB_RESULTS)
    lab = results.labs.get(event.about.lab) if results else None
    regressions = context.config.of(REGRESSIONS_KEY)
    if regressions is None or lab is None or event.about.target not in lab.targets:
        return NOTHING
    # Check runs are written while suites still arrive. A message is posted once, so it waits until all have arrived or
    # the deadline has passed.
    if not event.over:
        return Plan(why=texts.NOT_OVER)
    service = context.part(RESULTS)
    about, failures = service.canonical(event.about), service.store.failures
    admission = await service.admission(about.repository, event.sha)
    if admission is None or not admission.mainline:
        return Plan(why=texts.NOT_NIGHTLY)
    runs = await asyncio.to_thread(failures.newest_runs, about)
    newest = runs[0] if runs else None
    if newest is None:
        return Plan(why=texts.NOTHING_FAILS)
    if newest.committed_at < context.delivery.received_at - OLD:
        return Plan(why=texts.NIGHTLY_TOO_OLD)
    # The check event of the newer commit follows, and evaluates all of this again.
    if newest.sha != event.sha and await asyncio.to_thread(service.store.is_pending, about, newest.sha):
        return Plan(why=texts.NEWER_PENDING)
    key = REGRESSIONS.of(context.repository.id, about.lab, about.target)
    known = await context.records.get(key) or KnownRegressions()
    behind = known.nightly_sha != newest.sha and "issue" in regressions.to
    behind = behind and not await is_posted(context.records, context.repository.id, known.news)
    late = await asyncio.to_thread(failures.late_run, about, newest.sha)
    target = JudgedTarget(about, newest.sha, newest.committed_at, contacts=lab.contacts, late=late)
    nothing_fails = not any(run.failing for run in runs) and not await asyncio.to_thread(failures.reported, about)
    if nothing_fails and not known.unreliable:
        closed = EnsureIssue(_issue_of(about), news_key=known.news, as_of=newest.committed_at)
        return Plan((*_remembered(key, known, target), *([closed] if behind else [])), why=texts.NOTHING_FAILS)
    before, page = await _ancestors(context, about, runs)
    target = replace(target, page=page or known.page)
    # In a thread, as it reads from the database.
    changes, failing = await asyncio.to_thread(
        judged_now, service.store, about, event.sha, before, context.config.of(RENAMES).aliases
    )
    quarantine, _ = quarantine_at(context.config.of(QUARANTINE), about, context.delivery.received_at)
    changes, failing, quarantined = without_quarantined(changes, failing, quarantine)
    # A suite that the lab no longer sends is neither unreliable nor reliable again.
    given_up = await asyncio.to_thread(failures.given_up, about, event.sha)
    every = await service.unreliable(about)
    unreliable = {suite: one for suite, one in every.items() if suite not in given_up}
    reported = set(known.unreliable) - given_up
    with_steady = known.steady_at + STEADY_WAIT <= newest.committed_at
    changes, failing, held = without_unreliable(changes, failing, unreliable, reported, with_steady=with_steady)
    target = replace(target, quarantined=quarantined, unreliable=unreliable, held=held)
    contexts = await asyncio.to_thread(
        contexts_of, service.store, about, runs, before, changes.began, context.config.of(RENAMES).aliases
    )
    hold = await _hold(context, about, newest.committed_at, changes)
    return decide_regressions(
        target, changes, failing, known, regressions.to, key, contexts, hold, history_link(context), behind=behind
    )


async def _hold(context: Context, about: TargetKey, committed_at: float, changes: RegressionChanges) -> NewsHold:
    """Return whether the news of a target waits for others, and which of its failures the issues of groups list."""
    repository_id, where = context.repository.id, about.full_name
    groups = (await context.records.under(REGRESSION_GROUP, repository_id)).values()
    members = [member for group in groups for member in group.members if member.where == where]
    tests = frozenset((member.suite, test) for member in members for test in member.tests)
    hold = NewsHold(repository_id, context.delivery.received_at, {}, grouped=tests)
    if not changes:
        return hold
    judged = active_targets(await context.records.under(REGRESSIONS, repository_id), committed_at)
    others = bool(judged.keys() - {f"{about.lab}:{about.target}"})
    waiting = await context.records.under(WAITING_NEWS, repository_id, about.lab, about.target)
    # What ended is reported after what began.
    shared = others if changes.began else any(one.news and one.about.about == about for one in waiting.values())
    if not shared:
        return replace(hold, others=others)
    shas = {sha for one in changes.began for sha in (one.since, one.good) if sha}
    moments = await asyncio.to_thread(context.part(RESULTS).store.failures.moments, about, shas)
    return replace(hold, moments=moments, others=others, shared=True)


async def _ancestors(context: Context, about: TargetKey, runs: Sequence[NewestRun]) -> tuple[dict[str, str], str]:
    """Return the run before the newest one of each suite in which anything fails, and the page of the repository."""
    suites: dict[str, list[str]] = {}
    for run in runs:
        if run.failing:
            suites.setdefault(run.sha, []).append(run.suite)
    before, page, repository = dict[str, str](), "", context.repository.full_name
    for sha, those in suites.items():
        found = await nearest_ancestors(
            context.part(RESULTS), context.github, repository, about, sha, those, wanted=CONFIRMED_RUNS
        )
        for suite, ancestors in found.items():
            before[suite] = ancestors[0].sha
            page = page or ancestors[0].url.partition(COMMIT_PAGE)[0]
    return before, page


def judged_now(
    store: ResultsStore, about: TargetKey, sha: str, before: Mapping[str, str], aliases: Aliases = NO_ALIASES
) -> tuple[RegressionChanges, tuple[Failure, ...]]:
    """Return the changes of a target to report now, and all failures that people know about after that.

    `sha` is the complete nightly run; `before` names the run before the newest one of each suite; `aliases` are the
    names of tests that maintainers renamed.
    """

    def suite_at(suite: SuiteFailures) -> SuiteState:
        return store.state(about, suite.sha).suites[suite.suite]

    given_up: Collection[str] = store.failures.given_up(about, sha)
    return judge(store.failures.of_target(about, before, aliases), given_up, suite_at)


def contexts_of(
    store: ResultsStore,
    about: TargetKey,
    runs: Sequence[NewestRun],
    before: Mapping[str, str],
    began: Sequence[Failure],
    aliases: Aliases = NO_ALIASES,
) -> dict[tuple[str, str], FailureContext]:
    """Return the contexts of new failures, by suite and test, at the newest run of each suite; `before` as above."""
    tests: dict[str, list[str]] = {}
    for one in sorted(began, key=lambda one: (one.suite, one.test))[:MOST_CONTEXTS]:
        tests.setdefault(one.suite, []).append(one.test)
    newest = {run.suite: run.sha for run in runs}
    found: dict[tuple[str, str], FailureContext] = {}
    for suite, those in tests.items():
        asked = {suite: AskedFailures(before.get(suite, ""), those)}
        found |= store.timelines.contexts(about, newest.get(suite, ""), asked, aliases)
    return found


def decide_regressions(
    target: JudgedTarget,
    changes: RegressionChanges,
    failing: Sequence[Failure],
    known: KnownRegressions,
    to: Sequence[Place],
    key: Key[KnownRegressions],
    contexts: Mapping[tuple[str, str], FailureContext] = MappingProxyType({}),
    hold: NewsHold = NO_HOLD,
    history: HistoryLink = no_history,
    *,
    behind: bool = False,
) -> Plan:
    """Return the plan that stores the state of a target under a key and posts the messages about it.

    The state is stored first: if a channel is unavailable for hours, the next nightly run already builds on it. `hold`
    says whether the messages wait for those of other targets; `history` links the page of each test. `behind`: the
    issue lacks the newest message, because GitHub was unavailable for too long, so it is updated even without news.
    """
    about = target.about
    issue, title, body = _issue_of(about), issue_title(target), issue_body(target, hold.own(failing), history)
    if not changes:
        remaining = EnsureIssue(issue, title, body, news_key=known.news, as_of=target.committed_at)
        return Plan((*_remembered(key, known, target), *([remaining] if behind else [])), why=_why_no_news(target))
    news = regression_news(target, changes, failing, contexts)
    failures = packed({"": changes.began, RECOVERED: changes.recovered, REMOVED: changes.removed})
    # One nightly run may lead to several messages, because late runs confirm more failures.
    health = f"{changes.unreliable}{changes.reliable}" if changes.unreliable or changes.reliable else ""
    news_key = f"{issue}:{target.sha}:{hashlib.sha256(f'{failures}{health}'.encode()).hexdigest()[:16]}"
    begins = bool(changes.began or changes.unreliable)
    issue_state = IssueState(issue, title, body, begins=begins, as_of=target.committed_at)
    if any(one.suite in target.unreliable for one in changes.began):
        known = replace(known, steady_at=target.committed_at)
    remembered = _remembered(key, known, target, news_key)
    if hold.shared:
        waiting = hold.waiting(target, changes, failing, news_key, news, issue_state)
        # A target that was judged is waited for no longer, so its news is stored before that.
        reports = StoreReports(about.lab, about.target, target.sha, failures, (waiting, *remembered))
        return Plan((reports,), why=texts.NEWS_WAITS.format(news=news.title))
    # The issues of groups are refreshed by what is reported.
    records = (*remembered, *hold.refresh(target, news_key))
    reports = StoreReports(about.lab, about.target, target.sha, failures, records)
    return Plan((reports, *message_effects(to, news_key, news, issue_state)), why=news.title)


def _why_no_news(target: JudgedTarget) -> str:
    if target.held:
        return texts.ONLY_UNRELIABLE.format(changes=counted(target.held, "change"))
    tests = counted(target.quarantined, "quarantined test fails", "quarantined tests fail")
    return texts.ONLY_QUARANTINED.format(tests=tests) if target.quarantined else texts.NO_NEWS


def _issue_of(about: TargetKey) -> str:
    return f"regressions:{about.full_name}"


def _remembered(
    key: Key[KnownRegressions], known: KnownRegressions, target: JudgedTarget, news: str = ""
) -> tuple[StoreRecord, ...]:
    unreliable = tuple(sorted(target.unreliable))
    now = replace(
        known,
        nightly_sha=target.sha,
        committed_at=target.committed_at,
        news=news or known.news,
        page=target.page or known.page,
        unreliable=unreliable,
    )
    return (StoreRecord.of(key, now),) if now != known else ()
