"""A dry run of a revert, and of its merge."""

from __future__ import annotations

from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.town import town


async def people_revert_a_pull_request(fixtures: SceneFixtures) -> DryFirst:
    """Somebody reverts a merged pull request, merges the revert, and asks once more."""
    async with town(fixtures.database) as here:
        dry = DryFirst.attached(here.bot)
        pull = here.repo.open_pull_request("hubot", "Faster")
        await dry.quiet(here)
        pull.merge("octocat", "squash")
        await dry.quiet(here)
        pull.comment("hubot", "@ci revert")
        await dry.quiet(here)
        (draft,) = (other for other in here.repo.pulls if other is not pull)
        draft.merge("octocat", "squash")
        await dry.quiet(here)
    return dry


SCENES: dict[Scene, str] = {people_revert_a_pull_request: "reverts OpenRevert"}
