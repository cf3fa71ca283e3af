"""A pull request that changes one file: kept up to date, left to whoever takes it over, and closed when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.errors import TryAgain, UserError
from bot.core.line_edits import LineEdits
from bot.effects.pulls import MARKER, PULL_BRANCH, EnsurePull
from sandbox.model.issues import Issue
from sandbox.model.pulls import PullRequest
from tests.handlers.driver import World, a_world

BOT = "nightjar[bot]"
BRANCH, FILE = "nightly-docker-update", "ci/images.ini"
REF = f"refs/heads/{BRANCH}"
REPO = "/repos/{owner}/{repo}"
OLD, NEW, NEWER = ("[jenkins]\r\nci_cpu: tlcpack/ci-cpu:" + tag for tag in ("1-1-a", "2-2-b", "3-3-c"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        world.repository.push("main", {FILE: OLD}, by="octocat")
        yield world


def ensured(world: World, content: str = NEW, decided_at: str = "2026-11-20T00:00:00Z") -> EnsurePull:
    base = world.repository.branch("main")
    body = f"Have `{content[-5:]}`."
    return EnsurePull(
        BRANCH, "main", decided_at, base, FILE, content, f"key{content[-1]}", "Update images", body, "Update images"
    )


def ended(decided_at: str = "2026-11-21T00:00:00Z") -> EnsurePull:
    return EnsurePull(BRANCH, "main", decided_at)


async def applied_text(world: World, effect: EnsurePull) -> str:
    return (await world.apply_alone(effect)).text


def pulls(world: World) -> list[tuple[str, str, str]]:
    """Return what people see of the pull requests: the state, the text without its marker, and the file's content."""
    git = world.repository.git
    return [(pull.state, shown(pull), git.commits[pull.head_sha].files[FILE]) for pull in world.repository.pulls]


def shown(pull: Issue) -> str:
    return "\n".join(line for line in (pull.body or "").splitlines() if not line.startswith("<!--"))


def only(world: World) -> PullRequest:
    (pull,) = world.repository.pulls
    return pull


async def test_a_pull_request_from_beginning_to_end(world: World) -> None:
    repository = world.repository
    assert await applied_text(world, ensured(world)) == "opened #1"
    assert pulls(world) == [("open", "Have `2-2-b`.", NEW)]
    assert (only(world).title, only(world).user.login, only(world).base_ref) == ("Update images", BOT, "main")
    repository.push("main", {"README.md": "More"}, by="octocat")
    assert await applied_text(world, ensured(world, NEWER)) == "updated #1"
    assert pulls(world) == [("open", "Have `3-3-c`.", NEWER)]
    assert [commit.message for commit in only(world).commits] == ["Update images"], (
        "there is one commit on the newest base"
    )
    repository.push("main", {FILE: NEWER}, by="octocat")
    assert await applied_text(world, ended()) == f"closed #1; deleted the branch {BRANCH}"
    assert pulls(world) == [
        ("closed", "`main` already has all of this, so this pull request is no longer needed.\n\nHave `3-3-c`.", NEWER)
    ]
    assert REF not in repository.refs
    assert await applied_text(world, ended()) == "there is nothing to close"


async def test_nothing_is_written_if_nothing_is_new(world: World) -> None:
    """TVM: without a change, `git commit` failed, and an existing pull request was an error."""
    assert await applied_text(world, ended()) == "there is nothing to close"
    assert world.github.requests.writes == []
    await applied_text(world, ensured(world))
    only(world).edit("octocat", title="Images", body=f"{only(world).body}\n\nI shall look at it.")
    world.repository.push("main", {"README.md": "More"}, by="octocat")
    written = len(world.github.requests.writes)
    assert await applied_text(world, ensured(world)) == "#1 is up to date"
    assert len(world.github.requests.writes) == written, "people's additions stay"


@pytest.mark.parametrize("fault_time", ["before", "after"])
@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", f"{REPO}/git/trees"),
        ("POST", f"{REPO}/git/commits"),
        ("POST", f"{REPO}/git/refs"),
        ("POST", f"{REPO}/pulls"),
        ("PATCH", f"{REPO}/git/refs/{{ref}}"),
        ("PATCH", f"{REPO}/pulls/{{pull_number}}"),
        ("DELETE", f"{REPO}/git/refs/{{ref}}"),
    ],
)
async def test_a_lost_answer_repeats_and_loses_nothing(world: World, method: str, route: str, fault_time: str) -> None:
    fault = world.github.faults.add(method, route, status=502, when=fault_time, times=None)  # type: ignore[arg-type]
    for effect in (ensured(world), ensured(world, NEWER), ended()):
        try:
            await applied_text(world, effect)
        except TryAgain:
            fault.times = fault.hits
            await applied_text(world, effect)
    assert fault.hits
    (pull,) = pulls(world)
    assert (pull[0], pull[2], REF in world.repository.refs) == ("closed", NEWER, False)


async def test_a_branch_to_which_somebody_pushed_is_left_to_them(world: World) -> None:
    await applied_text(world, ensured(world))
    foreign_sha = only(world).push({FILE: "mine"}, by="octocat")
    left_alone = f"somebody else pushed to {BRANCH}, so the bot left it alone"
    for _ in range(2):
        assert await applied_text(world, ensured(world, NEWER)) == left_alone
    assert pulls(world) == [
        (
            "open",
            f"Somebody else pushed to `{BRANCH}`, so I no longer change it. If you delete the branch, I'll create a "
            "new one.\n\nHave `3-3-c`.",
            "mine",
        )
    ]
    assert await applied_text(world, ended()) == left_alone
    assert (only(world).head_sha, only(world).state) == (foreign_sha.sha, "open")
    world.repository.move(REF, None, "octocat")
    assert await applied_text(world, ensured(world, NEWER)) == "opened #2"
    assert [state for state, _, _ in pulls(world)] == ["closed", "open"]


async def test_a_push_between_our_check_and_our_push_is_noticed(world: World) -> None:
    await applied_text(world, ensured(world))
    pause = world.github.faults.pause("POST", f"{REPO}/git/commits", when="before")
    task = asyncio.create_task(applied_text(world, ensured(world, NEWER)))
    await pause.reached.wait()
    foreign_sha = only(world).push({FILE: "mine"}, by="octocat").sha
    pause.resume()
    with pytest.raises(TryAgain, match="somebody else changed the branch"):
        await task
    assert world.repository.refs[REF] == foreign_sha


async def test_a_branch_that_was_never_ours_is_not_touched(world: World) -> None:
    foreign_sha = world.repository.push(BRANCH, {"a": "b"}, by="octocat").sha
    with pytest.raises(UserError, match="has commits that aren't mine"):
        await applied_text(world, ensured(world))
    assert await applied_text(world, ended()) == "there is nothing to close"
    assert (world.repository.refs[REF], world.repository.pulls) == (foreign_sha, [])


async def test_a_pull_request_closed_by_a_person_stays_closed_until_there_is_something_new(world: World) -> None:
    await applied_text(world, ensured(world))
    only(world).close("octocat")
    assert await applied_text(world, ensured(world)) == "somebody closed #1, so the bot waits for a newer change"
    assert await applied_text(world, ensured(world, NEWER)) == "opened #2"
    assert pulls(world) == [("closed", "Have `2-2-b`.", NEW), ("open", "Have `3-3-c`.", NEWER)]


async def test_a_reverted_merge_is_proposed_again(world: World) -> None:
    await applied_text(world, ensured(world))
    only(world).merge("octocat", "squash")
    world.repository.push("main", {FILE: OLD}, by="octocat", message="Revert")
    assert await applied_text(world, ensured(world)) == "opened #2"
    assert [state for state, _, _ in pulls(world)] == ["closed", "open"]
    assert world.repository.pulls[1].mergeable


async def test_the_branch_of_a_merged_pull_request_is_deleted(world: World) -> None:
    await applied_text(world, ensured(world))
    only(world).merge("octocat")
    assert await applied_text(world, ended()) == f"deleted the branch {BRANCH}"


async def test_a_pull_request_that_a_person_opened_from_the_branch_keeps_its_text(world: World) -> None:
    """TVM: GitHub's 422 about an existing pull request was an error."""
    world.github.faults.add("POST", f"{REPO}/pulls", status=502, times=1)
    with pytest.raises(TryAgain):
        await applied_text(world, ensured(world))
    world.repository.open_pull_request("octocat", body="Mine", branch=BRANCH)
    left_alone = "somebody else opened #1, so the bot left its text alone"
    assert await applied_text(world, ensured(world)) == left_alone
    assert await applied_text(world, ensured(world, NEWER)) == left_alone
    assert pulls(world) == [("open", "Mine", NEWER)]


async def test_a_pull_request_opened_at_the_same_moment_is_used(world: World) -> None:
    pause = world.github.faults.pause("POST", f"{REPO}/pulls", when="before")
    task = asyncio.create_task(applied_text(world, ensured(world)))
    await pause.reached.wait()
    world.repository.open_pull_request(BOT, body=f"{MARKER.format(key='keyb')}\nHave it.", branch=BRANCH)
    pause.resume()
    assert await task == "#1 is already open for this"
    assert len(world.repository.pulls) == 1


async def test_an_outdated_decision_changes_nothing(world: World) -> None:
    """A worker that was frozen for hours applies its effect, or an old delivery is replayed."""
    old = ensured(world)
    await applied_text(world, ensured(world, NEWER, decided_at="2026-11-21T00:00:00Z"))
    assert await applied_text(world, old) == "a newer decision replaced this one"
    world.repository.push("main", {FILE: NEWER}, by="octocat")
    await applied_text(world, ended("2026-11-22T00:00:00Z"))
    assert (
        await applied_text(world, replace(old, content=NEWER, at="2026-11-21T00:00:00Z"))
        == "a newer decision replaced this one"
    )
    assert [state for state, _, _ in pulls(world)] == ["closed"]


async def test_without_a_record_of_our_commits_the_branch_is_left_alone(world: World) -> None:
    await applied_text(world, ensured(world))
    await world.records.remove(PULL_BRANCH.of(world.repository.id, BRANCH))
    assert await applied_text(world, ensured(world)) == "#1 is up to date"
    assert (await applied_text(world, ensured(world, NEWER))).startswith("somebody else pushed")


async def test_the_cost_is_fixed(world: World) -> None:
    await applied_text(world, ended())  # looks up where the App is installed, once
    counts = []
    for effect in (ended(), ensured(world), ensured(world), ensured(world, NEWER), ended()):
        request_count = len(world.github.requests.records)
        await applied_text(world, effect)
        requests = world.github.requests.records[request_count:]
        counts.append(len([request for request in requests if request.path.startswith("/repos/")]))
    # Pulls and branch; those, base, tree, commit, branch, branch, pull; with the file; all of it; close and delete.
    assert counts == [2, 8, 3, 9, 4]


def test_only_a_request_to_a_team_needs_to_see_members(world: World) -> None:
    effect = ensured(world)
    assert effect.permissions == replace(effect, reviewers=("hubot",)).permissions == {"contents", "pull_requests"}
    assert replace(effect, reviewers=("hubot", "octocat/team")).permissions == {*effect.permissions, "members"}


async def test_lines_of_several_files_are_edited_and_each_owner_is_asked_once(world: World) -> None:
    world.repository.push("main", {"a.py": "one\r\ntwo\r\n", "b.py": "one\n", "c.py": "c"}, by="octocat")
    edits = (LineEdits("a.py", ((2, "new\r"),), (1,)), LineEdits("b.py", ((2, "last"),)))
    effect = replace(ensured(world), path="", content="", edits=edits, reviewers=("hubot", "nobody", "other/team"))
    assert await applied_text(world, effect) == "opened #1"
    files = world.repository.git.commits[only(world).head_sha].files
    assert (files["a.py"], files["b.py"], files["c.py"]) == ("new\r\ntwo\r\n", "one\nlast\n", "c")
    assert [user.login for user in only(world).requested_reviewers] == ["hubot"], "whom GitHub refuses is left out"
    requests = len(world.github.requests.writes)
    assert await applied_text(world, effect) == "#1 is up to date"
    assert len(world.github.requests.writes) == requests, "nobody is asked again"
    with pytest.raises(UserError, match=r"there is no file d\.py at"):
        await world.apply_alone(replace(effect, edits=(LineEdits("d.py", removed=(1,)),)))
    assert (
        await applied_text(world, replace(ended(), body="Nothing is left."))
        == f"closed #1; deleted the branch {BRANCH}"
    )
    assert shown(only(world)).startswith("Nothing is left.")
