"""Which commit the nightly branch moves to while CI goes on, and behind large merges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.nightly_runs import NightlyTown, nightly_town


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[NightlyTown]:
    async with nightly_town(f"sqlite:///{tmp_path}/nightjar.db", require=["*/branch", "lint"]) as place:
        yield place


async def test_a_commit_whose_workflow_run_is_rerun_is_not_chosen_before_the_run_ends(strict: NightlyTown) -> None:
    """`lint` needs `build`: the attempt before skipped it, which counts as green."""
    repo = strict.town.repo
    sha = strict.push()
    repo.set_status("hubot", sha, "cpu/branch", "success")
    run = repo.add_workflow_run(sha, "CI", "failure", {"build": "failure", "lint": "skipped"}, by="hubot")
    run.rerun(strict.town.github.user("hubot"), only_failed=True)
    run.start()
    await strict.nightly_run()
    assert strict.head is None
    assert (await strict.verdicts())[0] == ("Improve it", "pending", ["lint pending"])
    run.finish("success")
    await strict.nightly_run()
    assert strict.head == sha


async def test_a_good_commit_before_a_large_merge_is_chosen(strict: NightlyTown) -> None:
    """GitHub lists the commits of the merge first, so the good commit is not on the first page."""
    repo, git = strict.town.repo, strict.town.repo.git
    hubot, clock = strict.town.github.user("hubot"), strict.town.github.clock
    good = strict.push("good")
    repo.set_status("hubot", good, "cpu/branch", "success")
    repo.set_status("hubot", good, "lint", "success")
    side = tip = strict.push("on main")
    clock.advance(seconds=1)
    for number in range(120):
        side = git.commit((side,), {}, f"side {number}", hubot, clock.now()).sha
    repo.move("refs/heads/main", git.commit((tip, side), {}, "Merge", hubot, clock.now()).sha, "hubot")
    await strict.nightly_run()
    assert strict.head == good
    assert [title for title, _, _ in await strict.verdicts()] == ["Merge", "on main", "good"]
