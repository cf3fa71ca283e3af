"""Dry runs of a revert and of its merge, and of the pull request that proposes which tests are slow."""

from __future__ import annotations

from bot.core.events import Repository
from bot.engine.internal import announce
from bot.results.service import RESULTS
from bot.timers.timers import TIMER_EVENT, TimerEvent
from sandbox.model.pulls import PullRequest
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.town import BOT, Town, town
from tests.results.uploads import Upload

FILE = "tests/test_ops.py"
TESTS = """\
import pytest


@pytest.mark.parametrize("size", [1, 2])
def test_ssd(size): ...


class TestConv:
    def test_caught(self): ...

    @pytest.mark.slow
    def test_broke_main(self): ...


def test_quick(): ...
"""
MARK = "@pytest.mark.slow\n"
SSD, QUICK = f"{FILE}::test_ssd", f"{FILE}::test_quick"
CAUGHT, BROKE = f"{FILE}::TestConv::test_caught", f"{FILE}::TestConv::test_broke_main"
SECONDS = {f"{SSD}[1]": 600.0, f"{SSD}[2]": 600.0, CAUGHT: 400.0, BROKE: 300.0, QUICK: 2.0, "Gtest.All": 100.0}
WEEK, HOUR = 604_800, 3600.0
MONDAY = 1_795_410_000
"""2026-11-23 at 05:00, in seconds since 1970."""
KEYS = """
repositories:
  octocat/compiler:
    slow_tests: {budget: 15m}
    owners: [{test: "tests/*", owners: ["@hubot", example-lab/kernels, The kernel people]}]
    results: {labs: {example-lab: {targets: [adreno]}}}
"""


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


def _stored(place: Town) -> None:
    """Store three nights and three pull requests: one test catches something, and a slow one breaks main."""
    store = place.bot.services.part(RESULTS).store
    passed = dict.fromkeys(SECONDS, "passed")
    for number, (broken, caught) in enumerate([(False, True), (True, False), (False, True)]):
        moment = MONDAY - 10 * 86_400 + number * HOUR
        night = passed | ({BROKE: "failed"} if broken else {})
        pull = passed | {BROKE: "skipped"} | ({CAUGHT: "failed"} if caught else {})
        for upload in (
            Upload(2 * number + 1, night, seconds=SECONDS, at=moment),
            Upload(2 * number + 2, pull, seconds=SECONDS, at=moment + 60, mainline=False, pull_request=7 + number),
        ):
            assert store.put(upload.run, upload.columns)


async def _monday(place: Town, dry: DryFirst, week: int) -> list[PullRequest]:
    """Return the pull requests of the bot after the Monday of a week."""
    repository = Repository(place.repo.id, place.repo.full_name, None)
    event = TimerEvent("slow-set", f"week {week}", MONDAY + week * WEEK)
    await announce(place.bot.engine.accept, TIMER_EVENT, repository, event)
    await dry.quiet(place)
    return [pull for pull in place.repo.pulls if pull.user.login == BOT]


async def the_slow_tests_are_proposed(fixtures: SceneFixtures) -> DryFirst:
    """The bot proposes which tests are slow; people merge it, reject another proposal, and one is no longer needed."""
    async with town(fixtures.database, config=KEYS, files={FILE: TESTS, "README.md": "Tests"}) as place:
        dry, repo = DryFirst.attached(place.bot), place.repo
        assert await _monday(place, dry, -1) == [], "nothing is known of pull requests yet"
        _stored(place)

        (pull,) = await _monday(place, dry, 0)
        file = repo.git.commits[pull.head_sha].files[FILE]
        assert file == TESTS.replace(f"    {MARK}", "").replace("@pytest.mark.param", f"{MARK}@pytest.mark.param")
        body = pull.body or ""
        for words in (
            # 1,200 + 400 + 2 + 100 seconds; without test_ssd and with test_broke_main it is 802.
            "A pull request takes 28.5 min for its tests, on average over 3 pull requests of the last 90 days.",
            "With this change it takes 13.4 min. The budget is 15.0 min",
            "Of what the newly marked tests found on these pull requests, 0 would have been found a day later",
            f"| `{SSD}` | 20.1 min | 0 | 0 | 0 | hubot, example-lab/kernels, The kernel people |",
            f"| `{BROKE}` | 5.0 min | 0 | 1 | 1 | hubot",
            "| `Gtest.All` | 1.7 min | 0 | it is not a Python function |",
            "| 100 s | 2 | 26.8 min |",
        ):
            assert words in body, body
        assert [user.login for user in pull.requested_reviewers] == ["hubot"]

        # A week later it is the same one, on the newest commit if its files have changed.
        repo.push("main", {FILE: f"# Newer\n{TESTS}"}, by="octocat")
        assert await _monday(place, dry, 1) == [pull]
        assert repo.git.commits[pull.head_sha].files[FILE] == f"# Newer\n{file}"
        assert repo.git.commits[pull.head_sha].parents == (repo.branch("main"),)

        # Somebody does the same by hand: there is nothing left to propose.
        repo.push("main", {FILE: file}, by="octocat")
        assert await _monday(place, dry, 2) == [pull]
        # Its runs do not show yet that pull requests run test_broke_main again.
        assert (pull.state, (pull.body or "").partition(".")[0]) == (
            "closed",
            "There is nothing left to propose: a pull request takes 8",
        )
        assert "refs/heads/nightjar/slow-tests" not in repo.refs

        # Somebody rejects the next one: it stays closed.
        repo.push("main", {FILE: TESTS}, by="octocat")
        (_, rejected) = await _monday(place, dry, 3)
        rejected.close("octocat")
        await dry.quiet(place)
        assert await _monday(place, dry, 4) == [pull, rejected]
        assert rejected.state == "closed"
    return dry


SCENES: dict[Scene, str] = {
    people_revert_a_pull_request: "reverts OpenRevert",
    the_slow_tests_are_proposed: "slow-set EnsurePull",
}
