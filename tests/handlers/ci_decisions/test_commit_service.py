"""Decisions about commits of branches: how long GitHub's answers are cached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from handlers.ci_decisions.commit_service import CommitDecisions, NoSuchCommit
from tests.handlers.driver import FULL_NAME, World, a_world

COMMIT = "/repos/{owner}/{repo}/git/commits/{commit_sha}"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, features={"skip_ci": {}}) as made:
        yield made


def decisions(world: World, clock: Callable[[], float]) -> CommitDecisions:
    return CommitDecisions(world.pipeline.config, world.records, world.pipeline.app.reader, clock)


async def test_a_missing_commit_is_cached_for_a_minute(world: World) -> None:
    clock = [0.0]
    decide = decisions(world, lambda: clock[0])
    world.github.requests.clear()
    for moment, requests in ((0.0, 1), (59.5, 1), (60.0, 2)):
        clock[0] = moment
        for _ in range(3):
            with pytest.raises(NoSuchCommit):
                await decide(FULL_NAME, "d" * 40)
        assert world.github.requests.count("GET", COMMIT) == requests


async def test_a_repository_that_is_not_ours_has_no_commits(world: World) -> None:
    with pytest.raises(NoSuchCommit):
        await decisions(world, lambda: 0.0)("octocat/elsewhere", "d" * 40)


async def test_a_forced_push_to_a_cached_commit_is_noticed_after_ten_seconds(world: World) -> None:
    clock = [0.0]
    decide = decisions(world, lambda: clock[0])
    old = world.repository.push("main", {"docs/a.rst": "x"}, by="octocat")
    answer_ = await decide(FULL_NAME, old.sha, "main")
    assert answer_["skip_ci"] == {"value": True, "reason": "CI is skipped: only documentation changed (1 file)."}
    newer = world.repository.push("main", {"docs/b.rst": "x"}, by="octocat")
    world.repository.move("refs/heads/main", old.sha, "octocat")
    clock[0] = 9.5
    assert await decide(FULL_NAME, old.sha, "main") == answer_
    clock[0] = 10.0
    answer_ = await decide(FULL_NAME, old.sha, "main")
    assert f"the branch was at {newer.sha[:7]} before the push of {old.sha[:7]}" in str(answer_["skip_ci"])
