"""Messages about lasting failures of hardware targets on the nightly branch: one when they are confirmed.

The delivery of the check run triggers this handler, but its plan is separate: an error here does not prevent the check
run. When a run arrives, the newest known run of each suite is evaluated, so a late run may confirm a failure that is
still there. If nothing fails on a target and nothing failed before, the handler sends no request.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.core.listing import counted
from bot.effects.issues import EnsureIssue, is_posted
from bot.effects.remember import StoreRecord
from bot.engine.records import Key
from bot.news.effects import IssueState
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.compare.paired import UNPAIRED, PairedTargets, paired_targets
from bot.results.compare.quarantine import quarantine_at
from bot.results.deliveries import CHECK_EVENT, check_event_in
from bot.results.report.baseline import nearest_ancestors
from bot.results.service import RESULTS
from bot.results.store.commit import commit_state
from bot.results.store.failures.contexts import ContextQuery, failure_contexts
from bot.results.store.failures.failures import (
    RECOVERED,
    commit_times_of,
    failures_of_target,
    given_up_suites,
    late_run,
    newest_runs,
    reported_failures,
)
from bot.results.store.history.health import unreliable_suites
from bot.results.store.lists.run_lists import admission_of_commit
from bot.results.store.write.pending_checks import is_pending
from handlers.regressions import texts
from handlers.regressions.audiences import Audience, audiences_of
from handlers.regressions.begun import begun_on_target
from handlers.regressions.config import REGRESSIONS as REGRESSIONS_KEY
from handlers.regressions.decide import (
    REMOVED,
    STEADY_WAIT,
    EvaluatedRun,
    EvaluatedTarget,
    RegressionChanges,
    find_changes,
    pack_failures,
    without_quarantined,
    without_unreliable,
)
from handlers.regressions.details import details_of
from handlers.regressions.effects import StoreReports
from handlers.regressions.groups import NO_HOLD, NewsHold, active_targets
from handlers.regressions.moved.search import search_effects
from handlers.regressions.records import REGRESSION_GROUP, REGRESSIONS, WAITING_NEWS, target_issue
from handlers.regressions.target_messages import TargetMessage, updated_issues
from handlers.regressions.target_text import (
    COMMIT_PAGE,
    NO_DETAILS,
    DetailsOfTests,
    issue_body,
    issue_title,
    regression_news,
)
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bot.results.compare.context import FailureContext
    from bot.results.state import SuiteState
    from bot.results.store.failures.failures import Failure, NewestRun, SuiteFailures

NAME = "regressions"
LONGEST_AGE = 30 * 86400.0
"""Seconds after which a commit is too old for a message.

Without this limit, a bot with an empty database that reads a full bucket would post old news.
"""
MOST_CONTEXTS = 200
"""New failures for which a message says how often they failed before, and on which other targets they fail."""


router = Router()


@router.on(CHECK_EVENT.name, name=NAME, feature="regressions")
async def report_regressions(context: Context) -> Plan:
    """Evaluate the newest runs of a target, and look for measurements that moved, when no more results are expected."""
    plan = await _plan_messages(context)
    return replace(plan, effects=(*plan.effects, *await search_effects(context)))


async def _plan_messages(context: Context) -> Plan:
    """Evaluate the newest runs of a target when no more results are expected, and decide which messages to send."""
    event, results = check_event_in(context.delivery.payload), context.config.of(LAB_RESULTS)
    lab = results.labs.get(event.target.lab) if results else None
    regressions = context.config.of(REGRESSIONS_KEY)
    if regressions is None or lab is None or event.target.target not in lab.targets:
        return NOTHING
    # Check runs are written while suites still arrive. A message is posted once, so it waits until all have arrived or
    # the deadline has passed.
    if not event.over:
        return Plan(why=texts.NOT_OVER)
    service = context.part(RESULTS)
    target_key = service.canonical(event.target)
    admission = await service.read(admission_of_commit, target_key.repository, event.sha)
    if admission is None or not admission.mainline:
        return Plan(why=texts.NOT_NIGHTLY)
    runs = await service.read(newest_runs, target_key)
    newest = runs[0] if runs else None
    if newest is None:
        return Plan(why=texts.NOTHING_FAILS)
    if newest.committed_at < context.delivery.received_at - LONGEST_AGE:
        return Plan(why=texts.NIGHTLY_TOO_OLD)
    # The check event of the newer commit follows, and evaluates all of this again.
    if newest.sha != event.sha and await service.read(is_pending, target_key, newest.sha):
        return Plan(why=texts.NEWER_PENDING)
    key = REGRESSIONS.of(context.repository.id, target_key.lab, target_key.target)
    evaluated = await context.records.get(key) or EvaluatedRun()
    issue_is_outdated = evaluated.nightly_sha != newest.sha and "issue" in regressions.places
    issue_is_outdated = issue_is_outdated and not await is_posted(
        context.records, context.repository.id, evaluated.news
    )
    late = await service.read(late_run, target_key, newest.sha)
    target = EvaluatedTarget(target_key, newest.sha, newest.committed_at, contacts=lab.contacts, late=late)
    nothing_fails = not any(run.failing for run in runs) and not await service.read(reported_failures, target_key)
    if nothing_fails and not evaluated.unreliable:
        closed_issue = EnsureIssue(
            target_issue(target_key.full_name), news_key=evaluated.news, as_of=newest.committed_at
        )
        issues = [closed_issue] if issue_is_outdated else []
        return Plan((*_state_records(key, evaluated, target), *issues), why=texts.NOTHING_FAILS)
    previous_runs, page = await _previous_runs(context, target_key, runs)
    target = replace(target, page=page or evaluated.page)
    changes, failing = await service.read(
        load_changes, target_key, event.sha, previous_runs, context.config.of(RENAMES).aliases
    )
    quarantine, _ = quarantine_at(context.config.of(QUARANTINE), target_key, context.delivery.received_at)
    changes, failing, quarantined = without_quarantined(changes, failing, quarantine)
    # A suite that the lab no longer sends is neither unreliable nor reliable again.
    given_up = await service.read(given_up_suites, target_key, event.sha)
    all_unreliable = await service.read(unreliable_suites, target_key)
    unreliable = {suite: health for suite, health in all_unreliable.items() if suite not in given_up}
    reported = set(evaluated.unreliable) - given_up
    with_steady = evaluated.steady_at + STEADY_WAIT <= newest.committed_at
    changes, failing, held = without_unreliable(changes, failing, unreliable, reported, with_steady=with_steady)
    target = replace(target, quarantined=quarantined, unreliable=unreliable, held=held)
    contexts = await service.read(
        load_contexts,
        target_key,
        runs,
        previous_runs,
        changes.began,
        context.config.of(RENAMES).aliases,
        paired_targets(results, target_key.full_name),
    )
    hold = await _news_hold(context, target_key, newest.committed_at, changes)
    return decide_regressions(
        target,
        changes,
        failing,
        evaluated,
        audiences_of(regressions),
        key,
        contexts,
        hold,
        await details_of(context),
        issue_is_outdated=issue_is_outdated,
        finds_cause=regressions.find,
    )


async def _news_hold(context: Context, target: TargetKey, committed_at: float, changes: RegressionChanges) -> NewsHold:
    """Return whether the news of a target waits for others, and which of its failures the issues of groups list."""
    repository_id = context.repository.id
    groups = (await context.records.under(REGRESSION_GROUP, repository_id)).values()
    members = [member for group in groups for member in group.members if member.full_name == target.full_name]
    tests = frozenset((member.suite, test) for member in members for test in member.tests)
    hold = NewsHold(repository_id, context.delivery.received_at, {}, grouped_tests=tests)
    if not changes:
        return hold
    active = active_targets(await context.records.under(REGRESSIONS, repository_id), committed_at)
    has_others = bool(active.keys() - {f"{target.lab}:{target.target}"})
    waiting = await context.records.under(WAITING_NEWS, repository_id, target.lab, target.target)
    # Failures that ended are reported after the message about their beginning, so they wait while that message waits.
    news_waits = any(news.news and news.about.about == target for news in waiting.values())
    must_wait = has_others if changes.began else news_waits
    if not must_wait:
        return replace(hold, has_other_targets=has_others)
    shas = {sha for failure in changes.began for sha in (failure.since, failure.good) if sha}
    commit_times = await context.part(RESULTS).read(commit_times_of, target, shas)
    return replace(hold, commit_times=commit_times, has_other_targets=has_others, must_wait=True)


async def _previous_runs(context: Context, target: TargetKey, runs: Sequence[NewestRun]) -> tuple[dict[str, str], str]:
    """Return the commit of each failing suite's run before the newest one, and the page of the repository."""
    failing_suites: dict[str, list[str]] = {}
    for run in runs:
        if run.failing:
            failing_suites.setdefault(run.sha, []).append(run.suite)
    previous, page, repository = dict[str, str](), "", context.repository.full_name
    for sha, suites in failing_suites.items():
        ancestors_by_suite = await nearest_ancestors(
            context.part(RESULTS), context.github, repository, target, sha, suites, most=CONFIRMED_RUNS
        )
        for suite, ancestors in ancestors_by_suite.items():
            previous[suite] = ancestors[0].sha
            page = page or ancestors[0].url.partition(COMMIT_PAGE)[0]
    return previous, page


def load_changes(
    connection: sa.Connection,
    target: TargetKey,
    sha: str,
    previous_runs: Mapping[str, str],
    aliases: Aliases = NO_ALIASES,
) -> tuple[RegressionChanges, tuple[Failure, ...]]:
    """Return the changes of a target to report now, and all failures that are reported after that.

    `sha` is the complete nightly run. `previous_runs` has the commit of the run before the newest one, by suite.
    `aliases` are the names of tests that maintainers renamed.
    """

    def suite_at(suite: SuiteFailures) -> SuiteState:
        return commit_state(connection, target, suite.sha).suites[suite.suite]

    given_up: Collection[str] = given_up_suites(connection, target, sha)
    return find_changes(failures_of_target(connection, target, previous_runs, aliases), given_up, suite_at)


def load_contexts(
    connection: sa.Connection,
    target: TargetKey,
    runs: Sequence[NewestRun],
    previous_runs: Mapping[str, str],
    began: Sequence[Failure],
    aliases: Aliases = NO_ALIASES,
    paired: PairedTargets = UNPAIRED,
) -> dict[tuple[str, str], FailureContext]:
    """Return the contexts of new failures, by suite and test, at the newest run of each suite.

    `runs` has these newest runs, and `previous_runs` the commit of the run before each, by suite.
    """
    tests_by_suite: dict[str, list[str]] = {}
    for failure in sorted(began, key=lambda failure: (failure.suite, failure.test))[:MOST_CONTEXTS]:
        tests_by_suite.setdefault(failure.suite, []).append(failure.test)
    newest = {run.suite: run.sha for run in runs}
    contexts: dict[tuple[str, str], FailureContext] = {}
    for suite, tests in tests_by_suite.items():
        query = {suite: ContextQuery(previous_runs.get(suite, ""), tests, paired)}
        contexts |= failure_contexts(connection, target, newest.get(suite, ""), query, aliases)
    return contexts


def decide_regressions(
    target: EvaluatedTarget,
    changes: RegressionChanges,
    failing: Sequence[Failure],
    evaluated: EvaluatedRun,
    audiences: Sequence[Audience],
    key: Key[EvaluatedRun],
    contexts: Mapping[tuple[str, str], FailureContext] = MappingProxyType({}),
    hold: NewsHold = NO_HOLD,
    details: DetailsOfTests = NO_DETAILS,
    *,
    issue_is_outdated: bool = False,
    finds_cause: bool = False,
) -> Plan:
    """Return the plan that stores the state of a target under `key` and posts the messages about its changes.

    `evaluated` is the state that is stored now. The plan stores the new one first: if a channel is unavailable for
    hours, the next nightly run already builds on it. `hold` says whether the messages wait for other targets;
    `details` are those of each test. `issue_is_outdated`: the issue lacks the newest message, because GitHub was
    unavailable for too long, so it is updated even without news. `finds_cause`: the cause of new failures is searched.
    Each of `audiences` gets its part of the messages.
    """
    target_key = target.about
    issue, title = target_issue(target_key.full_name), issue_title(target)
    own_failures = hold.own_failures(failing)
    if not changes:
        outdated = EnsureIssue(issue, title, news_key=evaluated.news, as_of=target.committed_at)
        issues = updated_issues(audiences, outdated, target, own_failures, details) if issue_is_outdated else []
        return Plan((*_state_records(key, evaluated, target), *issues), why=_why_no_news(target))
    news = regression_news(target, changes, failing, contexts)
    failures = pack_failures({"": changes.began, RECOVERED: changes.recovered, REMOVED: changes.removed})
    # One nightly run may lead to several messages, because late runs confirm more failures.
    health = f"{changes.unreliable}{changes.reliable}" if changes.unreliable or changes.reliable else ""
    news_key = f"{issue}:{target.sha}:{hashlib.sha256(f'{failures}{health}'.encode()).hexdigest()[:16]}"
    begins = bool(changes.began or changes.unreliable)
    body = issue_body(target, own_failures, details)
    issue_state = IssueState(issue, title, body, begins=begins, as_of=target.committed_at)
    if any(failure.suite in target.unreliable for failure in changes.began):
        evaluated = replace(evaluated, steady_at=target.committed_at)
    state_records = _state_records(key, evaluated, target, news_key)
    if hold.must_wait:
        waiting_news = hold.waiting_news(target, changes, failing, news_key, news, issue_state)
        # Once the state of a target is stored, the others no longer wait for it. So its news is stored before that.
        reports = StoreReports(target_key.lab, target_key.target, target.sha, failures, (waiting_news, *state_records))
        return Plan((reports,), why=texts.NEWS_WAITS.format(news=news.title))
    records = (*state_records, *hold.issue_updates(target, news_key))
    reports = StoreReports(target_key.lab, target_key.target, target.sha, failures, records)
    message = TargetMessage(
        hold.repository_id, news_key, target, changes, failing, own_failures, issue_state, details, contexts
    )
    messages = [effect for audience in audiences for effect in message.effects(audience)]
    searches = begun_on_target(target, changes.began) if finds_cause else ()
    return Plan((reports, *messages, *searches), why=news.title)


def _why_no_news(target: EvaluatedTarget) -> str:
    if target.held:
        return texts.ONLY_UNRELIABLE.format(changes=counted(target.held, "change"))
    tests = counted(target.quarantined, "quarantined test fails", "quarantined tests fail")
    return texts.ONLY_QUARANTINED.format(tests=tests) if target.quarantined else texts.NO_NEWS


def _state_records(
    key: Key[EvaluatedRun], stored: EvaluatedRun, target: EvaluatedTarget, news: str = ""
) -> tuple[StoreRecord, ...]:
    """Return the effect that stores the new state of a target; none if it is stored already."""
    unreliable = tuple(sorted(target.unreliable))
    state = replace(
        stored,
        nightly_sha=target.sha,
        committed_at=target.committed_at,
        news=news or stored.news,
        page=target.page or stored.page,
        unreliable=unreliable,
    )
    return (StoreRecord.of(key, state),) if state != stored else ()
