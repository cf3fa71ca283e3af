"""The answer when CI asks what to do for a pull request."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bot.core.errors import TryAgain
from bot.engine.database import Database
from bot.engine.records import Records
from bot.github.client import GitHub
from bot.github.limits.ranks import Rank, ranked
from handlers.ci_decisions.service import Decisions, NoSuchPullRequest
from tests.handlers.driver import FULL_NAME, World, a_world

NOT_ON = {
    "skip_ci": {"value": False, "reason": "CI runs: skip_ci is off in this repository."},
    "docs_only": {
        "value": False,
        "reason": "Everything is built: skip_ci is off in this repository.",
    },
    "rebuild_docker": {
        "value": True,
        "reason": "The images are built: rebuild_docker is off in this repository.",
    },
}
OFF = {"value": False, "reason": "Off: nobody requested them. To turn on, comment: @ci run slow tests"}
ON = {"value": True, "reason": "On: requested by octocat. To turn off, comment: @ci skip slow tests"}


def decisions(world: World, records: Records | None = None, clock: Callable[[], float] = time.monotonic) -> Decisions:
    app = world.pipeline.app

    async def github_for(repository: str) -> GitHub:
        return await app.reader(repository)

    return Decisions(world.pipeline.config, records or world.records, github_for, clock)


def answer(sha: str, verdict: Mapping[str, object]) -> dict[str, object]:
    level = "main" if verdict["value"] else "pull-request"
    return {"sha": sha, "level": level, "run_slow_tests": verdict, **NOT_ON}


async def test_known_facts_are_answered_without_asking_github(world: World) -> None:
    pull = world.open()
    await world.say(pull, "@ci run slow tests")
    world.github.requests.clear()
    assert await decisions(world)(FULL_NAME, pull.number) == answer(pull.head_sha, ON)
    assert await decisions(world)("OctoCat/Compiler", pull.number) == answer(pull.head_sha, ON)
    assert world.github.requests.records == []


async def test_the_head_is_the_newest_one_that_a_webhook_named(world: World) -> None:
    pull = world.open()
    await world.happen()
    pull.push()
    await world.happen()
    assert await decisions(world)(FULL_NAME, pull.number) == answer(pull.head_sha, OFF)


async def test_a_pull_request_older_than_the_installation_is_looked_up_once_for_all_steps_of_a_build(
    world: World,
) -> None:
    pull = world.open()
    world.github.webhooks.held.clear()
    decide = decisions(world)
    world.github.requests.clear()
    for _ in range(3):
        assert await decide(FULL_NAME, pull.number) == answer(pull.head_sha, OFF)
    assert world.github.requests.count("GET", "/repos/{owner}/{repo}/pulls/{pull_number}") == 1


@pytest.mark.parametrize("repository", [FULL_NAME, "octocat/elsewhere"])
async def test_missing_and_foreign_repositories_and_pull_requests_are_not_found(world: World, repository: str) -> None:
    with pytest.raises(NoSuchPullRequest):
        await decisions(world)(repository, 4711)


async def test_a_missing_pull_request_is_cached_for_a_minute(world: World) -> None:
    clock = [0.0]
    decide = decisions(world, clock=lambda: clock[0])
    world.github.requests.clear()
    for moment, requests in ((0.0, 1), (59.5, 1), (60.0, 2)):
        clock[0] = moment
        for _ in range(3):
            with pytest.raises(NoSuchPullRequest):
                await decide(FULL_NAME, 4711)
        assert world.github.requests.count("GET", "/repos/{owner}/{repo}/pulls/{pull_number}") == requests


async def test_a_webhook_about_the_pull_request_ends_the_caching(world: World) -> None:
    decide = decisions(world, clock=lambda: 0.0)
    with pytest.raises(NoSuchPullRequest):
        await decide(FULL_NAME, 1)
    pull = world.open()
    await world.happen()
    assert await decide(FULL_NAME, 1) == answer(pull.head_sha, OFF)


async def test_ci_should_ask_again_if_the_head_is_unknown_and_github_is_down(world: World) -> None:
    world.open()
    world.github.webhooks.held.clear()
    world.github.faults.add("GET", "/repos/{owner}/{repo}/pulls/{pull_number}", status=502, times=None)
    with pytest.raises(TryAgain):
        await decisions(world)(FULL_NAME, 1)


@pytest.mark.no_cover
async def test_many_anonymous_questions_leave_webhooks_their_part_of_githubs_quota(world: World) -> None:
    """Anybody may ask, about any number."""
    pull = world.open()
    await world.happen()
    world.github.rate_limits.limit = 400
    decide = decisions(world)

    async def ask_much() -> None:
        for number in range(1_000, 1_400):
            with contextlib.suppress(NoSuchPullRequest):
                await decide(FULL_NAME, number)

    world.github.requests.clear()
    with ranked(Rank.ANONYMOUS), pytest.raises(TryAgain, match="anonymous requests have used up their share"):
        await ask_much()
    assert world.github.requests.count("GET", "/repos/{owner}/{repo}/pulls/{pull_number}") == 20
    with ranked(Rank.SWEEP), pytest.raises(TryAgain, match="reserved for webhooks"):
        await ask_much()
    await world.say(pull, "@ci run slow tests")
    assert await decide(FULL_NAME, pull.number) == answer(pull.head_sha, ON)


async def test_if_the_database_is_down_everything_runs(world: World, tmp_path: Path) -> None:
    pull = world.open()
    await world.happen()
    closed = Database(f"sqlite:///{tmp_path / 'closed.db'}")
    await closed.open()
    await closed.close()
    answer_ = await decisions(world, Records(closed.connector))(FULL_NAME, pull.number)
    assert answer_["sha"] == pull.head_sha
    assert answer_["run_slow_tests"] == {
        "value": True,
        "reason": "Fallback: the repository's settings could not be read, so the slow tests run.",
    }


async def test_if_the_feature_is_off_everything_runs(tmp_path: Path) -> None:
    async with a_world(tmp_path, features={"slow_tests": False}) as world:
        pull = world.open()
        await world.happen()
        answer_ = await decisions(world)(FULL_NAME, pull.number)
        assert answer_["run_slow_tests"] == {
            "value": True,
            "reason": "On: slow tests cannot be turned off in this repository (slow_tests is off).",
        }
