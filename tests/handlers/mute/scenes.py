"""A dry run of the pull request that mutes a test."""

from __future__ import annotations

from bot.config.shared import PATH
from bot.core.events import Repository
from bot.engine.internal import announce
from handlers.mute.records import MUTE_EVENT, MUTED_TEST, MuteOutcome, MuteRequest
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.town import CONFIG, town

KEYS = f"{CONFIG}    mute: true\n    results: {{labs: {{example-lab: {{targets: [hexagon-v73]}}}}}}\n"


async def people_mute_a_test(fixtures: SceneFixtures) -> DryFirst:
    """Somebody asks twice for the pull request that mutes a test, and the file changes in between."""
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
            await here.bot.engine.records.put(MUTED_TEST.of(here.repo.id, request.digest), MuteOutcome(request))
            await announce(here.bot.engine.accept, MUTE_EVENT, repository, request)
            await dry.quiet(here)
            here.repo.push("main", {PATH: f"# Change {second}.\n"}, by="octocat")
            await dry.quiet(here)
        assert len(here.repo.pulls) == 1
    return dry


SCENES: dict[Scene, str] = {people_mute_a_test: "mute mute-refresh EnsurePull"}
