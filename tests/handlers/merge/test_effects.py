"""Merging, whatever happens between the check and the write; leaving the queue; setting a label."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import RefusedToPerson, TryAgain, UserError
from bot.core.events import Person
from bot.effects.labels import EnsureLabel
from bot.plan.effect import Effect
from handlers.merge.effects import LeaveQueue, MergePull
from handlers.merge.pending import pending_merge, request_after, waiting_pulls, watching_pulls
from handlers.merge.pending_effects import EndPendingMerge, RequestRefresh, StorePendingMerge
from handlers.merge.records import MergeRequest, PendingMerge
from sandbox import PullRequest
from tests.handlers.driver import World, a_world

MERGE = "/repos/{owner}/{repo}/pulls/{pull_number}/merge"
COMMITS = "/repos/{owner}/{repo}/pulls/{pull_number}/commits"
ONE_LABEL = "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, features={"merge": {"required": ["cpu"]}}) as world:
        world.repository.set_role("hubot", "write")
        yield world


def ready(world: World) -> PullRequest:
    pull = world.open()
    world.repository.set_status("octocat", pull.head_sha, "cpu", "success")
    pull.review("hubot", state="APPROVED")
    return pull


def pending(pull: PullRequest, *, asked_at: str = "2026-11-20T05:00:00Z") -> PendingMerge:
    hubot = pull.repository.github.user("hubot")
    return PendingMerge(pull.head_sha, "main", Person(hubot.id, "hubot", False), "https://github.example", asked_at)


async def applied(world: World, effect: Effect) -> str:
    return (await world.apply_alone(effect)).text


def on_main(world: World) -> list[str]:
    return [commit.message for commit in world.repository.git.ancestry(world.repository.branch("main"))]


async def test_a_frozen_worker_finds_the_merge_that_another_one_made(world: World) -> None:
    pull = ready(world)
    merge = MergePull(pull.number, pending(pull))
    first, second = await applied(world, merge), await applied(world, merge)
    assert first == f"merged {pull.head_sha[:7]} into main as {str(pull.merge_commit_sha)[:7]}"
    assert second == f"{pull.head_sha[:7]} is already merged"
    assert len(on_main(world)) == 2


async def test_a_merge_by_hand_at_the_same_moment_counts_as_merged(world: World) -> None:
    pull = ready(world)
    held = world.github.faults.pause("PUT", MERGE, when="before")
    merging = asyncio.create_task(applied(world, MergePull(pull.number, pending(pull))))
    await held.reached.wait()
    pull.merge("octocat", "squash")
    held.resume()
    assert await merging == f"{pull.head_sha[:7]} is already merged"
    assert len(on_main(world)) == 2


RACES = [
    (405, "Base branch was modified. Review and try the merge again."),
    (405, "Merge already in progress"),
    (409, "Head branch was modified. Review and try the merge again."),
]


@pytest.mark.parametrize(("status", "message"), RACES)
@pytest.mark.parametrize("waited", [False, True])
async def test_the_merge_is_tried_again_if_another_push_or_merge_was_faster(
    world: World, status: int, message: str, waited: bool
) -> None:
    """GitHub shows no conflict and nothing that blocks."""
    pull = ready(world)
    merge = MergePull(pull.number, pending(pull), waited=waited)
    if waited:
        await applied(world, StorePendingMerge(pull.number, pending(pull)))
    world.github.faults.add("PUT", MERGE, status=status, message=message)
    with pytest.raises(TryAgain, match=message.split(".")[0]):
        await applied(world, merge)
    await applied(world, merge)
    assert pull.merged_at


async def test_the_merge_is_refused_if_the_head_moves_at_the_same_moment(world: World) -> None:
    pull = ready(world)
    held = world.github.faults.pause("PUT", MERGE, when="before")
    merging = asyncio.create_task(applied(world, MergePull(pull.number, pending(pull))))
    await held.reached.wait()
    pull.push()
    held.resume()
    with pytest.raises(RefusedToPerson, match="Head branch was modified"):
        await merging
    assert pull.state == "open"


async def test_the_merge_is_tried_again_if_the_base_moves_at_the_same_moment(world: World) -> None:
    """GitHub answers 405, and checks for conflicts again."""
    pull = ready(world)
    held = world.github.faults.pause("PUT", MERGE, when="before")
    merging = asyncio.create_task(applied(world, MergePull(pull.number, pending(pull))))
    await held.reached.wait()
    pull.undecided = 1
    world.repository.merge_methods = ()
    held.resume()
    with pytest.raises(TryAgain):
        await merging
    assert pull.state == "open"


async def test_a_head_that_nobody_asked_to_merge_is_not_merged(world: World) -> None:
    pull = ready(world)
    merge = MergePull(pull.number, pending(pull))
    pull.push()
    with pytest.raises(UserError, match="The head moved from"):
        await applied(world, merge)


async def test_a_pull_request_is_not_merged_into_another_branch_than_requested(world: World) -> None:
    """Its author may retarget it without a push, and without write access."""
    pull = ready(world)
    world.repository.move("refs/heads/release", world.repository.branch("main"), "octocat")
    merge = MergePull(pull.number, pending(pull))
    pull.retarget("octocat", "release")
    with pytest.raises(UserError, match="Its base is now `release`, not `main`"):
        await applied(world, merge)
    assert pull.state == "open"


@pytest.mark.parametrize("queue", [False, True])
async def test_a_pull_request_retargeted_between_check_and_merge_is_not_merged(world: World, queue: bool) -> None:
    """GitHub compares the head SHA in a merge request, but no base."""
    world.repository.move("refs/heads/release", world.repository.branch("main"), "octocat")
    if queue:
        world.repository.classic_queues.update({"main", "release"})
    pull = ready(world)
    held = world.github.faults.pause("GET", COMMITS, when="before")
    merging = asyncio.create_task(applied(world, MergePull(pull.number, pending(pull))))
    await held.reached.wait()
    pull.retarget("octocat", "release")
    held.resume()
    with pytest.raises(TryAgain):
        await merging
    assert (pull.state, pull.queued) == ("open", None)
    with pytest.raises(UserError, match="Its base is now `release`"):
        await applied(world, MergePull(pull.number, pending(pull)))


@pytest.mark.parametrize("role", ["triage", "none"])
async def test_a_retried_merge_is_not_made_for_somebody_who_lost_access(world: World, role: Any) -> None:
    """It may be retried for half an hour, and longer while GitHub limits us."""
    pull = ready(world)
    pull.review("maintainer", state="APPROVED")
    merge = MergePull(pull.number, pending(pull))
    world.repository.set_role("maintainer", "maintain")
    world.repository.set_role("hubot", role)
    with pytest.raises(UserError, match="`hubot` no longer has write access"):
        await applied(world, merge)
    assert pull.state == "open"


async def test_ending_one_pending_merge_does_not_end_a_newer_one(world: World) -> None:
    """A frozen worker applies the effect a second time."""
    pull = ready(world)
    first, second = pending(pull), pending(pull, asked_at="2026-11-20T06:00:00Z")
    end = EndPendingMerge(pull.number, first)
    await applied(world, StorePendingMerge(pull.number, first))
    assert await applied(world, end) == "no merge is pending"
    await applied(world, StorePendingMerge(pull.number, second))
    await applied(world, end)
    assert await pending_merge(world.records, world.repository.id, pull.number) == second


async def test_a_pending_merge_is_only_made_while_it_is_pending(world: World) -> None:
    pull = ready(world)
    merge = MergePull(pull.number, pending(pull), waited=True)
    assert await applied(world, merge) == "the pending merge was cancelled before this ran"
    await applied(world, StorePendingMerge(pull.number, pending(pull)))
    assert (await applied(world, merge)).startswith("merged ")


async def test_the_timer_refreshes_only_pending_merges(world: World) -> None:
    first, second = ready(world), ready(world)
    await applied(world, StorePendingMerge(first.number, pending(first, asked_at="2026-11-20T06:00:00Z")))
    await applied(world, StorePendingMerge(second.number, pending(second)))
    assert await waiting_pulls(world.records, world.repository.id) == [second.number, first.number]
    assert await waiting_pulls(world.records, world.repository.id + 1) == []
    await applied(world, StorePendingMerge(second.number))
    queued = replace(pending(first, asked_at="2026-11-20T06:00:00Z"), queued=True)
    await applied(world, StorePendingMerge(first.number, queued))
    assert await waiting_pulls(world.records, world.repository.id) == []


async def test_the_timer_finds_all_merges_that_become_pending_at_the_same_moment(world: World) -> None:
    pulls = [ready(world) for _ in range(4)]
    await asyncio.gather(*(applied(world, StorePendingMerge(pull.number, pending(pull))) for pull in pulls))
    assert await waiting_pulls(world.records, world.repository.id) == [pull.number for pull in pulls]


async def test_a_frozen_worker_does_not_restore_a_cancelled_merge(world: World) -> None:
    pull = ready(world)
    store, cancel = (
        StorePendingMerge(pull.number, pending(pull)),
        StorePendingMerge(pull.number, said_at="2026-11-20T05:00:01Z"),
    )
    assert await applied(world, store) == f"the merge of {pull.head_sha[:7]} is pending"
    assert await applied(world, cancel) == "no merge is pending"
    assert await applied(world, store) == "a later request replaced this one"
    assert await waiting_pulls(world.records, world.repository.id) == []
    newer_request = StorePendingMerge(pull.number, pending(pull, asked_at="2026-11-20T05:00:02Z"))
    assert await applied(world, newer_request) == f"the merge of {pull.head_sha[:7]} is pending"
    assert await applied(world, cancel) == "a later request replaced this one"
    assert await waiting_pulls(world.records, world.repository.id) == [pull.number]


PENDING = MergeRequest(PendingMerge("a" * 40, "main", Person(2, "hubot", False), "https://github.example", "05"))


@pytest.mark.parametrize(
    ("stored", "is_request", "moment", "stands"),
    [
        (None, True, "05", True),
        (PENDING, True, "05", True),
        (PENDING, True, "04", False),
        (MergeRequest(ended_at="05"), True, "05", False),
        (MergeRequest(ended_at="05"), True, "06", True),
        (PENDING, False, "05", True),
        (PENDING, False, "04", False),
        (PENDING, False, "", True),
    ],
)
def test_the_latest_request_wins(stored: MergeRequest | None, is_request: bool, moment: str, stands: bool) -> None:
    request = (
        PendingMerge("a" * 40, "main", Person(2, "hubot", False), "https://github.example", moment)
        if is_request
        else None
    )
    assert (request_after(stored, request, moment) is not None) is stands


def test_a_pull_request_in_the_queue_is_recorded_as_queued_even_after_a_cancellation() -> None:
    """Otherwise nobody could take it out again."""
    queued = PendingMerge("a" * 40, "main", Person(2, "hubot", False), "https://github.example", "05", queued=True)
    assert request_after(MergeRequest(ended_at="06"), queued, "05") == MergeRequest(queued)


async def test_leaving_the_queue_twice_does_no_harm(world: World) -> None:
    world.repository.classic_queues.add("main")
    pull = ready(world)
    assert await applied(world, LeaveQueue(pull.number)) == "it is no longer in the merge queue"
    pull.enqueue("hubot")
    assert await applied(world, LeaveQueue(pull.number)) == "removed from the merge queue"
    assert pull.queued is None


async def test_a_label_is_written_only_on_a_change_and_other_labels_stay(world: World) -> None:
    pull = world.open()
    pull.label("hubot", "docs")
    outcomes = [
        await applied(world, EnsureLabel(pull.number, "ready", on=is_on)) for is_on in (False, True, True, False)
    ]
    assert outcomes == [
        "the label is already as it should be",
        "added the label ready",
        "the label is already as it should be",
        "removed the label ready",
    ]
    assert [label.name for label in pull.labels] == ["docs"]


async def test_a_label_that_somebody_removes_at_the_same_moment_stays_off(world: World) -> None:
    pull = world.open()
    pull.label("hubot", "ready")
    held = world.github.faults.pause("DELETE", ONE_LABEL, when="before")
    applying = asyncio.create_task(applied(world, EnsureLabel(pull.number, "ready", on=False)))
    await held.reached.wait()
    pull.unlabel("hubot", "ready")
    held.resume()
    assert await applying == "removed the label ready"
    assert pull.labels == []


async def test_pull_requests_that_watch_the_same_commit_at_the_same_moment_are_all_recorded(world: World) -> None:
    sha, numbers = "a" * 40, list(range(1, 9))
    await asyncio.gather(*(world.apply_until_stored(RequestRefresh(number, sha)) for number in numbers))
    assert sorted(await watching_pulls(world.records, world.repository.id, sha)) == numbers
