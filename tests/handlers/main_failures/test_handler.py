"""Which events trigger a scan, and what follows from a scan, as tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gidgethub import BadRequest

from bot.app.features import CODEC
from bot.app.texts import NOT_ACCEPTED
from bot.core.errors import PayloadError
from bot.core.events import Delivery, Payload, Repository
from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.github.commits.refs import Commit
from bot.news.effects import PostMessage
from bot.timers.timers import TIMER_EVENT, TimerEvent
from handlers.main_failures.config import MainFailures
from handlers.main_failures.decide import FailingContext, FailureChanges, KnownFailures, Recovery
from handlers.main_failures.effects import SCAN_EVENT, RequestScan, ScanEvent, is_scan_pending
from handlers.main_failures.handler import NAME, ScanTrigger, plan_news, trigger_of
from handlers.main_failures.records import FAILURES, WATCHED_BRANCHES, NextScan, WatchedBranches
from tests.handlers.driver import FULL_NAME, World, a_world

WATCHED = MainFailures(branches=("main", "release"), contexts=("*/branch", "lint"))
OTHERS = [f"feature-{n}" for n in range(10)]
OURS, FORK = 7, 8


def status(state: str, *branches: str, context: str = "cpu/branch") -> dict[str, Any]:
    named = [{"name": name, "commit": {"sha": "a" * 40}} for name in branches]
    return {"state": state, "context": context, "branches": named, "sha": "a" * 40, "target_url": None}


def check_run(conclusion: str | None, branch: str | None, name: str = "lint") -> dict[str, Any]:
    suite = {"head_branch": branch}
    return {"action": "completed", "check_run": {"name": name, "conclusion": conclusion, "check_suite": suite}}


def workflow_run(conclusion: str | None, branch: str | None, head: int | None = OURS) -> dict[str, Any]:
    run = {"name": None, "conclusion": conclusion, "head_branch": branch}
    return {"action": "completed", "workflow_run": {**run, "head_repository": {"id": head} if head else None}}


def delivery(event: str, body: dict[str, Any], repository: int = OURS) -> Delivery:
    repository_payload = {"id": repository, "full_name": "octocat/compiler"}
    return Delivery("guid", event, Payload({**body, "repository": repository_payload}), 0.0)


MAIN = ("main",)


@pytest.mark.parametrize(
    ("event", "body", "expected"),
    [
        ("status", status("failure", "main"), ScanTrigger(MAIN, "cpu/branch", True)),
        ("status", status("error", "main"), ScanTrigger(MAIN, "cpu/branch", True)),
        ("status", status("success", "main"), ScanTrigger(MAIN, "cpu/branch", False)),
        ("status", status("pending", "main"), None),
        ("status", status("failure", "main", context="docs"), None),
        ("status", status("failure"), None),
        ("status", status("failure", "feature"), None),
        (
            "status",
            status("failure", "feature", "release", "main"),
            ScanTrigger(("main", "release"), "cpu/branch", True),
        ),
        # GitHub lists at most ten branches, so ours may be missing.
        ("status", status("failure", *OTHERS), ScanTrigger(("main", "release"), "cpu/branch", True)),
        ("status", status("failure", *OTHERS[:9]), None),
        ("check_run", check_run("failure", "main"), ScanTrigger(MAIN, "lint", True)),
        ("check_run", check_run("timed_out", "main"), ScanTrigger(MAIN, "lint", True)),
        ("check_run", check_run("success", "main"), ScanTrigger(MAIN, "lint", False)),
        ("check_run", check_run("cancelled", "main"), None),
        ("check_run", check_run("skipped", "main"), None),
        ("check_run", check_run(None, "main"), None),
        ("check_run", check_run("failure", None), None),
        ("check_run", check_run("failure", "feature"), None),
        ("check_run", check_run("failure", "main", "docs"), None),
        ("check_run", {"check_run": {"name": "lint", "conclusion": "failure", "check_suite": None}}, None),
        ("workflow_run", workflow_run("failure", "main"), ScanTrigger(MAIN, "", True)),
        ("workflow_run", workflow_run("startup_failure", "main"), ScanTrigger(MAIN, "", True)),
        ("workflow_run", workflow_run("success", "main"), None),
        ("workflow_run", workflow_run("failure", "feature"), None),
        ("workflow_run", workflow_run("failure", None), None),
        # A fork's branch may be called main, too, and a fork may have been deleted.
        ("workflow_run", workflow_run("failure", "main", FORK), None),
        ("workflow_run", workflow_run("failure", "main", None), None),
    ],
)
def test_only_finished_checks_on_a_watched_branch_trigger_a_scan(
    event: str, body: dict[str, Any], expected: ScanTrigger | None
) -> None:
    assert trigger_of(delivery(event, body), WATCHED) == expected


def test_a_payload_without_a_required_field_says_which_one_is_missing() -> None:
    with pytest.raises(PayloadError, match="context"):
        trigger_of(delivery("status", {"state": "failure"}), WATCHED)


async def test_an_event_that_triggers_nothing_ends_in_routing_and_an_unreadable_one_fails_in_its_plan(
    tmp_path: Path,
) -> None:
    async with a_world(tmp_path, features={"main_failures": {"contexts": ["lint"]}}) as world:
        routed = [
            await world.pipeline.handlers_for(delivery("status", body, world.repository.id))
            for body in (status("failure", "main", context="lint"), status("failure", "main"), {"state": "failure"})
        ]
    triggers = ("main-failures-triggers",)
    assert [(routing.handlers, routing.reason) for routing in routed] == [
        (triggers, ""),
        ((), NOT_ACCEPTED),
        (triggers, ""),
    ]


@pytest.mark.parametrize(
    ("record", "moment", "scan_at"),
    [
        (None, 100.0, False),
        (NextScan(99.0), 100.0, False),
        (NextScan(100.0), 100.0, True),
        (NextScan(160.0), 100.0, True),
        # Further away than any scan that could be requested now: a clock was wrong, or `wait` was longer.
        (NextScan(161.0), 100.0, False),
    ],
)
def test_a_pending_scan_covers_events_before_it_begins(record: NextScan | None, moment: float, scan_at: bool) -> None:
    assert is_scan_pending(record, moment, wait=60.0) is scan_at


BROKEN = FailingContext("lint", "a" * 40, "Break it", "failure", "", 0.0)
FAILING = KnownFailures({"lint": BROKEN})
WELL = Recovery(BROKEN, Commit("b" * 40, "Fix it", ""), 1, 60.0, "")
AT = 60.0
KEY = FAILURES.of(7, "main")
EVERYWHERE = MainFailures(to=("discord", "slack", "issue"))


def test_news_is_recorded_before_it_is_reported() -> None:
    plan = plan_news(FailureChanges((BROKEN,), (), (), FAILING), "main", KEY, EVERYWHERE, None, AT)
    remember, *messages = plan.effects
    assert [type(effect) for effect in messages] == [PostMessage, PostMessage, EnsureIssue]
    assert isinstance(messages[-1], EnsureIssue)
    assert messages[-1].as_of == AT
    assert remember == StoreRecord.of(KEY, replace(FAILING, news=messages[-1].news_key, reported_at=AT), is_shown=True)
    assert plan.why == "1 check began to fail on main at aaaaaaa"


def test_the_issue_is_closed_when_nothing_fails() -> None:
    plan = plan_news(FailureChanges((), (WELL,), (), KnownFailures()), "main", KEY, EVERYWHERE, FAILING, AT)
    issue = plan.effects[-1]
    assert isinstance(issue, EnsureIssue)
    assert (issue.key, issue.body) == ("main-failures:main", "")


def test_without_news_no_message_is_sent() -> None:
    later = KnownFailures({"lint": replace(BROKEN, missing_since=60.0)})
    assert plan_news(FailureChanges((), (), (), later), "main", KEY, EVERYWHERE, FAILING, AT).effects == (
        StoreRecord.of(KEY, later, is_shown=True),
    )
    assert plan_news(FailureChanges((), (), (), FAILING), "main", KEY, EVERYWHERE, FAILING, AT).effects == ()


def test_news_is_in_order_even_after_a_clock_was_set_back() -> None:
    reported = replace(FAILING, reported_at=AT + 100)
    *_, issue = plan_news(
        FailureChanges((), (WELL,), (), replace(reported, failing={})), "main", KEY, EVERYWHERE, reported, AT
    ).effects
    assert isinstance(issue, EnsureIssue)
    assert issue.as_of > AT + 100


def test_the_same_news_has_the_same_key_whenever_it_is_found() -> None:
    """The effects that report it derive their keys from it, so two scans cannot report it twice."""

    def targets(change: FailureChanges, branch: str = "main") -> list[str]:
        return [effect.effect_key for effect in plan_news(change, branch, KEY, EVERYWHERE, None, AT).effects[1:]]

    later_failure = FailingContext("lint", "a" * 40, "Break it", "failure", "", 600.0)
    first = targets(FailureChanges((BROKEN,), (), (), FAILING))
    assert targets(FailureChanges((later_failure,), (), (), KnownFailures({"lint": later_failure}))) == first
    assert not set(first) & set(targets(FailureChanges((BROKEN,), (), (), FAILING), "release"))
    assert not set(first) & set(targets(FailureChanges((), (WELL,), (), FAILING)))
    assert not set(first) & set(targets(FailureChanges((), (), (BROKEN,), FAILING)))


async def sweep_and_scan(world: World, guid: str) -> list[str]:
    """Let a sweep request scans and run those of branches that are no longer watched; return their branches."""
    body = TIMER_EVENT.body(Repository(world.repository.id, FULL_NAME, None), TimerEvent(NAME, guid, 7200))
    swept = Delivery(guid, TIMER_EVENT.name, Payload(body), 7200.0)
    effects = [CODEC.decode(planned.effect) for planned in (await world.pipeline.plan(swept, NAME, guid)).effects]
    branches = [effect.branch for effect in effects if isinstance(effect, RequestScan)]
    for effect in effects:
        if isinstance(effect, StoreRecord):
            await world.apply_alone(effect)
    for branch in branches[1:]:
        body = SCAN_EVENT.body(Repository(world.repository.id, FULL_NAME, None), ScanEvent(branch, 7200))
        scan = Delivery(f"{guid}:{branch}", SCAN_EVENT.name, Payload(body), 7200.0)
        for planned in (await world.pipeline.plan(scan, f"{NAME}-scan", scan.guid)).effects:
            await world.apply_alone(CODEC.decode(planned.effect))
    return branches


async def test_a_branch_that_is_no_longer_watched_has_its_issue_closed_and_is_forgotten(tmp_path: Path) -> None:
    async with a_world(tmp_path, features={"main_failures": {"branches": ["main"]}}) as world:
        number, github = world.repository.id, world.github
        await world.records.put(WATCHED_BRANCHES.of(number), WatchedBranches(("main", "release", "quiet")))
        await world.records.put(FAILURES.of(number, "release"), FAILING)
        await world.apply_alone(EnsureIssue(f"{NAME}:release", "release is failing", "`lint` fails.", as_of=60.0))
        (issue,) = world.repository.issues.values()
        refused = github.faults.add(
            "PATCH", "/repos/{owner}/{repo}/issues/{issue_number}", status=403, message="Not accessible"
        )
        with pytest.raises(BadRequest):
            await sweep_and_scan(world, "first")
        assert (refused.hits, issue.state) == (1, "open")
        assert await sweep_and_scan(world, "second") == ["main", "release"]
        assert issue.state == "closed"
        assert issue.comments[-1].body.endswith("`release` is no longer watched")
        assert await world.records.get(FAILURES.of(number, "release")) is None
        assert await sweep_and_scan(world, "third") == ["main"]
        assert await world.records.get(WATCHED_BRANCHES.of(number)) == WatchedBranches(("main",))
