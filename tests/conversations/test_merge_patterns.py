"""Which names a pattern in `merge: required:` stands for: those on the newest commits of the base branch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.commits.expected import MOST_COMMITS
from bot.github.commits.required import SETTLED_SECONDS
from tests.conversations.merges import approve, merge_town, ready, report, says, short
from tests.conversations.town import Town


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


async def test_a_pattern_waits_for_jobs_that_have_not_begun(here: Town) -> None:
    """It stands for its matches on the newest commits of main: here those of the pull request that was merged there."""
    before = ready(here)
    report(here, before, context="gpu/pr-head")
    before.merge("octocat")
    pull = ready(here)
    assert await says(here, pull, "@ci merge") == (
        "eyes confused\n- 😕 `@ci merge`: Not merged:\n"
        f"  - `gpu/pr-head` hasn't started on {short(pull)} yet. `merge: required` in `app.yaml` requires "
        f"`*/pr-head`, and `gpu/pr-head` matched it on {short(before)}, a recent commit of `main`. If that job was "
        f"removed, I stop waiting for it once `main` has been green without it for 2 hours."
    )
    report(here, pull, context="gpu/pr-head")
    assert await says(here, pull, "@ci merge") == "eyes +1"


def on_main(here: Town, **states: str) -> str:
    """Push a commit to main and let CI report on it; return its SHA."""
    sha = here.repo.push("main", by="octocat").sha
    for name, state in states.items():
        here.repo.set_status("octocat", sha, f"{name}/pr-head", state)
    return sha


def not_begun(said: str) -> list[str]:
    """Return the names that an answer lists as not begun."""
    return [line.split("`")[1] for line in said.splitlines() if "hasn't started" in line]


async def test_a_pattern_stands_first_for_names_on_the_base_branch_itself(here: Town) -> None:
    pull = ready(here)
    sha = on_main(here, cpu="success", arm="success")
    here.github.clock.advance(seconds=SETTLED_SECONDS)
    on_main(here, cpu="failure", wasm="success")
    said = await says(here, pull, "@ci merge")
    assert not_begun(said) == ["arm/pr-head"]
    assert f"on `{sha[:7]}`" in said


async def test_a_commit_with_only_its_first_job_green_does_not_define_the_required_jobs(tmp_path: Path) -> None:
    """Right after a merge, jobs with `needs:` have no check run yet: a head was merged where only `lint` had run."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", 'required: ["*"]') as here:
        before = here.repo.open_pull_request("hubot", "Smaller")
        here.repo.add_workflow_run(before.head_sha, "CI", "success", {"lint": "success", "build": "success"})
        before.merge("octocat")
        here.repo.add_workflow_run(here.repo.branch("main"), "CI", "success", {"lint": "success"})
        pull = here.repo.open_pull_request("hubot", "Faster")
        here.repo.add_workflow_run(pull.head_sha, "CI", "success", {"lint": "success"})
        approve(pull)
        said = await says(here, pull, "@ci merge")
        assert not_begun(said) == ["build"]
        assert f"matched it on {short(before)}," in said
        here.repo.add_workflow_run(pull.head_sha, "CI", "success", {"lint": "success", "build": "success"})
        assert await says(here, pull, "@ci merge") == "eyes +1"


@pytest.mark.parametrize("name", ["test [cpu]", "build [!arm]", "[a-c]*?"])
async def test_a_name_with_characters_of_a_pattern_requires_that_check(tmp_path: Path, name: str) -> None:
    """A matrix makes such names."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", f'required: ["{name}"]') as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        approve(pull)
        report(here, pull, "failure", name)
        assert f"`{name}`](<https://ci.example.org/job/1>) failed" in await says(here, pull, "@ci merge")
        report(here, pull, "success", name)
        assert await says(here, pull, "@ci merge") == "eyes +1"


async def test_on_a_branch_that_is_never_green_a_pattern_waits_for_all_its_names(here: Town) -> None:
    """Older commits are not read."""
    pull = ready(here)
    on_main(here, ancient="success")
    for _ in range(MOST_COMMITS):
        on_main(here, cpu="success", gpu="failure")
    assert not_begun(await says(here, pull, "@ci merge")) == ["gpu/pr-head"]


async def test_a_removed_job_is_required_until_the_branch_is_green_without_it(here: Town) -> None:
    on_main(here, cpu="success", arm="success")
    here.github.clock.advance(seconds=SETTLED_SECONDS)
    on_main(here, cpu="success")
    pull = ready(here)
    assert not_begun(await says(here, pull, "@ci merge")) == ["arm/pr-head"]
    here.github.clock.advance(seconds=SETTLED_SECONDS)
    assert await says(here, pull, "@ci merge") == "eyes +1"
