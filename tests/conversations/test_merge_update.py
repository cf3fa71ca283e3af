"""A branch whose rules require an up-to-date head: what the bot answers, and `@ci update`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox import PullRequest
from sandbox.model.rules import Rules
from tests.conversations.lab import Moments
from tests.conversations.merges import CPU, approve, merge_town, ready, report, says, short
from tests.conversations.town import Town

UPDATE = "/repos/{owner}/{repo}/pulls/{pull_number}/update-branch"
BEHIND = (
    "It is behind `main`, and the rules of `main` require it to be up to date. Comment `@ci update`, then ask for a "
    "new review."
)
MOVED_ON = {"README.md": "# Moved on\n"}


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", f"required: [{CPU}]") as place:
        place.repo.rules["main"] = Rules(strict=True)
        yield place


def behind(town: Town, **values: object) -> PullRequest:
    """Open a pull request that is ready, except that its base has moved since."""
    pull = ready(town, **values)  # type: ignore[arg-type]
    town.repo.push("main", MOVED_ON, by="octocat")
    return pull


async def test_the_answer_for_an_outdated_branch_names_the_update_command(town: Town) -> None:
    pull = behind(town)
    assert await says(town, pull, "@ci merge") == f"eyes confused\n- 😕 `@ci merge`: Not merged:\n  - {BEHIND}"
    old_head = pull.head_sha
    assert await says(town, pull, "@ci update", by="hubot") == "eyes +1"
    assert town.repo.git.commits[pull.head_sha].parents == (old_head, town.repo.branch("main"))
    report(town, pull)
    approve(pull)
    assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_a_pending_merge_survives_the_update_by_the_bot(town: Town) -> None:
    pull = behind(town)
    assert BEHIND in await says(town, pull, "@ci merge when green")
    assert await says(town, pull, "@ci update") == "eyes +1"
    assert len(town.answers(pull)) == 1, "nothing is cancelled"
    report(town, pull)
    await town.quiet()
    assert pull.state == "open", "the new head is not approved yet"
    approve(pull)
    await town.quiet()
    assert str(pull.merged_by) == "@nightjar[bot]"


async def test_somebody_elses_update_of_the_branch_cancels_the_merge(town: Town) -> None:
    pull = behind(town)
    await says(town, pull, "@ci merge when green")
    pull.update_branch("hubot")
    await town.quiet()
    assert "The head moved to" in town.answers(pull)[-1]


async def test_a_pending_merge_that_falls_behind_is_reported_once_and_continues(tmp_path: Path) -> None:
    moments = Moments()
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", f"required: [{CPU}]", now=moments) as town:
        town.repo.rules["main"] = Rules(strict=True)
        pull = town.repo.open_pull_request("hubot", "Faster")
        approve(pull)
        report(town, pull, "pending")
        await says(town, pull, "@ci merge when green")
        town.repo.push("main", MOVED_ON, by="octocat")
        for _ in range(2):
            report(town, pull)
            await town.quiet()
        _, answer = town.answers(pull)
        assert answer.splitlines()[1:] == [
            f"I'm still waiting to merge {short(pull)}, but now someone must act:",
            "",
            f"- {BEHIND}",
        ]
        assert await town.failures() == []


async def test_update_of_an_up_to_date_branch_changes_nothing(town: Town) -> None:
    pull = ready(town)
    old_head = pull.head_sha
    assert await says(town, pull, "@ci update") == "eyes +1"
    assert pull.head_sha == old_head


async def test_only_people_with_the_write_role_may_update(town: Town) -> None:
    pull = behind(town, author="reader")
    old_head = pull.head_sha
    assert "eyes confused" in await says(town, pull, "@ci update", by="reader")
    assert pull.head_sha == old_head


async def test_the_answer_says_that_a_fork_does_not_allow_edits(town: Town) -> None:
    pull = behind(town, author="stranger", fork=True)
    pull.maintainers_may_push = False
    assert await says(town, pull, "@ci update") == (
        "eyes confused\n- 😕 `@ci update`: I can't push to this branch: it is in the fork `stranger/compiler`, which "
        "doesn't allow edits by maintainers or by this App. Ask the author to merge `main` into it."
    )
    assert await town.failures() == []
    pull.maintainers_may_push = True
    assert await says(town, pull, "@ci update") == "eyes +1"


async def test_the_answer_reports_conflicts_with_the_base(town: Town) -> None:
    pull = ready(town, files={"README.md": "# Mine\n"})
    town.repo.push("main", MOVED_ON, by="octocat")
    reply = await says(town, pull, "@ci update")
    assert "GitHub can't merge `main` into it because of conflicts. Resolve them by hand." in reply


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_update_whose_answer_is_lost_is_found_and_not_repeated(town: Town, moment: str) -> None:
    pull = behind(town)
    await town.quiet()
    old_head = pull.head_sha
    town.github.faults.add("PUT", UPDATE, drop="after" if moment == "after" else "before")
    assert await says(town, pull, "@ci update") == "eyes +1"
    assert town.repo.git.commits[pull.head_sha].parents[0] == old_head


async def test_a_push_that_comes_before_the_update_prevents_it(town: Town) -> None:
    pull = behind(town)
    await town.quiet()
    held = town.github.faults.pause("PUT", UPDATE, when="before")
    comment = pull.comment("octocat", "@ci update")
    await held.reached.wait()
    old, new = pull.head_sha, pull.push().sha
    held.resume()
    await town.quiet()
    assert pull.head_sha == new
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert f"The head moved from `{old[:7]}` to `{new[:7]}`, so I didn't update it." in (town.answers(pull)[-1])
