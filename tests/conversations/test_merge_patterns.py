"""A pattern in `merge: required:` requires the matching names on the newest commits of the base branch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.commits.expected import MOST_COMMITS
from bot.github.commits.required import SETTLED_SECONDS
from tests.conversations.merges import approve, merge_town, ready, report, says, short
from tests.conversations.town import Town


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


async def test_a_pattern_waits_for_jobs_that_have_not_begun(town: Town) -> None:
    """It requires its matches on the newest commits of main: here, those of the pull request merged there."""
    merged_pull = ready(town)
    report(town, merged_pull, context="gpu/pr-head")
    merged_pull.merge("octocat")
    pull = ready(town)
    assert await says(town, pull, "@ci merge") == (
        "eyes confused\n- 😕 `@ci merge`: Not merged:\n"
        f"  - `gpu/pr-head` hasn't started on {short(pull)} yet. `merge: required` in `app.yaml` requires "
        f"`*/pr-head`, and `gpu/pr-head` matched it on {short(merged_pull)}, a recent commit of `main`. If that job "
        f"was removed, I stop waiting for it once `main` has been green without it for 2 hours."
    )
    report(town, pull, context="gpu/pr-head")
    assert await says(town, pull, "@ci merge") == "eyes +1"


def on_main(town: Town, **states: str) -> str:
    """Push a commit to main and let CI report on it; return its SHA."""
    sha = town.repo.push("main", by="octocat").sha
    for name, state in states.items():
        town.repo.set_status("octocat", sha, f"{name}/pr-head", state)
    return sha


def not_begun(reply: str) -> list[str]:
    """Return the names of the checks that a reply lists as not begun."""
    return [line.split("`")[1] for line in reply.splitlines() if "hasn't started" in line]


async def test_a_pattern_stands_first_for_names_on_the_base_branch_itself(town: Town) -> None:
    pull = ready(town)
    sha = on_main(town, cpu="success", arm="success")
    town.github.clock.advance(seconds=SETTLED_SECONDS)
    on_main(town, cpu="failure", wasm="success")
    reply = await says(town, pull, "@ci merge")
    assert not_begun(reply) == ["arm/pr-head"]
    assert f"on `{sha[:7]}`" in reply


async def test_a_commit_with_only_its_first_job_green_does_not_define_the_required_jobs(tmp_path: Path) -> None:
    """Right after a merge, jobs with `needs:` have no check run yet: a head was merged where only `lint` had run."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", 'required: ["*"]') as town:
        merged_pull = town.repo.open_pull_request("hubot", "Smaller")
        town.repo.add_workflow_run(merged_pull.head_sha, "CI", "success", {"lint": "success", "build": "success"})
        merged_pull.merge("octocat")
        town.repo.add_workflow_run(town.repo.branch("main"), "CI", "success", {"lint": "success"})
        pull = town.repo.open_pull_request("hubot", "Faster")
        town.repo.add_workflow_run(pull.head_sha, "CI", "success", {"lint": "success"})
        approve(pull)
        reply = await says(town, pull, "@ci merge")
        assert not_begun(reply) == ["build"]
        assert f"matched it on {short(merged_pull)}," in reply
        town.repo.add_workflow_run(pull.head_sha, "CI", "success", {"lint": "success", "build": "success"})
        assert await says(town, pull, "@ci merge") == "eyes +1"


@pytest.mark.parametrize("name", ["test [cpu]", "build [!arm]", "[a-c]*?"])
async def test_a_name_with_characters_of_a_pattern_requires_that_check(tmp_path: Path, name: str) -> None:
    """A matrix makes such names."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", f'required: ["{name}"]') as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        approve(pull)
        report(town, pull, "failure", name)
        assert f"`{name}`](<https://ci.example.org/job/1>) failed" in await says(town, pull, "@ci merge")
        report(town, pull, "success", name)
        assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_on_a_branch_that_is_never_green_a_pattern_waits_for_all_its_names(town: Town) -> None:
    """Older commits are not read."""
    pull = ready(town)
    on_main(town, ancient="success")
    for _ in range(MOST_COMMITS):
        on_main(town, cpu="success", gpu="failure")
    assert not_begun(await says(town, pull, "@ci merge")) == ["gpu/pr-head"]


async def test_a_removed_job_is_required_until_the_branch_is_green_without_it(town: Town) -> None:
    on_main(town, cpu="success", arm="success")
    town.github.clock.advance(seconds=SETTLED_SECONDS)
    on_main(town, cpu="success")
    pull = ready(town)
    assert not_begun(await says(town, pull, "@ci merge")) == ["arm/pr-head"]
    town.github.clock.advance(seconds=SETTLED_SECONDS)
    assert await says(town, pull, "@ci merge") == "eyes +1"
