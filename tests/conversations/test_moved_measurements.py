"""Labs measure the nightly branch, and one message says what moved at a commit, on one target or several."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bucket import World
from tests.conversations.channels import LabNews, town_with_channels
from tests.conversations.lab import LAB, TARGET, TEST_FILE, measured_junit

OTHER = "adreno"
NIGHTS = 25
"""With fewer nights before it, a change of a noisy number is not reported."""
CONFIRMING = 5
TARGETS = "{hexagon-v73: {tier: 2}, adreno: {}}"
CONFIG = """regressions:
      {to: [discord, issue], wait: 1s, subscriptions: [{to: [slack], paths: ["tests/python/other/*"]}]}
    quarantine: [{test: "tests/python/test_ops.py::test_known", owner: octocat, reason: Known,
                  issue: "https://github.com/octocat/compiler/issues/1", until: 2099-01-01}]"""


class MeasuredNights(LabNews):
    """A lab that measures the latency of two operators, and which of them were delegated."""

    def push(self, *targets: str, slower: float = 1.0, nodes: int = 12) -> str:
        """Upload what the lab measures at a new commit of the nightly branch, on some targets; return its SHA."""
        sha = self.place.nightly_run()
        for target in targets:
            self.upload(sha, target, slower=slower, nodes=nodes)
        return sha

    def upload(self, sha: str, target: str, *, slower: float = 1.0, nodes: int = 12) -> None:
        """Upload what the lab measures at a commit on a target."""
        noise = random.Random(f"{self.place.nightly_runs}{target}").gauss
        measured = {
            "test_matmul": f"latency {412 * slower * noise(1, 0.004):.2f} ms lower",
            "test_softmax": f"latency {20 / slower * noise(1, 0.004):.3f} ms lower",
            "test_conv2d": f"delegated_nodes {nodes} nodes higher",
            "test_known": f"delegated_nodes {nodes} nodes higher",
        }
        self.place.upload(sha, {"ops.xml": measured_junit(measured)}, target=target)

    async def night(self, *targets: str, slower: float = 1.0, nodes: int = 12) -> str:
        """Let the lab measure a new commit, and wait for the effects."""
        sha = self.push(*targets, slower=slower, nodes=nodes)
        await self.place.settle()
        return sha


@pytest.fixture
async def nights(tmp_path: Path, aws_world: World) -> AsyncIterator[MeasuredNights]:
    async with town_with_channels(tmp_path, aws_world, "", CONFIG, TARGETS) as (place, opened):
        yield MeasuredNights(place, opened)


async def test_each_change_has_one_message_with_its_commit_and_its_end(nights: MeasuredNights) -> None:
    shas = [nights.push(*([TARGET, OTHER] if night == NIGHTS - 1 else [TARGET])) for night in range(NIGHTS)]
    await nights.place.settle()
    assert nights.titles == []
    # An exact number needs no second night, and a quarantined test is left out.
    lost = await nights.night(TARGET, nodes=11)
    (text,) = nights.channels.discord.said
    title = f"delegated_nodes of {TEST_FILE}::test_conv2d got worse on {LAB}/{TARGET} since {lost[:7]}"
    change = "partly left the delegate, delegated_nodes 12 -> 11 nodes"
    assert text.splitlines() == [
        f"❌ {title} (details)",
        f"- {TEST_FILE}::test_conv2d: {change} on {LAB}/{TARGET}",
        f"The cause is between {shas[-1][:7]}, where the numbers were as before, and {lost[:7]}.",
    ]
    (issue,) = nights.issues
    assert (issue.title, issue.comments) == (title, [])
    # The same on another target is no second message: the issue is edited.
    nights.upload(lost, OTHER, nodes=11)
    await nights.place.settle()
    assert [f"`{change}` on `{LAB}/{target}`" in (issue.body or "") for target in (TARGET, OTHER)] == [True, True]
    # A pull request is compared with the nightly runs up to its baseline, and its check run stays advisory.
    nights.place.town.repo.push("main", onto=lost, by="octocat")
    nights.place.town.github.clock.advance(seconds=20)
    pull = nights.place.town.repo.open_pull_request("octocat")
    nights.upload(pull.head_sha, TARGET, slower=1.13)
    await nights.place.settle()
    check = nights.place.check(pull.head_sha)
    assert (check.conclusion, "| `latency` | `46" in (check.summary or "")) == ("success", True)
    command = f"@ci benchmark {TEST_FILE}::test_matmul on {LAB}/{TARGET}"
    assert f"To find out whether it is chance, comment `{command}`: a device" in (check.summary or "")
    # A noisy number needs more nights. Another one that improves alarms nobody.
    slower = [await nights.night(TARGET, slower=1.13, nodes=11) for _ in range(CONFIRMING)]
    assert len(nights.issues) == 2
    first, second = nights.channels.discord.said
    assert (first, issue.comments) == (text, [])
    first_line, item, *notes = second.splitlines()
    assert first_line.startswith(
        f"❌ latency of {TEST_FILE}::test_matmul got worse on {LAB}/{TARGET} since {slower[0][:7]}"
    )
    assert re.search(r"latency 41\d -> 46\d ms, \+1[23] % \(1[123] to 1[345]\) on ", item)
    assert notes[1:] == ["The newest nights confirm it. The numbers in parentheses are a 95 % interval."]
    # The end is a message too, once no target is worse.
    back = await nights.night(OTHER)
    assert (len(nights.channels.discord.said), issue.state) == (2, "open")
    assert f"ended at {back[:7]}" in (issue.body or "")
    # Further runs of the same commit may take that back, and bring it again.
    for nodes in (11, 12):
        nights.upload(back, OTHER, nodes=nodes)
        await nights.place.settle()
        assert (f"ended at {back[:7]}" in (issue.body or "")) == (nodes == 12)
    await nights.night(TARGET, slower=1.13)
    third = nights.channels.discord.said[2]
    assert third.startswith(
        f"✅ delegated_nodes of {TEST_FILE}::test_conv2d no longer worse on {LAB}/{OTHER}, {LAB}/{TARGET}"
    )
    assert (issue.state, len(issue.comments), [item.state for item in nights.issues]) == (
        "closed",
        1,
        ["closed", "open"],
    )
    assert nights.channels.slack.said == []
