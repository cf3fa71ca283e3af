"""A dry run of the pull request that mutes a test."""

from __future__ import annotations

from bot.core.events import Repository
from bot.engine.internal import announce
from handlers.mute.records import MUTE_EVENT, MuteRequest
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.town import CONFIG, town

KEYS = f"{CONFIG}    mute: true\n    results: {{labs: {{example-lab: {{targets: [hexagon-v73]}}}}}}\n"


async def people_mute_a_test(fixtures: SceneFixtures) -> DryFirst:
    """Somebody asks twice for the pull request that mutes a test."""
    async with town(fixtures.database, config=KEYS) as here:
        dry = DryFirst.attached(here.bot)
        repository = Repository(here.repo.id, here.repo.full_name, None)
        for second in (1, 2):
            request = MuteRequest(
                test="test_conv",
                target="example-lab/hexagon-v73",
                owner="octocat",
                reason="Old boards",
                issue="https://github.com/octocat/compiler/issues/1",
                until="2999-01-01",
                person=here.github.user("hubot").id,
                login="hubot",
                at=f"2026-11-20T00:00:0{second}Z",
            )
            await announce(here.bot.engine.accept, MUTE_EVENT, repository, request)
            await dry.quiet(here)
        assert len(here.repo.pulls) == 1
    return dry


SCENES: dict[Scene, str] = {people_mute_a_test: "mute EnsurePull"}
