"""Dry runs of a search: a regression is reported, and devices find the commit that it began with."""

from __future__ import annotations

from tests.conversations.devices import HEXAGON, device_town
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.search_town import SearchTown
from tests.conversations.town import BOT


async def a_culprit_is_found(fixtures: SceneFixtures) -> DryFirst:
    """A regression is reported and searched at once; then somebody requests the same search."""
    features = "regressions: {to: [issue], find: true}"
    async with device_town(fixtures.database, fixtures.bucket, features=features) as devices:
        dry, range_town = DryFirst.attached(devices.place.town.bot), SearchTown(devices)
        await range_town.regression(3, HEXAGON)
        await range_town.work(lambda commit, _: commit >= 2, HEXAGON)
        _, answer = await range_town.comments("hubot", "@ci find culprit on hexagon-v73")
        assert f"Began with `{range_town.shas[2][:10]}`" in answer
        await dry.quiet(devices.place.town)
    return dry


async def a_culprit_is_reverted(fixtures: SceneFixtures) -> DryFirst:
    """The tests pass without the culprit, so a draft is opened; late results contradict the search, and close it."""
    features = "regressions: {to: [issue], find: true, revert: draft}"
    async with device_town(fixtures.database, fixtures.bucket, features=features) as devices:
        dry, range_town = DryFirst.attached(devices.place.town.bot), SearchTown(devices)
        await range_town.regression(3, HEXAGON, pull=2)
        (lost,) = await range_town.lose(1)
        await range_town.work(lambda commit, _: commit >= 2, HEXAGON)
        (draft,) = (pull for pull in devices.place.town.repo.pulls if pull.user.login == BOT)
        assert draft.state == "open"
        await range_town.end(lost, failed=False, time="late", runs=400)
        assert draft.state == "closed"
        await dry.quiet(devices.place.town)
    return dry


SCENES: dict[Scene, str] = {
    a_culprit_is_found: """
        culprit-search culprit-search-runs culprit-search-begun find-culprit
        AnnounceBegun StartSearch StoreSearch EnsureIssueSection""",
    a_culprit_is_reverted: """
        culprit-revert culprit-revert-runs
        CheckRevert StoreRevert MakeRevertedHead RemoveRevertedHead OpenRevert CorrectDraft""",
}
