"""Several targets that fail in the same tests of a nightly run get one message and one issue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path

import pytest

from bot.results.deliveries import CHECK_EVENT
from handlers.regressions.nightly_news import NIGHTLY_NEWS
from tests.bucket import World
from tests.conversations.channels import LabNews, town_with_channels
from tests.conversations.lab import junit
from tests.conversations.town import REPOSITORY

FILE = "tests/python/test_ops.py"
TARGETS = ("example-lab/adreno", "example-lab/hexagon-v73", "lab-2/a", "lab-2/b", "lab-2/c")
HALF_AN_HOUR = 1800.0
TITLE = "❌ 2 tests failing on {count} targets since {since} (details)"


class ManyTargets(LabNews):
    """Labs in a town, and the places where the bot reports their regressions."""

    def upload(self, sha: str, failed: Collection[str], targets: Sequence[str] = TARGETS) -> None:
        """Let targets test a commit: five tests, some of which failed."""
        verdicts = {f"test_{letter}": "AssertionError: 3 != 4" if letter in failed else "passed" for letter in "abcde"}
        for lab_target in targets:
            lab, _, target = lab_target.partition("/")
            self.place.upload(sha, {"ops.xml": junit(**verdicts)}, lab=lab, target=target)

    async def nightly_run(self, failed: Collection[str], targets: Sequence[str] = TARGETS) -> str:
        """Let targets test a new commit of the nightly branch, and let the bot read the results."""
        sha = self.place.nightly_run()
        self.upload(sha, failed, targets)
        await self.place.settle()
        await self.place.scan()
        return sha

    async def arrive(self, sha: str, failed: Mapping[str, Collection[str]]) -> None:
        """Let some targets test a commit."""
        for lab_target, failed_tests in failed.items():
            self.upload(sha, failed_tests, [lab_target])
        await self.place.settle()
        await self.place.scan()


@pytest.fixture
async def targets(tmp_path: Path, aws_world: World) -> AsyncIterator[ManyTargets]:
    async with town_with_channels(tmp_path, aws_world, "lab-2: {targets: [a, b, c]}") as (place, opened):
        yield ManyTargets(place, opened)


async def test_five_targets_with_the_same_failures_get_one_message_and_one_issue(targets: ManyTargets) -> None:
    good = await targets.nightly_run("")
    since = await targets.nightly_run("ab")
    assert targets.titles == []
    await targets.nightly_run("ab")
    (message,) = targets.channels.discord.said
    passed = f"operators, since {since[:7]}; it passed at {good[:7]}"
    assert message.splitlines() == [
        TITLE.format(count=5, since=since[:7]),
        *(f"- {lab_target}: {passed}" for lab_target in TARGETS),
        f"The tests: {FILE}::test_a, {FILE}::test_b.",
        f"The cause is between {good[:7]}, where they passed, and {since[:7]}.",
        "New failures are confirmed: they failed in two runs in a row.",
    ]
    (issue,) = targets.issues
    assert (issue.title, issue.state, issue.comments) == (f"2 tests failing on 5 targets since {since[:7]}", "open", [])
    assert f"/{REPOSITORY}/compare/{good}...{since}" in (issue.body or "")
    assert all(f"- `{lab_target}`: 2 tests, since `{since[:7]}`" in (issue.body or "") for lab_target in TARGETS)

    await targets.nightly_run("b")
    assert f"- `{TARGETS[0]}`: 1 test, since" in (issue.body or "")
    await targets.nightly_run("")
    assert [issue.state for issue in targets.issues] == ["closed"]
    assert await targets.place.town.failures() == []


@pytest.mark.exhaustive
async def test_targets_with_other_failures_get_their_own_messages(targets: ManyTargets) -> None:
    await targets.nightly_run("")
    for _ in range(2):
        sha = targets.place.nightly_run()
        await targets.arrive(sha, dict(zip(TARGETS, ("ab", "ab", "c", "d", ""), strict=True)))
    assert sorted(targets.titles) == sorted(
        [
            *(
                f"❌ 1 test began to fail on {lab_target} at nightly commit {sha[:7]} (details)"
                for lab_target in TARGETS[2:4]
            ),
            next(title for title in targets.titles if "2 tests failing on 2 targets" in title),
        ]
    )
    assert len(targets.issues) == 3


@pytest.mark.exhaustive
async def test_a_target_that_follows_hours_later_joins_the_issue_and_gets_its_own_message(targets: ManyTargets) -> None:
    late_target, *other_targets = TARGETS
    await targets.nightly_run("")
    since = await targets.nightly_run("ab")
    sha = targets.place.nightly_run()
    targets.upload(sha, "ab", other_targets[:3])
    await targets.place.settle()
    assert targets.titles == []  # two targets are still missing
    await targets.place.scan(later=HALF_AN_HOUR)
    assert targets.titles == [TITLE.format(count=3, since=since[:7])]
    await targets.place.scan(later=2 * 3600)
    await targets.arrive(sha, {late_target: "ab"})
    assert targets.titles[1:] == [
        f"❌ 1 more target fails in the same tests: 2 tests failing since {since[:7]} (details)",
    ]
    (issue,) = targets.issues
    assert f"- `{late_target}`: 2 tests" in (issue.body or "")
    assert issue.comments == []  # no additional test and no smaller range


async def test_news_waits_for_a_silent_target_only_for_a_limited_time(targets: ManyTargets) -> None:
    await targets.nightly_run("")
    await targets.nightly_run("ab")
    await targets.nightly_run("ab", TARGETS[:4])
    assert targets.titles == []
    await targets.place.scan(later=HALF_AN_HOUR)
    assert len(targets.titles) == 1
    assert "on 4 targets" in targets.titles[0]


@pytest.mark.exhaustive
async def test_a_replay_posts_nothing_twice(targets: ManyTargets) -> None:
    for failed in ("", "ab", "ab"):
        await targets.nightly_run(failed)
    assert (len(targets.titles), len(targets.issues)) == (1, 1)
    engine = targets.place.town.bot.engine
    for record in await engine.journal.recent(limit=500):
        if record.event in (CHECK_EVENT.name, NIGHTLY_NEWS.name):
            await engine.replay(record.guid)
    await targets.place.settle()
    await targets.place.scan(later=HALF_AN_HOUR)
    assert (len(targets.titles), len(targets.issues), targets.issues[0].comments) == (1, 1, [])
