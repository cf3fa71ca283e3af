"""Labs test the nightly branch night after night, and people are told once of what it broke."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.results.deliveries import CHECK_DUE
from bot.results.model import TargetKey
from bot.results.service import RESULTS
from sandbox.model.issues import Issue
from tests.bucket import World
from tests.conversations.channels import Channels, channels
from tests.conversations.lab import CHECK, LAB, TARGET, LabTown, junit, lab_town
from tests.conversations.town import BOT, REPOSITORY

WHERE = f"{LAB}/{TARGET}"
FILE = "tests/python/test_ops.py"
MANY = 30


@dataclass
class Nights:
    """A lab in a town, and the places where the bot tells what it broke."""

    place: LabTown
    channels: Channels

    def upload(self, sha: str, *failed: str, suite: str = "operators", tests: int = 4, **values: Any) -> None:
        """Upload the tests `test_a`, `test_b`, … of a suite, of which some failed."""
        names = [f"test_{chr(97 + n)}" if tests <= 26 else f"test_{n}" for n in range(tests)]
        verdicts = {name: "AssertionError: 3 != 4" if name in failed else "passed" for name in names}
        self.place.upload(sha, {"ops.xml": junit(**verdicts)}, suite=suite, **values)

    async def night(self, *failed: str, relax: Sequence[str] | None = None, tests: int = 4) -> str:
        """Let a lab test a new commit of the nightly branch, one suite or two, and wait for what comes of it."""
        sha = self.place.night()
        self.upload(sha, *failed, tests=tests)
        if relax is not None:
            self.upload(sha, *relax, suite="relax")
        await self.place.settle()
        return sha

    @property
    def told(self) -> list[str]:
        """Return the first lines of all messages in the channel."""
        return [said.splitlines()[0] for said in self.channels.discord.said]

    @property
    def issue(self) -> Issue:
        """Return the one issue that the bot has opened."""
        (issue,) = self.issues
        return issue

    @property
    def issues(self) -> list[Issue]:
        """Return the issues that the bot has opened."""
        return [issue for issue in self.place.town.repo.issues.values() if issue.user.login == BOT]


@pytest.fixture
async def nights(tmp_path: Path, aws_world: World) -> AsyncIterator[Nights]:
    async with (
        channels() as opened,
        lab_town(
            f"sqlite:///{tmp_path}/nightjar.db",
            aws_world,
            features="regressions: {to: [discord, issue]}",
            more_labs="example-lab-2: {targets: [adreno]}",
            environment=opened.environment,
        ) as place,
    ):
        yield Nights(place, opened)


async def test_a_regression_is_told_when_it_is_confirmed_and_when_it_ends(nights: Nights) -> None:
    first = await nights.night(relax=[])
    second = await nights.night("test_a", "test_b", relax=["test_a"])
    assert nights.told == []
    third = await nights.night("test_a", "test_b", relax=["test_a"])
    (said,) = nights.channels.discord.said
    since = f"since {second[:7]}; it passed at {first[:7]} (details)"
    assert said.splitlines() == [
        f"❌ 3 tests began to fail on {WHERE} at nightly commit {third[:7]} (details)",
        f"- {FILE}::test_a: operators, {since}",
        f"- {FILE}::test_b: operators, {since}",
        f"- {FILE}::test_a: relax, {since}",
        "New failures are confirmed: they failed in two runs in a row, after a run in which they passed.",
        "Questions about this lab: @example-lab-ci (not notified).",
    ]
    page = f"{nights.place.town.github.url}/{REPOSITORY}"
    (message,) = nights.channels.discord.messages
    assert f"<{page}/commit/{third}/checks>" in message["content"]
    assert f"<{page}/compare/{first}...{second}>" in message["embeds"][0]["description"]
    issue = nights.issue
    assert (issue.title, issue.state, issue.comments) == (f"Regressions on {WHERE}", "open", [])
    assert f"- `operators`: 2 tests, since `{second[:7]}`" in (issue.body or "")
    assert "`@example-lab-ci`" in (issue.body or "")

    await nights.night("test_a", "test_b", relax=["test_a"])
    assert len(nights.told) == 1
    fifth = await nights.night("test_b", relax=[])
    assert nights.told[1:] == [f"❌ 2 tests recovered on {WHERE} at nightly commit {fifth[:7]} (details)"]
    assert "1 test fails still, as reported before." in nights.channels.discord.said[1]
    assert (issue.state, len(issue.comments)) == ("open", 1)
    assert "test_a" not in (issue.body or "")
    sixth = await nights.night(relax=[])
    assert nights.told[2:] == [f"✅ 1 test recovered on {WHERE} at nightly commit {sixth[:7]} (details)"]
    assert (issue.state, len(issue.comments)) == ("closed", 2)
    assert await nights.place.town.failures() == []


async def test_many_failures_at_once_are_told_as_one(nights: Nights) -> None:
    many = [f"test_{n}" for n in range(MANY)]
    first = await nights.night(tests=100)
    second = await nights.night(*many, tests=100)
    await nights.night(*many, tests=100)
    (said,) = nights.channels.discord.said
    assert said.splitlines() == [
        f"❌ 30 tests fail at once on {WHERE} at nightly commit {second[:7]} (details)",
        f"- operators: 30 tests fail at once, since {second[:7]}; probably one cause, so none of them is "
        "confirmed (details)",
        "Questions about this lab: @example-lab-ci (not notified).",
    ]
    assert "confirmed" not in (nights.issue.body or "")
    assert f"/compare/{first}...{second}" in (nights.issue.body or "")
    last = await nights.night(tests=100)
    assert nights.told[1:] == [f"✅ 30 tests recovered on {WHERE} at nightly commit {last[:7]} (details)"]
    assert nights.issue.state == "closed"


async def test_of_a_lab_that_is_broken_people_are_not_told(nights: Nights) -> None:
    everything = [f"test_{chr(97 + n)}" for n in range(20)]
    await nights.night(tests=20)
    for _ in range(2):
        sha = await nights.night(*everything, tests=20)
    assert "Lab setup problem" in str(nights.place.check(sha).title)
    assert (nights.told, nights.issues) == ([], [])


async def test_each_target_of_each_lab_has_a_message_of_its_own(nights: Nights) -> None:
    places = ((LAB, TARGET), (LAB, "adreno"), ("example-lab-2", "adreno"))
    for failed in ([], ["test_a"], ["test_a"]):
        sha = nights.place.night()
        for lab, target in places:
            nights.upload(sha, *failed, lab=lab, target=target)
        await nights.place.settle()
    assert sorted(nights.told) == sorted(
        f"❌ 1 test began to fail on {lab}/{target} at nightly commit {sha[:7]} (details)" for lab, target in places
    )
    assert sorted(issue.title for issue in nights.issues) == sorted(f"Regressions on {'/'.join(at)}" for at in places)


async def test_what_fails_in_a_pull_request_is_nothing_of_the_nightly_branch(nights: Nights) -> None:
    night = await nights.night()
    nights.place.town.repo.push("main", onto=night, by="octocat")
    pull = nights.place.town.repo.open_pull_request("octocat")
    for _ in range(2):
        nights.upload(pull.head_sha, "test_a", pull_request=pull.number)
        await nights.place.settle()
        assert str(nights.place.check(pull.head_sha).title).startswith("1 new failure")
        pull.push()
        await nights.place.town.quiet()
    assert (nights.told, nights.issues) == ([], [])


async def test_nothing_is_told_twice_whatever_is_looked_at_again(nights: Nights) -> None:
    shas = [await nights.night(), await nights.night("test_a"), await nights.night("test_a")]
    assert len(nights.told) == 1
    written = len(nights.place.town.github.requests.writes)
    nights.place.check(shas[-1]).press("hubot", "re-check")
    await nights.place.town.quiet()
    engine = nights.place.town.bot.engine
    for record in await engine.journal.recent(limit=500):
        if record.event == CHECK_DUE.name:
            await engine.replay(record.guid)
    for sha in shas:
        nights.place.town.bot.services.part(RESULTS).store.touch(TargetKey(REPOSITORY, LAB, TARGET), sha)
    await nights.place.settle()
    for sha in shas:
        nights.upload(sha, *([] if sha == shas[0] else ["test_a"]), attempt=2)
    await nights.place.settle()
    assert len(nights.told) == 1
    issues = [str(write) for write in nights.place.town.github.requests.writes[written:] if "/issues" in str(write)]
    assert issues == []
    assert await nights.place.town.failures() == []


async def test_an_issue_that_could_not_be_written_is_made_good_by_the_next_night(nights: Nights) -> None:
    faults = nights.place.town.github.faults
    await nights.night()
    await nights.night("test_a")
    faults.add("POST", "/repos/{owner}/{repo}/issues", status=403, message="Not accessible")
    await nights.night("test_a")
    assert (len(nights.told), nights.issues) == (1, [])
    await nights.night("test_a")
    assert "1 test" in (nights.issue.body or "")
    faults.add("PATCH", "/repos/{owner}/{repo}/issues/{issue_number}", status=403, message="Not accessible")
    await nights.night()
    assert (len(nights.told), nights.issue.state) == (2, "open")
    await nights.night()
    assert nights.issue.state == "closed"
    written = len(nights.place.town.github.requests.writes)
    await nights.night()
    assert not [str(write) for write in nights.place.town.github.requests.writes[written:] if "/issues" in str(write)]
    assert len(nights.told) == 2


async def test_what_comes_once_a_night_was_told_is_told_with_the_next_one(nights: Nights) -> None:
    await nights.night(relax=[])
    bad = await nights.night("test_a", relax=["test_b"])
    third = nights.place.night()
    nights.upload(third, "test_a")
    await nights.place.settle()
    assert nights.told == []  # the second suite is still waited for
    await nights.place.look(later=7 * 3600)
    assert nights.told == [f"❌ 1 test began to fail on {WHERE} at nightly commit {third[:7]} (details)"]
    nights.upload(third, "test_b", suite="relax")
    await nights.place.settle()
    assert len(nights.told) == 1
    fourth = await nights.night("test_a", relax=["test_b"])
    assert nights.told[1:] == [f"❌ 1 test began to fail on {WHERE} at nightly commit {fourth[:7]} (details)"]
    assert f"relax, since {bad[:7]}" in nights.channels.discord.said[1]


async def test_a_night_that_comes_late_is_told_with_the_newest_and_never_as_if_it_were_today(nights: Nights) -> None:
    first, second, third, fourth = (nights.place.night() for _ in range(4))
    for sha, failed in ((first, []), (fourth, ["test_b"]), (third, ["test_a", "test_b"])):
        nights.upload(sha, *failed)
        await nights.place.settle()
    assert nights.told == [f"❌ 1 test began to fail on {WHERE} at nightly commit {fourth[:7]} (details)"]
    nights.upload(second, "test_a")
    await nights.place.settle()
    assert "1 failure confirmed" in str(nights.place.checks(third, CHECK)[-1].title)
    assert len(nights.told) == 1
