"""Dry run of messages about measurements: a test's operators leave the delegate, and come back."""

from __future__ import annotations

from tests.conversations.channels import town_with_channels
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.lab import LAB, TARGET, measured_junit

CONFIG = "regressions: {to: [discord, issue], wait: 1s}"


async def delegated_nodes_change(fixtures: SceneFixtures) -> DryFirst:
    """A lab counts the delegated nodes of a test in four nightly runs; in the third there are fewer."""
    async with town_with_channels(fixtures.folder, fixtures.bucket, "", CONFIG) as (place, channels):
        dry = DryFirst.attached(place.town.bot)
        for nodes in (12, 12, 11, 12):
            measured = measured_junit({"test_conv2d": f"delegated_nodes {nodes} nodes higher"})
            place.upload(place.nightly_run(), {"ops.xml": measured}, lab=LAB, target=TARGET)
            await place.settle()
            await dry.quiet(place.town)
        assert len(channels.discord.said) == 2
    return dry


SCENES: dict[Scene, str] = {delegated_nodes_change: "SearchMoves moved-measurements"}
