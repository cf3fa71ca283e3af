"""Which nightly runs are judged for regressions, what that costs, and in what order effects are applied."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.config import parse_config
from bot.core.events import Delivery, Repository
from bot.core.payload import Payload
from bot.effects.issues import EnsureIssue
from bot.effects.remember import StoreRecord
from bot.engine.processor import PlannedEffects
from bot.news.effects import PostMessage
from bot.plan.effect import Effect
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.model import Detail, Seen, Status
from handlers.hardware import regressions
from handlers.hardware.regression_state import KnownRegressions, Regression
from handlers.hardware.regressions import NAME, OLD, REGRESSIONS, decide_regressions
from handlers.hardware.texts import ALREADY_REPORTED, NIGHTLY_TOO_OLD, NO_NEWS, NOT_NIGHTLY, NOT_OVER, NOTHING_FAILS
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import TILE, Labs, a_lab
from tests.results.reported import ABOUT, AT, BASE, SHA, a_suite, compared, findings

COMPARE = "GET /repos/{owner}/{repo}/compare/{basehead}"
BROKEN = (Regression("operators", BASE.sha, "a" * 40, "", (TILE,)),)
KEY = REGRESSIONS.of(5, "example-lab", "hexagon-v73")


@pytest.fixture
async def labs(tmp_path: Path) -> AsyncIterator[Labs]:
    """A lab in a world where regressions are reported, and nothing else is done."""
    keys = {
        "results": {"bucket": "device-results", "labs": {ABOUT.lab: {"targets": [ABOUT.target]}}},
        "regressions": {"to": ["issue"]},
    }
    config = parse_config(json.dumps({"repositories": {FULL_NAME: keys}}).encode(), "app.yaml")
    async with a_lab(tmp_path) as labs:
        labs.world.pipeline = replace(labs.world.pipeline, config=config, router=regressions.router)
        yield labs


async def planned(labs: Labs, sha: str, *, later: float = 0.0, **values: Any) -> PlannedEffects:
    """Return what is planned when the check of a commit is scheduled, so many seconds later."""
    pending = replace(CheckEvent(ABOUT.lab, ABOUT.target, sha, revision=1, over=True), **values)
    body = CHECK_EVENT.body(Repository(labs.world.repository.id, FULL_NAME, None), pending)
    delivery = Delivery("check:1", CHECK_EVENT.name, Payload(body), AT + later)
    return await labs.world.pipeline.plan(delivery, NAME, "check:1")


def asked(labs: Labs) -> list[str]:
    """Return what was asked about the repository since the requests were cleared."""
    records = labs.world.github.requests.records
    return [f"{r.method} {r.route}" for r in records if r.token == "installation" and "{repo}" in r.route]


async def confirmed(labs: Labs) -> str:
    """Let a test fail in two nightly runs in a row after a good one; return the last."""
    labs.upload(labs.commit())
    labs.upload(labs.commit(), TILE)
    sha = labs.commit()
    labs.upload(sha, TILE)
    return sha


async def test_a_regression_takes_one_request_for_each_ancestor_and_none_when_they_are_known(labs: Labs) -> None:
    for _ in range(5):
        labs.upload(labs.commit(), suite="other")
    sha = await confirmed(labs)
    labs.world.github.requests.clear()
    plan = await planned(labs, sha)
    assert [effect.effect["kind"] for effect in plan.effects] == ["StoreRecord", "EnsureIssue"]
    assert plan.why == f"1 test began to fail on example-lab/hexagon-v73 at nightly commit {sha[:7]}"
    assert asked(labs) == [COMPARE] * 2
    labs.world.github.requests.clear()
    assert await planned(labs, sha) == plan
    assert asked(labs) == []


async def test_where_nothing_fails_and_nothing_failed_nobody_is_asked(labs: Labs) -> None:
    for _ in range(3):
        sha = labs.commit()
        labs.upload(sha)
    labs.world.github.requests.clear()
    plan = await planned(labs, sha)
    assert ([effect.effect["kind"] for effect in plan.effects], plan.why) == (["StoreRecord"], NOTHING_FAILS)
    assert asked(labs) == []
    # Checked again, it is still the nightly run that the last message reported.
    known = KnownRegressions(sha, AT, reported=True)
    await labs.world.records.put(REGRESSIONS.of(labs.world.repository.id, ABOUT.lab, ABOUT.target), known)
    assert (await planned(labs, sha)).effects == ()


@pytest.mark.parametrize(
    ("later", "values", "why"),
    [
        (0.0, {"over": False}, NOT_OVER),
        (0.0, {"over": False, "again": True}, NOT_OVER),
        (OLD + 60, {}, NIGHTLY_TOO_OLD),
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
    assert asked(labs) == []


async def test_a_target_that_app_yaml_has_no_more_is_not_judged(labs: Labs) -> None:
    sha = await confirmed(labs)
    assert (await planned(labs, sha, target="adreno")).effects == ()


@pytest.mark.parametrize(
    ("known", "effects", "why"),
    [
        (KnownRegressions(SHA, AT, reported=True, failing=BROKEN), (), ALREADY_REPORTED),
        (KnownRegressions(SHA, AT, failing=BROKEN), (), NO_NEWS),
        (KnownRegressions("0" * 40, AT, failing=BROKEN), (StoreRecord,), NO_NEWS),
    ],
)
def test_what_people_know_is_no_news(known: KnownRegressions, effects: tuple[type[Effect], ...], why: str) -> None:
    suite = a_suite({TILE: Detail()})
    plan = decide_regressions(
        findings((suite, replace(compared(confirmed=[TILE]), good=BASE))), known, AT, ("slack",), KEY
    )
    assert (tuple(map(type, plan.effects)), plan.why) == (effects, why)


@pytest.mark.parametrize(
    ("known", "begins"), [(KnownRegressions(), True), (KnownRegressions("0" * 40, AT, failing=BROKEN), False)]
)
def test_only_new_regressions_are_reported_after_a_person_closed_the_issue(
    known: KnownRegressions, begins: bool
) -> None:
    suite = a_suite({TILE: Detail()}) if begins else a_suite(seen={TILE: Seen(Status.PASSED)})
    found = findings((suite, replace(compared(confirmed=[TILE] if begins else []), good=BASE)))
    _, ensure = decide_regressions(found, known, AT, ("issue",), KEY).effects
    assert isinstance(ensure, EnsureIssue)
    assert (ensure.begins, ensure.as_of) == (begins, AT)


def test_a_nightly_run_is_recorded_before_it_is_reported() -> None:
    found = findings((a_suite(), replace(compared(confirmed=[TILE]), good=BASE)))
    plan = decide_regressions(found, KnownRegressions(), AT, ("discord", "slack"), KEY)
    remember, discord, slack = plan.effects
    assert isinstance(remember, StoreRecord)
    assert isinstance(discord, PostMessage)
    assert isinstance(slack, PostMessage)
    assert remember.stored is not None
    known = REGRESSIONS.load(remember.key, remember.stored.value, remember.stored.version)
    assert (remember.key, known.nightly_sha, known.reported) == (KEY.name, SHA, True)
    assert (discord.place, slack.place, discord.key) == ("discord", "slack", slack.key)
    assert decide_regressions(found, known, AT, ("discord", "slack"), KEY).effects == ()
