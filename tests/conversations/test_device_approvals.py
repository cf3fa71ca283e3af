"""Which pushes reach a device without an approval, and what the bot answers about those that do not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from handlers.device_tests.model import DeviceJobState
from handlers.device_tests.sweep import SWEEP
from sandbox import PullRequest
from tests.bucket import World
from tests.conversations.devices import ADRENO, MALI, Devices, device_town
from tests.conversations.lab import LAB


@pytest.fixture
async def devices(tmp_path: Path, aws_world: World) -> AsyncIterator[Devices]:
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


def reopen(pull: PullRequest, person: str) -> None:
    pull.close(person)
    pull.reopen(person)


def update_branch(pull: PullRequest, person: str) -> None:
    pull.repository.push("main", {"NEWS.md": "x"}, by="octocat")
    pull.update_branch(person)


def commit_suggestion(pull: PullRequest, person: str) -> None:
    pull.push({"README.md": "x"}, by=person, message="Apply suggestion")


MOVES = (reopen, update_branch, commit_suggestion)
Move = Callable[[PullRequest, str], None]


@pytest.mark.parametrize("move", MOVES)
async def test_a_strangers_code_waits_for_approval_whatever_somebody_with_write_access_does_to_it(
    devices: Devices, move: Move
) -> None:
    repo = devices.place.town.repo
    pull = repo.open_pull_request("somebody", "Faster", fork=True, files={"src/mali/tile.cc": "x"})
    await devices.says(pull, "hubot", "@ci test on adreno")
    assert await devices.states(pull) == {MALI: DeviceJobState.WAITING, ADRENO: DeviceJobState.QUEUED}
    move(pull, "hubot")
    await devices.place.town.quiet()
    jobs = {job.target: job for job in await devices.jobs(pull)}
    assert {name: job.sha for name, job in jobs.items()} == dict.fromkeys((MALI, ADRENO), pull.head_sha)
    assert {name: job.state for name, job in jobs.items()} == dict.fromkeys((MALI, ADRENO), DeviceJobState.WAITING)
    for target in (MALI, ADRENO):
        assert await devices.store.claim(LAB, [target], devices.place.town.bot.services.part(SWEEP).limits_of) is None


@pytest.mark.parametrize(
    ("fork", "moves", "person", "state"),
    [
        (False, MOVES, "octocat", DeviceJobState.QUEUED),
        (True, (update_branch, commit_suggestion), "hubot", DeviceJobState.QUEUED),
        (True, (reopen,), "hubot", DeviceJobState.WAITING),
        (True, MOVES, "octocat", DeviceJobState.WAITING),
    ],
)
async def test_the_code_of_somebody_with_write_access_waits_only_if_others_move_their_forks_head(
    devices: Devices, fork: bool, moves: Sequence[Move], person: str, state: DeviceJobState
) -> None:
    for move in moves:
        files = {"src/mali/tile.cc": move.__name__}
        pull = devices.place.town.repo.open_pull_request("hubot", "Faster", fork=fork, files=files)
        await devices.place.town.quiet()
        assert await devices.states(pull) == {MALI: DeviceJobState.QUEUED}
        move(pull, person)
        await devices.place.town.quiet()
        assert await devices.states(pull) == {MALI: state}


async def test_a_target_that_is_requested_and_waits_for_approval_says_how_to_approve_it(devices: Devices) -> None:
    pull = devices.pull("somebody")
    await devices.says(pull, "somebody", "@ci test on adreno")
    _, answer = await devices.says(pull, "hubot", "@ci test on adreno")
    sha = pull.head_sha
    assert f"`example-lab/adreno` is already requested on `{sha[:7]}` and waits for approval." in answer
    assert f"`@ci approve tests {sha}`" in answer
