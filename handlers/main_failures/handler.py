"""Alarms: report once that a check fails on a watched branch, and once that it has recovered.

Events only trigger scans: they cost no request to GitHub, and may come late, twice or not at all. Messages depend only
on what a scan of the branch finds, after a trigger or at the timer.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.config.types import matches, seconds
from bot.core.errors import UserError
from bot.effects.issues import ISSUE, EnsureIssue, is_posted
from bot.effects.remember import StoreRecord
from bot.github.commits.ours import Ours
from bot.github.commits.refs import Commit, first_parents
from bot.github.commits.signals import signals_of
from bot.github.errors import is_not_found
from bot.github.text.markdown import code
from bot.news.effects import IssueState, message_effects
from bot.plan.handler import Context, Plan, Router
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.main_failures.config import MAIN_FAILURES
from handlers.main_failures.decide import BranchScan, FailureChanges, KnownFailures, decide_alarms, has_failed
from handlers.main_failures.effects import SCAN_EVENT, RequestScan, is_scan_pending
from handlers.main_failures.records import FAILURES, NEXT_SCAN, WATCHED_BRANCHES, WatchedBranches
from handlers.main_failures.texts import (
    NO_BRANCH,
    NO_NEWS,
    NOT_WATCHED,
    NOTHING_TO_SCAN,
    TO_SCAN,
    failure_news,
    issue_text,
)

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery, Payload
    from bot.engine.records import Key
    from bot.plan.effect import Effect
    from handlers.main_failures.config import MainFailures

NAME = "main-failures"
KEY = "main_failures"
MOST_COMMITS = 10
"""The most commits whose statuses and checks one scan reads: three requests each, more if there are over a hundred."""
MOST_BRANCHES = 10
"""The most branches that GitHub lists in a status event, of those that have its commit.

https://docs.github.com/webhooks/webhook-events-and-payloads#status
"""

router = Router()


@dataclass(frozen=True, slots=True)
class ScanTrigger:
    """What an event reports about watched branches: that a context (empty: any check) has failed or passed."""

    branches: tuple[str, ...]
    name: str
    failed: bool


def trigger_of(delivery: Delivery, watched: MainFailures) -> ScanTrigger | None:
    """Read a trigger from an event's payload; None if the event is about no watched branch or context."""
    payload = delivery.payload
    match delivery.event:
        case "status":
            name, result = payload.string("context"), payload.string("state")
            branches = [branch.text("name") for branch in payload.items("branches")]
        case "check_run":
            run = payload.at("check_run")
            name, result = run.string("name"), run.text("conclusion")
            # With GitHub Actions, this may be a fork's branch with the same name: then the scan finds nothing.
            branches = [run.text("check_suite", "head_branch")]
        case _:
            name, result, branches = "", *_read_workflow_run(payload)
    failed = has_failed(result)
    if failed is None or (name and not matches(watched.contexts, name)):
        return None
    watched_branches = tuple(dict.fromkeys(watched.branches))
    affected = tuple(branch for branch in watched_branches if branch in branches)
    if not affected and len(branches) >= MOST_BRANCHES:
        # A merged commit may be on dozens of branches, and GitHub lists only ten.
        affected = watched_branches  # each may be one of those that GitHub did not list
    return ScanTrigger(affected, name, failed) if affected else None


def _read_workflow_run(payload: Payload) -> tuple[str, list[str]]:
    """Return the result and the branch of a failed workflow; recoveries come from the check runs of its jobs."""
    run = payload.at("workflow_run")
    is_own_branch = run.has("head_repository", "id") and run.integer("head_repository", "id") == payload.integer(
        "repository", "id"
    )
    result = run.text("conclusion")
    return (result, [run.text("head_branch")]) if is_own_branch and has_failed(result) else ("", [])


def _accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    watched = config.of(MAIN_FAILURES)
    return watched is not None and trigger_of(delivery, watched) is not None


@router.on("status", name=f"{NAME}-triggers", feature=KEY, accepts=_accepts)
@router.on("check_run", "completed", name=f"{NAME}-triggers", feature=KEY, accepts=_accepts)
@router.on("workflow_run", "completed", name=f"{NAME}-triggers", feature=KEY, accepts=_accepts)
async def on_trigger(context: Context) -> Plan:
    """Request a scan if a trigger differs from what is known; send no request to GitHub."""
    watched = _settings(context)
    # Check again: the settings may have changed since the delivery was routed.
    trigger = trigger_of(context.delivery, watched)
    received_at, wait = context.delivery.received_at, seconds(watched.wait)
    requests = []
    for branch in trigger.branches if trigger else ():
        failures = await context.records.get(FAILURES.of(context.repository.id, branch)) or KnownFailures()
        scan_at = await context.records.get(NEXT_SCAN.of(context.repository.id, branch))
        if trigger and _differs_from_known(trigger, failures) and not is_scan_pending(scan_at, received_at, wait):
            requests.append(RequestScan(branch, context.delivery.guid, received_at, wait))
    return _plan_requests(requests)


def _differs_from_known(trigger: ScanTrigger, failures: KnownFailures) -> bool:
    return trigger.failed != (trigger.name in failures.failing)


@router.on(TIMER_EVENT.name, NAME, name=NAME, feature=KEY)
async def sweep(context: Context) -> Plan:
    """Request a scan of every watched branch, in case events were lost.

    Also request one of each branch that is no longer watched and has an issue, so that the issue is closed.
    """
    moment, guid, number = moment_of(context.delivery.payload), context.delivery.guid, context.repository.id
    watched = list(dict.fromkeys(_settings(context).branches))
    earlier = (await context.records.get(WATCHED_BRANCHES.of(number)) or WatchedBranches()).branches
    with_issue = [
        branch
        for branch in earlier
        if branch not in watched and await context.records.get(ISSUE.of(number, _issue_key(branch))) is not None
    ]
    requests_plan = _plan_requests([RequestScan(branch, guid, moment) for branch in (*watched, *with_issue)])
    if earlier == (*watched, *with_issue):
        return requests_plan
    store_branches = StoreRecord.of(WATCHED_BRANCHES.of(number), WatchedBranches((*watched, *with_issue)))
    return replace(requests_plan, effects=(store_branches, *requests_plan.effects))


def _plan_requests(requests: list[RequestScan]) -> Plan:
    branches = ", ".join(effect.branch for effect in requests)
    return Plan(tuple(requests), why=TO_SCAN.format(branches=branches) if requests else NOTHING_TO_SCAN)


@router.on(SCAN_EVENT.name, name=f"{NAME}-scan", feature=KEY)
async def scan_branch(context: Context) -> Plan:
    """Read the results on the newest commits of a branch, and report what has changed since the last scan."""
    watched = _settings(context)
    event = SCAN_EVENT.read(context.delivery.payload)
    branch = event.branch
    if branch not in watched.branches:
        return not_watched(context, branch, float(event.at))
    key = FAILURES.of(context.repository.id, branch)
    stored = await context.records.get(key)
    commits = await _commits(context, branch)
    if not commits and not (stored and stored.failing):
        raise UserError(NO_BRANCH.format(branch=branch))
    repository = context.repository.full_name
    own_contexts = Ours.of(context.me, context.config).on(branch)
    signals = [
        await signals_of(context.github, repository, commit.sha, own_contexts) for commit in commits[:MOST_COMMITS]
    ]
    scan = BranchScan(float(event.at), commits, signals)
    fix_within = None if watched.fix_within is None else seconds(watched.fix_within)
    change = decide_alarms(stored, scan, watched.contexts, fix_within)
    news_plan = plan_news(change, branch, key, watched, stored, scan.scanned_at)
    if (
        change.is_news
        or "issue" not in watched.to
        or await is_posted(context.records, context.repository.id, change.state.news)
    ):
        return news_plan
    return replace(news_plan, effects=(*news_plan.effects, issue_effect(change.state, branch)))


def not_watched(context: Context, branch: str, moment: float) -> Plan:
    """Return what to do about a branch that app.yaml no longer names: close its issue, and forget its failures.

    Without an issue, this sends no request to GitHub.
    """
    number, issue = context.repository.id, _issue_key(branch)
    news = NOT_WATCHED.format(branch=code(branch))
    close_issue = EnsureIssue(issue, news=news, news_key=f"{issue}:{context.delivery.guid}", as_of=moment)
    forget = StoreRecord.of(FAILURES.of(number, branch), None, is_shown=True)
    return Plan((forget, close_issue), why=NOT_WATCHED.format(branch=branch))


def plan_news(
    change: FailureChanges,
    branch: str,
    key: Key[KnownFailures],
    watched: MainFailures,
    stored: KnownFailures | None,
    moment: float,
) -> Plan:
    """Return what to do about a change that a scan found at `moment`, in seconds since 1970.

    The record comes first, so that no other scan finds the same change again.
    """
    state = change.state.after_message(_news_key(change, branch), moment) if change.is_news else change.state
    effects: list[Effect] = [StoreRecord.of(key, state, is_shown=True)] if state != stored else []
    if not change.is_news:
        return Plan(tuple(effects), why=NO_NEWS.format(branch=branch, count=len(state.failing)))
    news = failure_news(change, branch, watched.fix_within or "")
    issue = IssueState(
        _issue_key(branch), *issue_text(state, branch), begins=bool(change.began), as_of=state.reported_at
    )
    effects += message_effects(watched.to, state.news, news, issue)
    return Plan(tuple(effects), why=news.title)


def issue_effect(state: KnownFailures, branch: str) -> EnsureIssue:
    """Return the effect that adds the last news to the issue, which may lack it after a long outage of GitHub.

    Scans run one by one, each after all effects of the last one have ended, so nothing else writes to the issue now.
    """
    return EnsureIssue(_issue_key(branch), *issue_text(state, branch), news_key=state.news, as_of=state.reported_at)


def _issue_key(branch: str) -> str:
    return f"{NAME}:{branch}"


def _news_key(change: FailureChanges, branch: str) -> str:
    """Return a key from the content of news: if another scan finds the same changes, it is the same news."""
    reported = [
        [[failure.name, failure.sha] for failure in change.began],
        [[recovery.failure.name, recovery.failure.sha, recovery.commit.sha] for recovery in change.recovered],
        [[failure.name, failure.sha] for failure in change.removed],
        # Only if there are any, so that the keys of other messages stay what they were.
        *([[[failure.name, failure.sha] for failure in change.overdue]] if change.overdue else []),
    ]
    return f"{NAME}:{branch}:{hashlib.sha256(json.dumps(reported).encode()).hexdigest()[:24]}"


async def _commits(context: Context, branch: str) -> list[Commit]:
    """Return a branch's newest commits, none if the branch does not exist; one request, rarely up to ten."""
    try:
        return await first_parents(context.github, context.repository.full_name, branch, at_least=MOST_COMMITS)
    except Exception as error:
        if is_not_found(error):
            return []
        raise


def _settings(context: Context) -> MainFailures:
    watched = context.config.of(MAIN_FAILURES)
    assert watched is not None, "the handler runs only where the feature is on"
    return watched
