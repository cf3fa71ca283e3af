"""`revert: draft`: the tests run without the culprit; if they pass, a draft reverts it, and says so."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handlers.device_tests.model import run_id_of
from handlers.searches.revert.records import CULPRIT_REVERT, OPEN_REVERT, CulpritRevert, RevertStage
from sandbox import PullRequest
from sandbox.git import changes
from tests.bucket import World
from tests.conversations.devices import HEXAGON, device_town
from tests.conversations.lab import LAB, junit
from tests.conversations.search_town import OTHER, SUITE, TEST, SearchTown
from tests.conversations.test_searches import pages_of
from tests.conversations.town import BOT

CULPRIT = 3
FEATURES = "regressions: {to: [issue], find: true, comment: true, revert: draft}"
BY_HAND = "regressions: {to: [issue], revert: draft}"


@asynccontextmanager
async def revert_town(database_url: str, bucket: World, **options: str) -> AsyncIterator[SearchTown]:
    """Start a town whose searches open drafts."""
    async with device_town(database_url, bucket, **{"features": FEATURES, **options}) as devices:
        yield SearchTown(devices)


def drafts(place: SearchTown) -> list[PullRequest]:
    """Return the pull requests of the bot."""
    return [pull for pull in place.devices.place.town.repo.pulls if pull.user.login == BOT]


def heads(place: SearchTown) -> list[str]:
    """Return the branches of reverted heads."""
    return [ref for ref in place.devices.place.town.repo.refs if "nightjar/revert-" in ref]


def plans_of(story: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the plans of a pull request's page."""
    return [plan for delivery in story["deliveries"] for plan in delivery["plans"]]


async def revert_of(place: SearchTown) -> CulpritRevert:
    """Return what is stored of the only revert."""
    (revert,) = (await place.devices.place.town.bot.services.records.under(CULPRIT_REVERT)).values()
    return revert


async def test_a_culprit_is_reverted_once_the_tests_pass_without_it_and_late_results_close_the_draft(
    database_url: str, aws_world: World
) -> None:
    async with revert_town(database_url, aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        repo, culprit = place.devices.place.town.repo, place.pull
        first_lost, second_lost = await place.lose(2)
        seen = list[tuple[int, bool]]()

        def fails(commit: int, _: str) -> bool:
            if commit == OTHER:
                seen.append((len(drafts(place)), "The tests run without #" in (place.issue.body or "")))
            return commit >= CULPRIT

        jobs = await place.work(fails, HEXAGON)
        head = jobs[-1].sha
        assert seen[0] == (0, True), "no draft before the tests have passed"
        assert [job.sha for job in jobs].count(head) == 1
        commit, tip = repo.git.commits[head], repo.branch("nightly")
        assert commit.parents[0] == tip
        files = repo.git.commits[culprit.merge_commit_sha or ""].files
        changed = set(files) - set(repo.git.commits[place.shas[CULPRIT - 1]].files)
        assert set(repo.git.commits[tip].files) - set(commit.files) == changed
        (draft,) = drafts(place)
        assert (draft.title, draft.draft, draft.state, draft.base_ref) == ('Revert "Fuse"', True, "open", "nightly")
        body = draft.body or ""
        assert f"Reverts {repo.full_name}#{culprit.number}\n" in body
        assert f"Since #{culprit.number}, the test `{TEST}` of `operators` fails on `{LAB}/{HEXAGON}`" in body
        assert f"I reverted it upon `{tip[:10]}`, the head of `nightly` then, and ran the tests" in body
        assert f"at that commit, `{head[:10]}`. They pass:" in body
        repeats = jobs[-1].few_tests.repeat
        assert repeats > 1
        assert f"| failed 0 of {repeats} |" in body
        said = f"#{draft.number} is a draft that reverts #{culprit.number}: without it, the tests pass on `{LAB}/"
        assert said in (place.issue.body or "")
        assert heads(place) == []
        described, page = await pages_of(place.devices.place.town, f"/{(await place.search()).id}")
        assert (described["revert"]["stage"], described["revert"]["pull_request"]) == ("opened", draft.number)
        assert f"#{draft.number} is a draft that reverts #{culprit.number}" in page
        assert "review the draft that reverts it" in page
        story, _ = await pages_of(place.devices.place.town, f"/{culprit.number}", "pulls")
        written = [effect["wrote"] for plan in plans_of(story) for effect in plan["effects"]]
        assert any("They pass:" in text for text in written), "the page of the culprit shows the draft"
        services = place.devices.place.town.bot.services
        assert await services.records.under(OPEN_REVERT) == {}

        await place.end(first_lost, failed=False, runs=10)
        await place.devices.sweep()
        assert (await place.search()).answer is None
        assert draft.state == "closed"
        assert "**Closed.** Late results contradict the search" in (draft.body or "")
        assert f"#{draft.number}, which was to revert #{culprit.number}, is closed" in (place.issue.body or "")
        await place.work(fails, HEXAGON)
        assert draft.state == "open", "the search names it again"
        assert draft.body == body
        assert said in (place.issue.body or "")

        await place.end(second_lost, failed=False, time="late", runs=400)
        await place.devices.place.town.quiet()
        assert draft.state == "closed"
        assert "Cannot tell: the tests do not fail at" in (draft.body or "")
        assert drafts(place) == [draft]


async def test_results_of_the_head_are_read_although_no_branch_of_labs_has_it(tmp_path: Path, aws_world: World) -> None:
    async with revert_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        while (await place.search()).answer is None:
            job = (await place.devices.claim(is_able=True)).job
            await place.end(job, failed=place.position(job.sha) >= CULPRIT)
        job = (await place.devices.claim(is_able=True)).job
        assert place.position(job.sha) == OTHER
        report, run_id = {"ops.xml": junit(test_add="passed")}, run_id_of(job.id, job.attempt)
        place.devices.place.upload(job.sha, report, suite=SUITE, target=HEXAGON, run_id=run_id)
        await place.devices.place.scan()
        (draft,) = drafts(place)
        assert "They pass:" in (draft.body or "")


async def test_no_draft_is_opened_if_a_test_fails_without_the_culprit_too(database_url: str, aws_world: World) -> None:
    async with revert_town(database_url, aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        await place.work(lambda commit, _: commit >= CULPRIT or commit == OTHER, HEXAGON)
        assert (await revert_of(place)).stage is RevertStage.FAILED
        assert drafts(place) == []
        assert heads(place) == []
        assert f"No draft: without #{place.pull.number}, at " in (place.issue.body or "")


async def test_tests_that_give_no_results_are_repeated_and_then_no_draft_is_opened(
    database_url: str, aws_world: World
) -> None:
    async with revert_town(database_url, aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        jobs = await place.work(lambda commit, _: None if commit == OTHER else commit >= CULPRIT, HEXAGON)
        revert = await revert_of(place)
        assert (revert.stage, len(revert.runs)) == (RevertStage.UNKNOWN, 3)
        assert len({job.id for job in jobs if job.sha == revert.head}) == 3
        assert drafts(place) == []
        assert f"No draft: no device ran the tests without #{place.pull.number}" in (place.issue.body or "")


async def test_a_revert_waits_for_the_budget_and_the_revert_of_a_person_is_not_repeated(
    database_url: str, aws_world: World
) -> None:
    # The search needs as many runs as its budget allows on a day.
    targets = "{hexagon-v73: {tier: 2, suites: [operators], searches: {budget: 11/day}}}"
    async with revert_town(database_url, aws_world, targets=targets, features=BY_HAND) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        await place.sweep(days=1)
        await place.begin_search()
        assert len(await place.work(lambda commit, _: commit >= CULPRIT, HEXAGON)) == 11
        assert (await revert_of(place)).stage is RevertStage.WAITING
        assert (drafts(place), heads(place)) == ([], [])
        assert f"The tests are to run without #{place.pull.number}, once a device is idle." in (place.issue.body or "")
        await place.sweep()
        assert (await revert_of(place)).stage is RevertStage.WAITING
        branch = f"revert-{place.pull.number}-{place.pull.head_ref}"
        by_hand = place.devices.place.town.repo.open_pull_request("hubot", "Undo", "", branch=branch, base="nightly")
        await place.sweep(days=1)
        assert await place.work(lambda commit, _: commit >= CULPRIT, HEXAGON) == []
        assert drafts(place) == []
        assert f"No draft: #{by_hand.number} reverts #{place.pull.number}" in (place.issue.body or "")


async def test_a_change_that_cannot_be_reverted_has_no_draft(database_url: str, aws_world: World) -> None:
    async with revert_town(database_url, aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        repo, changed = place.devices.place.town.repo, place.pull.files[0].path
        repo.push("nightly", {changed: "more"}, by="octocat", message="Build on it")
        await place.work(lambda commit, _: commit >= CULPRIT, HEXAGON)
        assert (await revert_of(place)).stage is RevertStage.CONFLICT
        assert "cannot be reverted upon" in (place.issue.body or "")
        assert (drafts(place), heads(place)) == ([], [])


async def test_a_change_that_somebody_has_undone_has_no_draft(database_url: str, aws_world: World) -> None:
    async with revert_town(database_url, aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        changed = {change.path: None for change in place.pull.files}
        place.devices.place.town.repo.push("nightly", changed, by="octocat", message="Undo it by hand")
        jobs = await place.work(lambda commit, _: commit >= CULPRIT, HEXAGON)
        assert OTHER not in [place.position(job.sha) for job in jobs]
        assert f"No draft: `nightly` no longer has the change of #{place.pull.number}" in (place.issue.body or "")
        assert (drafts(place), heads(place)) == ([], [])


async def test_the_issue_says_what_github_refuses(database_url: str, aws_world: World) -> None:
    async with revert_town(database_url, aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT)
        github = place.devices.place.town.github
        github.faults.add("POST", re.compile("/merges$"), status=403, times=None)
        await place.work(lambda commit, _: commit >= CULPRIT, HEXAGON)
        assert "No draft: GitHub " in (place.issue.body or "")
        assert (drafts(place), heads(place)) == ([], [])


@pytest.mark.parametrize("method", ["merge", "rebase"])
async def test_all_commits_of_a_pull_request_are_reverted(tmp_path: Path, aws_world: World, method: str) -> None:
    async with revert_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        await place.regression(6, HEXAGON, pull=CULPRIT, method=method)
        jobs = await place.work(lambda commit, _: commit >= CULPRIT, HEXAGON)
        commits = place.devices.place.town.repo.git.commits
        head = commits[jobs[-1].sha]
        tip = commits[head.parents[0]]
        assert place.position(head.sha) == OTHER
        assert {change.path for change in changes(head.files, tip.files)} == {
            change.path for change in place.pull.files
        }
        assert len(place.pull.commits) == 2
        (draft,) = drafts(place)
        assert draft.state == "open"
