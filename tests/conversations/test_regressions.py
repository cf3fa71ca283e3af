"""Labs test the nightly branch every night, and each regression is reported once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from nightjar_formats.model import TargetKey

from bot.results.deliveries import CHECK_EVENT
from bot.results.service import RESULTS
from bot.results.store.write.pending_checks import touch_check
from sandbox.model.issues import Issue
from tests.bucket import World
from tests.conversations.channels import LabNews, town_with_channels
from tests.conversations.lab import CHECK, LAB, TARGET, junit
from tests.conversations.town import REPOSITORY

WHERE = f"{LAB}/{TARGET}"
FILE = "tests/python/test_ops.py"
MANY = 30
DAY = 86_400.0


class NightlyRuns(LabNews):
    """A lab in a town, and the places where the bot reports its regressions."""

    def upload(self, sha: str, *failed: str, suite: str = "operators", tests: int = 4, **values: Any) -> None:
        """Upload the tests `test_a`, `test_b`, … of a suite, some of which failed."""
        names = [f"test_{chr(97 + n)}" if tests <= 26 else f"test_{n}" for n in range(tests)]
        verdicts = {name: "AssertionError: 3 != 4" if name in failed else "passed" for name in names}
        self.place.upload(sha, {"ops.xml": junit(**verdicts)}, suite=suite, **values)

    async def nightly_run(self, *failed: str, relax: Sequence[str] | None = None, tests: int = 4) -> str:
        """Let a lab test a new commit of the nightly branch, with one or two suites, and wait for the effects."""
        sha = self.place.nightly_run()
        self.upload(sha, *failed, tests=tests)
        if relax is not None:
            self.upload(sha, *relax, suite="relax")
        await self.place.settle()
        return sha

    @property
    def issue(self) -> Issue:
        """Return the only issue that the bot opened."""
        (issue,) = self.issues
        return issue


@pytest.fixture
async def nightly_runs(tmp_path: Path, aws_world: World) -> AsyncIterator[NightlyRuns]:
    async with town_with_channels(tmp_path, aws_world, "example-lab-2: {targets: [adreno]}") as (place, opened):
        yield NightlyRuns(place, opened)


async def test_a_regression_is_reported_when_it_is_confirmed_and_when_it_ends(nightly_runs: NightlyRuns) -> None:
    first = await nightly_runs.nightly_run(relax=[])
    second = await nightly_runs.nightly_run("test_a", "test_b", relax=["test_a"])
    assert nightly_runs.titles == []
    third = await nightly_runs.nightly_run("test_a", "test_b", relax=["test_a"])
    (text,) = nightly_runs.channels.discord.said
    since = f"since {second[:7]}; it passed at {first[:7]} (details)"
    assert text.splitlines() == [
        f"❌ 3 tests began to fail on {WHERE} at nightly commit {third[:7]} (details)",
        f"- {FILE}::test_a: operators, {since}",
        f"- {FILE}::test_b: operators, {since}",
        f"- {FILE}::test_a: relax, {since}",
        "New failures are confirmed: they failed in two runs in a row.",
        "Questions about this lab: @example-lab-ci (not notified).",
    ]
    page = f"{nightly_runs.place.town.github.url}/{REPOSITORY}"
    (message,) = nightly_runs.channels.discord.messages
    assert f"<{page}/commit/{third}/checks>" in message["content"]
    assert f"<{page}/compare/{first}...{second}>" in message["embeds"][0]["description"]
    issue = nightly_runs.issue
    assert (issue.title, issue.state, issue.comments) == (f"Regressions on {WHERE}", "open", [])
    assert f"- `operators`: 2 tests, since `{second[:7]}`" in (issue.body or "")
    assert "`@example-lab-ci`" in (issue.body or "")

    await nightly_runs.nightly_run("test_a", "test_b", relax=["test_a"])
    assert len(nightly_runs.titles) == 1
    fifth = await nightly_runs.nightly_run("test_b", relax=[])
    assert nightly_runs.titles[1:] == [f"❌ 2 tests recovered on {WHERE} at nightly commit {fifth[:7]} (details)"]
    assert "1 test fails as before; this was already reported." in nightly_runs.channels.discord.said[1]
    assert (issue.state, len(issue.comments)) == ("open", 1)
    assert "test_a" not in (issue.body or "")
    sixth = await nightly_runs.nightly_run(relax=[])
    assert nightly_runs.titles[2:] == [f"✅ 1 test recovered on {WHERE} at nightly commit {sixth[:7]} (details)"]
    assert (issue.state, len(issue.comments)) == ("closed", 2)
    assert await nightly_runs.place.town.failures() == []


async def test_many_failures_at_once_are_reported_as_one(nightly_runs: NightlyRuns) -> None:
    many = [f"test_{n}" for n in range(MANY)]
    first = await nightly_runs.nightly_run(tests=100)
    second = await nightly_runs.nightly_run(*many, tests=100)
    assert nightly_runs.titles == []
    third = await nightly_runs.nightly_run(*many, tests=100)
    (text,) = nightly_runs.channels.discord.said
    assert text.splitlines() == [
        f"❌ 30 tests began to fail on {WHERE} at nightly commit {third[:7]} (details)",
        f"- operators: 30 tests failing since {second[:7]}; last pass at {first[:7]} (details)",
        "New failures are confirmed: they failed in two runs in a row.",
        "Questions about this lab: @example-lab-ci (not notified).",
    ]
    assert f"/compare/{first}...{second}" in (nightly_runs.issue.body or "")
    last = await nightly_runs.nightly_run(tests=100)
    assert nightly_runs.titles[1:] == [f"✅ 30 tests recovered on {WHERE} at nightly commit {last[:7]} (details)"]
    assert nightly_runs.issue.state == "closed"


async def test_a_broken_lab_causes_no_message(nightly_runs: NightlyRuns) -> None:
    place = nightly_runs.place
    await nightly_runs.nightly_run(tests=20)
    for _ in range(2):
        sha = place.nightly_run()
        place.upload(sha, {"ops.xml": junit(**{f"test_{chr(97 + n)}": "RuntimeError: no device" for n in range(20)})})
        await place.settle()
    assert "Lab setup problem" in str(place.check(sha).title)
    assert (nightly_runs.titles, nightly_runs.issues) == ([], [])


async def test_a_failure_in_a_pull_request_does_not_count_for_the_nightly_branch(nightly_runs: NightlyRuns) -> None:
    nightly_run = await nightly_runs.nightly_run()
    nightly_runs.place.town.repo.push("main", onto=nightly_run, by="octocat")
    pull = nightly_runs.place.town.repo.open_pull_request("octocat")
    for _ in range(2):
        nightly_runs.upload(pull.head_sha, "test_a", pull_request=pull.number)
        await nightly_runs.place.settle()
        assert str(nightly_runs.place.check(pull.head_sha).title).startswith("1 new failure")
        pull.push()
        await nightly_runs.place.town.quiet()
    assert (nightly_runs.titles, nightly_runs.issues) == ([], [])


async def test_nothing_is_reported_twice_however_often_runs_are_compared(nightly_runs: NightlyRuns) -> None:
    shas = [
        await nightly_runs.nightly_run(),
        await nightly_runs.nightly_run("test_a"),
        await nightly_runs.nightly_run("test_a"),
    ]
    assert len(nightly_runs.titles) == 1
    written = len(nightly_runs.place.town.github.requests.writes)
    nightly_runs.place.check(shas[-1]).press("hubot", "re-check")
    await nightly_runs.place.town.quiet()
    engine = nightly_runs.place.town.bot.engine
    for record in await engine.journal.recent(limit=500):
        if record.event == CHECK_EVENT.name:
            await engine.replay(record.guid)
    for sha in shas:
        store = nightly_runs.place.town.bot.services.part(RESULTS).store
        store.write(touch_check, TargetKey(REPOSITORY, LAB, TARGET), sha, store.clock())
    await nightly_runs.place.settle()
    for sha in shas:
        nightly_runs.upload(sha, *([] if sha == shas[0] else ["test_a"]), attempt=2)
    await nightly_runs.place.settle()
    assert len(nightly_runs.titles) == 1
    issues = [
        str(write) for write in nightly_runs.place.town.github.requests.writes[written:] if "/issues" in str(write)
    ]
    assert issues == []
    assert await nightly_runs.place.town.failures() == []


async def test_the_next_nightly_run_writes_an_issue_that_could_not_be_written(nightly_runs: NightlyRuns) -> None:
    faults = nightly_runs.place.town.github.faults
    await nightly_runs.nightly_run()
    await nightly_runs.nightly_run("test_a")
    faults.add("POST", "/repos/{owner}/{repo}/issues", status=403, message="Not accessible")
    await nightly_runs.nightly_run("test_a")
    assert (len(nightly_runs.titles), nightly_runs.issues) == (1, [])
    await nightly_runs.nightly_run("test_a")
    assert "1 test" in (nightly_runs.issue.body or "")
    faults.add("PATCH", "/repos/{owner}/{repo}/issues/{issue_number}", status=403, message="Not accessible")
    await nightly_runs.nightly_run()
    assert (len(nightly_runs.titles), nightly_runs.issue.state) == (2, "open")
    await nightly_runs.nightly_run()
    assert nightly_runs.issue.state == "closed"
    written = len(nightly_runs.place.town.github.requests.writes)
    await nightly_runs.nightly_run()
    assert not [
        str(write) for write in nightly_runs.place.town.github.requests.writes[written:] if "/issues" in str(write)
    ]
    assert len(nightly_runs.titles) == 2


async def test_a_suite_that_arrives_after_the_message_gets_its_own_message(nightly_runs: NightlyRuns) -> None:
    await nightly_runs.nightly_run(relax=[])
    bad = await nightly_runs.nightly_run("test_a", relax=["test_b"])
    third = nightly_runs.place.nightly_run()
    nightly_runs.upload(third, "test_a")
    await nightly_runs.place.settle()
    assert nightly_runs.titles == []  # the second suite is still missing
    await nightly_runs.place.scan(later=7 * 3600)
    assert nightly_runs.titles == [f"❌ 1 test began to fail on {WHERE} at nightly commit {third[:7]} (details)"]
    nightly_runs.upload(third, "test_b", suite="relax")
    await nightly_runs.place.settle()
    assert nightly_runs.titles[1:] == nightly_runs.titles[:1]
    assert f"relax, since {bad[:7]}" in nightly_runs.channels.discord.said[1]
    await nightly_runs.nightly_run("test_a", relax=["test_b"])
    assert len(nightly_runs.titles) == 2


async def test_a_late_run_is_reported_at_the_newest_commit_if_the_failure_is_still_there(
    nightly_runs: NightlyRuns,
) -> None:
    first, second, third, fourth = (nightly_runs.place.nightly_run() for _ in range(4))
    for sha, failed in ((first, []), (fourth, ["test_b"])):
        nightly_runs.upload(sha, *failed)
        await nightly_runs.place.settle()
    assert nightly_runs.titles == []
    nightly_runs.upload(third, "test_a", "test_b")
    await nightly_runs.place.settle()
    assert nightly_runs.titles == [f"❌ 1 test began to fail on {WHERE} at nightly commit {fourth[:7]} (details)"]
    text = nightly_runs.channels.discord.said[0]
    assert f"since {third[:7]}; it passed at {first[:7]}" in text
    assert f"The results of nightly commit {third[:7]}, committed on 20" in text
    nightly_runs.upload(second, "test_a")
    await nightly_runs.place.settle()
    assert "1 failure confirmed" in str(nightly_runs.place.checks(third, CHECK)[-1].title)
    assert len(nightly_runs.titles) == 1


async def test_a_test_that_fails_from_the_start_is_reported_once_as_never_passed(nightly_runs: NightlyRuns) -> None:
    await nightly_runs.nightly_run(tests=3)
    second = await nightly_runs.nightly_run("test_d")
    third = await nightly_runs.nightly_run("test_d")
    await nightly_runs.nightly_run("test_d")
    (text,) = nightly_runs.channels.discord.said
    assert text.splitlines()[:2] == [
        f"❌ 1 test has never passed on {WHERE} at nightly commit {third[:7]} (details)",
        f"- {FILE}::test_d: operators, failing since {second[:7]}; it has never passed",
    ]
    assert f"- `operators`: 1 test, since `{second[:7]}`; never passed" in (nightly_runs.issue.body or "")


@pytest.mark.exhaustive
async def test_a_steady_failure_in_unreliable_results_is_reported_in_one_message_a_week(
    nightly_runs: NightlyRuns,
) -> None:
    groups = [[f"test_{n}" for n in range(start, 12, 2)] for start in (0, 1)]

    async def unstable_runs(count: int, *failed: str) -> list[str]:
        return [await nightly_runs.nightly_run(*groups[n % 2], *failed, tests=60) for n in range(count)]

    await nightly_runs.nightly_run(tests=60)
    await unstable_runs(6)
    assert len(nightly_runs.titles) == 1
    first, *_, last = await unstable_runs(5, "test_50", "test_51")
    began = f"❌ 2 tests began to fail on {WHERE} at nightly commit {last[:7]} (details)"
    assert nightly_runs.titles[1:] == [began]
    assert f"test_50: operators, since {first[:7]}" in nightly_runs.channels.discord.said[1]
    assert "The results of operators are unreliable, but these tests failed" in nightly_runs.channels.discord.said[1]
    assert "test_51" in (nightly_runs.issue.body or "")
    await unstable_runs(6, "test_50", "test_51", "test_52")
    assert nightly_runs.titles[1:] == [began]
    nightly_runs.place.town.github.clock.advance(seconds=7 * DAY)
    (sha,) = await unstable_runs(1, "test_50", "test_51", "test_52")
    assert nightly_runs.titles[2:] == [f"❌ 1 test began to fail on {WHERE} at nightly commit {sha[:7]} (details)"]


async def test_unreliable_results_are_reported_once_and_lasting_failures_once_results_are_reliable_again(
    nightly_runs: NightlyRuns,
) -> None:
    groups = [[f"test_{n}" for n in range(start, 12, 2)] for start in (0, 1)]
    await nightly_runs.nightly_run(tests=60)
    for number in range(5):
        sha = await nightly_runs.nightly_run(*groups[number % 2], tests=60)
    assert nightly_runs.titles == [f"❌ results became unreliable on {WHERE} at nightly commit {sha[:7]} (details)"]
    title = str(nightly_runs.place.check(sha).title)
    assert title.startswith("Unreliable results since ")
    assert "12 of 60 tests flipped between passed and failed, then back" in str(nightly_runs.place.check(sha).summary)
    assert "`operators`: unreliable since" in (nightly_runs.issue.body or "")
    began = await nightly_runs.nightly_run("test_50", tests=60)
    for _ in range(4):
        assert len(nightly_runs.titles) == 1
        sha = await nightly_runs.nightly_run("test_50", tests=60)
    assert nightly_runs.titles[1:] == [
        f"❌ results are reliable again, 1 test began to fail on {WHERE} at nightly commit {sha[:7]} (details)"
    ]
    assert f"test_50: operators, since {began[:7]}" in nightly_runs.channels.discord.said[1]
    assert "unreliable" not in (nightly_runs.issue.body or "")
    assert not str(nightly_runs.place.check(sha).title).startswith("Unreliable")
    assert await nightly_runs.place.town.failures() == []
