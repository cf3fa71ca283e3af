"""A dry run of the weekly digest."""

from __future__ import annotations

from bot.core.events import Repository
from bot.engine.internal import announce
from bot.timers.timers import TIMER_EVENT, TimerEvent
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.town import CONFIG, town

KEYS = (
    f"{CONFIG}    weekly_digest: true\n"
    "    results: {labs: {example-lab: {targets: [hexagon-v73]}}}\n"
    '    quarantine: [{test: a, owner: octocat, reason: Known, issue: "https://example.org/1", until: "2026-11-25"}]\n'
)
MONDAY = 1795420800
"""2026-11-23 at 08:00, in seconds since 1970."""


async def a_week_ends(fixtures: SceneFixtures) -> DryFirst:
    """A week ends in which nothing happened but that a quarantine is about to end."""
    async with town(fixtures.database, config=KEYS) as here:
        dry = DryFirst.attached(here.bot)
        repository = Repository(here.repo.id, here.repo.full_name, None)
        await announce(here.bot.engine.accept, TIMER_EVENT, repository, TimerEvent("weekly-digest", "first", MONDAY))
        await dry.quiet(here)
        assert [issue.title for issue in here.repo.issues.values()] == ["Weekly digest of example-lab"]
    return dry


SCENES: dict[Scene, str] = {a_week_ends: "weekly-digest EnsureIssue"}
