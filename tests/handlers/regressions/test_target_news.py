"""Which nightly runs are evaluated for regressions, what that costs, and in which order effects are applied."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.app.load import parse_config
from bot.config.places import Place
from bot.core.events import Delivery, Payload, Repository
from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.engine.processor import PlannedEffects
from bot.news.effects import PostMessage
from bot.plan.effect import Effect
from bot.plan.handler import Plan
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.settings.quarantine import EXAMPLE
from bot.results.store.failures.failures import RECOVERED, Failure
from bot.results.store.write.pending_checks import announced, scheduled_checks
from handlers.regressions import target_news
from handlers.regressions.audiences import Audience
from handlers.regressions.decide import (
    REMOVED,
    EvaluatedRun,
    EvaluatedTarget,
    RegressionChanges,
    unpack_failures,
)
from handlers.regressions.effects import StoreReports
from handlers.regressions.records import REGRESSIONS
from handlers.regressions.target_news import LONGEST_AGE, NAME, decide_regressions
from handlers.regressions.texts import NEWER_PENDING, NIGHTLY_TOO_OLD, NO_NEWS, NOT_NIGHTLY, NOT_OVER, NOTHING_FAILS
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import TILE, Labs, a_lab
from tests.results.reported import ABOUT, AT, BASE, SHA

COMPARE = "GET /repos/{owner}/{repo}/compare/{basehead}"
BROKEN = (Failure("operators", TILE, BASE.sha, "a" * 40),)
EVALUATED = EvaluatedRun("0" * 40, AT - 1)
TARGET = EvaluatedTarget(ABOUT, SHA, AT)
KEY = REGRESSIONS.of(5, "example-lab", "hexagon-v73")


@pytest.fixture
async def labs(tmp_path: Path) -> AsyncIterator[Labs]:
    """Return a lab in a world where only regressions are reported."""
    keys = {
        "results": {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}},
        "regressions": {"to": ["issue"]},
    }
    config = parse_config(json.dumps({"repositories": {FULL_NAME: keys}}).encode(), "app.yaml")
    async with a_lab(tmp_path) as labs:
        labs.world.configure(config, target_news.router)
        yield labs


async def planned(labs: Labs, sha: str, *, later: float = 0.0, **values: Any) -> PlannedEffects:
    """Return the plan of a commit's scheduled check, this many seconds later."""
    pending = replace(CheckEvent(ABOUT.lab, ABOUT.target, sha, revision=1, over=True), **values)
    body = CHECK_EVENT.body(Repository(labs.world.repository.id, FULL_NAME, None), pending)
    delivery = Delivery("check:1", CHECK_EVENT.name, Payload(body), AT + later)
    return await labs.world.pipeline.plan(delivery, NAME, "check:1")


def repository_requests(labs: Labs) -> list[str]:
    """Return the requests about the repository since the count was cleared."""
    return [
        f"{request.method} {request.route}"
        for request in labs.world.github.requests.of_installation
        if "{repo}" in request.route
    ]


async def confirmed(labs: Labs) -> str:
    """Let a test fail in two nightly runs in a row after a good one; return the last commit."""
    labs.upload(labs.commit())
    labs.upload(labs.commit(), TILE)
    sha = labs.commit()
    labs.upload(sha, TILE)
    return sha


async def test_a_regression_costs_one_request_for_each_unknown_ancestor(labs: Labs) -> None:
    for _ in range(5):
        labs.upload(labs.commit(), suite="other")
    sha = await confirmed(labs)
    labs.world.github.requests.clear()
    plan = await planned(labs, sha)
    assert [effect.effect["kind"] for effect in plan.effects] == ["StoreReports", "EnsureIssue"]
    assert plan.why == f"1 test began to fail on example-lab/hexagon-v73 at nightly commit {sha[:7]}"
    assert repository_requests(labs) == [COMPARE] * 2
    labs.world.github.requests.clear()
    assert await planned(labs, sha) == plan
    assert repository_requests(labs) == []


@pytest.mark.no_cover
@pytest.mark.parametrize("gap", [1, 50, 1_001])
async def test_a_regression_is_reported_whatever_the_number_of_commits_between_the_runs(labs: Labs, gap: int) -> None:
    first, second, third = (labs.commit(gap) for _ in range(3))
    for sha, failed in ((first, ()), (second, (TILE,)), (third, (TILE,))):
        labs.upload(sha, *failed)
    plan = await planned(labs, third)
    assert plan.why == f"1 test began to fail on example-lab/hexagon-v73 at nightly commit {third[:7]}"
    assert f"/compare/{first}...{second}" in str(plan.effects[-1].effect)
    assert repository_requests(labs) == [COMPARE] * 2


async def test_without_failures_now_or_before_nothing_is_requested(labs: Labs) -> None:
    for _ in range(3):
        sha = labs.commit()
        labs.upload(sha)
    labs.world.github.requests.clear()
    plan = await planned(labs, sha)
    assert ([effect.effect["kind"] for effect in plan.effects], plan.why) == (["StoreRecord"], NOTHING_FAILS)
    assert repository_requests(labs) == []
    # Evaluated again, it is still the same nightly run.
    evaluated = EvaluatedRun(sha, AT + labs.commits)
    await labs.world.records.put(REGRESSIONS.of(labs.world.repository.id, ABOUT.lab, ABOUT.target), evaluated)
    assert (await planned(labs, sha)).effects == ()


@pytest.mark.parametrize(
    ("later", "values", "why"),
    [
        (0.0, {"over": False}, NOT_OVER),
        (0.0, {"over": False, "again": True}, NOT_OVER),
        (LONGEST_AGE + 60, {}, NIGHTLY_TOO_OLD),
    ],
)
async def test_a_nightly_run_that_is_incomplete_or_old_is_not_judged(
    labs: Labs, later: float, values: dict[str, bool], why: str
) -> None:
    plan = await planned(labs, await confirmed(labs), later=later, **values)
    assert (plan.effects, plan.why) == ((), why)


async def test_a_pull_request_is_not_a_nightly_run_and_costs_nothing(labs: Labs) -> None:
    labs.upload(labs.commit())
    head = labs.commit(onto=labs.world.repository.branch("main"))
    labs.upload(head, TILE, pull=1)
    labs.world.github.requests.clear()
    plan = await planned(labs, head)
    assert (plan.effects, plan.why) == ((), NOT_NIGHTLY)
    assert repository_requests(labs) == []


async def test_a_target_removed_from_app_yaml_is_not_judged(labs: Labs) -> None:
    sha = await confirmed(labs)
    assert (await planned(labs, sha, target="adreno")).effects == ()


async def test_a_late_run_waits_for_a_newer_one_that_is_still_arriving(labs: Labs) -> None:
    sha = await confirmed(labs)
    newer = labs.commit()
    labs.upload(newer, TILE)
    assert (await planned(labs, sha)).why == NEWER_PENDING
    assert (await planned(labs, newer)).why.startswith("1 test began to fail")


async def test_a_late_run_is_reported_with_its_date(labs: Labs) -> None:
    first, second, third = (labs.commit() for _ in range(3))
    labs.upload(first)
    labs.upload(third, TILE)
    for pending in labs.store.read(scheduled_checks, FULL_NAME, 1e12, 0.0, 1e11):
        labs.store.write(announced, pending)
    assert (await planned(labs, third)).why == NO_NEWS
    labs.upload(second, TILE)
    # The check run of the third one is computed again, because its baseline changed.
    assert (await planned(labs, second)).why == NEWER_PENDING
    plan = await planned(labs, third)
    assert plan.why == f"1 test began to fail on example-lab/hexagon-v73 at nightly commit {third[:7]}"
    assert f"nightly commit {second[:7]}, committed on 2026-11-20, arrived after" in str(plan.effects[-1].effect)


def plan_for(
    changes: RegressionChanges, evaluated: EvaluatedRun = EVALUATED, places: tuple[Place, ...] = ("slack",)
) -> Plan:
    return decide_regressions(TARGET, changes, [*changes.began], evaluated, [Audience(places)], KEY)


@pytest.mark.parametrize(
    ("evaluated", "remaining"), [(EvaluatedRun(SHA, AT), ()), (EvaluatedRun("0" * 40, AT), (StoreRecord,))]
)
def test_a_known_failure_is_no_news(evaluated: EvaluatedRun, remaining: tuple[type[Effect], ...]) -> None:
    plan = plan_for(RegressionChanges(), evaluated)
    assert (tuple(map(type, plan.effects)), plan.why) == (remaining, NO_NEWS)


@pytest.mark.parametrize("begins", [True, False])
def test_after_a_person_closed_the_issue_only_new_regressions_are_reported(begins: bool) -> None:
    changes = RegressionChanges(began=BROKEN) if begins else RegressionChanges(recovered=BROKEN)
    ensure = plan_for(changes, places=("issue",)).effects[-1]
    assert isinstance(ensure, EnsureIssue)
    assert (ensure.begins, ensure.as_of) == (begins, AT)


def test_reports_are_stored_before_they_are_posted() -> None:
    reports, discord, slack = plan_for(RegressionChanges(began=BROKEN), places=("discord", "slack")).effects
    assert isinstance(reports, StoreReports)
    (record,) = reports.then
    assert unpack_failures(reports.failures) == {"": [*BROKEN], RECOVERED: [], REMOVED: []}
    assert isinstance(discord, PostMessage)
    assert isinstance(slack, PostMessage)
    assert record.stored is not None
    stored = REGRESSIONS.load(record.key, record.stored.value, record.stored.version)
    assert (record.key, stored) == (KEY.name, EvaluatedRun(SHA, AT, discord.key))
    assert (discord.place, slack.place, discord.key) == ("discord", "slack", slack.key)


def test_two_messages_about_one_nightly_run_have_different_keys() -> None:
    keys = set()
    for changes in (RegressionChanges(began=BROKEN), RegressionChanges(recovered=BROKEN)):
        message = plan_for(changes).effects[-1]
        assert isinstance(message, PostMessage)
        keys.add(message.key)
    assert len(keys) == 2


async def test_a_quarantined_test_is_reported_when_its_quarantine_ends_and_it_still_fails(labs: Labs) -> None:
    sha = await confirmed(labs)
    keys = {
        "results": {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}},
        "regressions": {"to": ["issue"]},
        "quarantine": [{**EXAMPLE, "test": TILE, "until": "2026-11-20"}],
    }
    config = parse_config(json.dumps({"repositories": {FULL_NAME: keys}}).encode(), "app.yaml")
    labs.world.configure(config)
    plan = await planned(labs, sha)
    assert plan.why == "1 quarantined test fails for two runs in a row; nothing else is new"
    assert [effect.effect["kind"] for effect in plan.effects] == ["StoreRecord"]
    plan = await planned(labs, sha, later=86_400.0)
    assert plan.why == f"1 test began to fail on example-lab/hexagon-v73 at nightly commit {sha[:7]}"
    assert [effect.effect["kind"] for effect in plan.effects] == ["StoreReports", "EnsureIssue"]


def test_a_message_counts_quarantined_failures() -> None:
    target = replace(TARGET, quarantined=2)
    plan = decide_regressions(target, RegressionChanges(BROKEN), BROKEN, EVALUATED, [Audience(("issue",))], KEY)
    assert "2 quarantined tests fail; check runs list them." in str(plan.effects)
