"""A search for the commit that broke a test, from the request to the answer in the issue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.results.few_tests import FewTestsOutcome, TestAttempts
from handlers.device_tests.effects import announce_step
from handlers.searches.records import CULPRIT_SEARCH, OPEN_SEARCH, SearchRunState
from tests.bucket import World
from tests.conversations.devices import ADRENO, HEXAGON, device_town
from tests.conversations.lab import LAB
from tests.conversations.search_town import SUITE, TEST, SearchTown
from tests.conversations.town import BOT, Town


async def pages_of(town: Town, path: str = "", view: str = "searches") -> tuple[dict[str, Any], str]:
    """Return the JSON and the HTML of a page about searches, or of another view."""
    path = f"{town.repo.full_name}/{view}{path}"
    async with aiohttp.ClientSession(town.url) as session:
        async with session.get(f"/api/v1/repos/{path}") as response:
            document = await response.json()
        async with session.get(f"/r/{path}") as response:
            text = await response.text()
            assert response.status == 200, text
            return document, text


async def test_a_maintainer_requests_a_search_and_reads_the_answer_in_the_issue(
    tmp_path: Path, aws_world: World
) -> None:
    async with device_town(
        f"sqlite:///{tmp_path}/nightjar.db", aws_world, features="regressions: {to: [issue], comment: true}"
    ) as devices:
        range_town = SearchTown(devices)
        await range_town.regression(7, HEXAGON, pull=4, docs=6)
        assert await devices.place.town.bot.services.records.under(CULPRIT_SEARCH) == {}, "nobody requested it"
        refusals = {
            ("hubot", "@ci find culprit"): "Name a target, as in `@ci find culprit",
            ("somebody", "@ci find culprit on hexagon-v73"): "You need write access",
            ("hubot", "@ci find culprit on cortex-m"): "No target that accepts requests is named `cortex-m`.",
            ("hubot", "@ci find culprit test_sub on hexagon-v73"): "No failure of this issue on `hexagon-v73`",
        }
        for (author, text), answer in refusals.items():
            reactions, said = await range_town.comments(author, text)
            assert answer in said
            assert reactions == ["confused"]
        await reproduces_on_the_issue(range_town)
        reactions, said = await range_town.comments("hubot", "@ci find culprit on hexagon-v73")
        good, bad = range_town.shas[0][:10], range_town.shas[-1][:10]
        assert f"I search for the change between `{good}` and `{bad}` on idle devices of `{LAB}/{HEXAGON}`" in said
        assert reactions == ["+1"]
        assert "0 device minutes" in (range_town.issue.body or ""), "the issue shows the search from its first step"

        first_lost, second_lost = lost_jobs = await range_town.lose(2)
        jobs = await range_town.work(lambda commit, _: None if commit == 2 else commit >= 4, HEXAGON)
        search = await range_town.search()
        assert [number for number, commit in enumerate(search.commits, 1) if commit.only_docs] == [6]
        reads = [
            record for record in devices.place.town.github.requests.records if record.route.endswith("/commits/{ref}")
        ]
        assert len(reads) == 7, "the files of each commit are read once for a search"
        assert [run.commit for run in search.runs][:4] == [7, 7, 7, 0], "both ends run first"
        assert search.runs[0].state is SearchRunState.LOST, "the lab vanished with it, so it ran again"
        assert len({job.id for job in jobs}) == len(jobs) == len(search.runs) - len(lost_jobs)
        assert {run.commit for run in search.runs if run.state is SearchRunState.NO_RESULTS} <= {2}
        body = range_town.issue.body or ""
        culprit = f"#{range_town.pull.number} `{range_town.shas[4][:10]}`"
        assert f"**Began with {culprit} (99." in body
        assert "`Fuse`. This rests on one target.**" in body
        assert f"Cost: {len(search.runs)} runs, " in body
        assert "the device, the lab or its environment changed (0." in body
        assert body.count(f"| {LAB}/") == 0
        assert body.count(f"| `{LAB}/{HEXAGON}` |") == len(search.runs)
        assert "`operators`: 1 test, since" in body, "what the issue said before is still there"
        town = devices.place.town
        listed, page = await pages_of(town)
        (row,) = listed["searches"]
        assert (row["outcome"], row["sha"], row["pull_request"]) == ("culprit", range_town.shas[4], 1)
        assert (row["runs"], row["device_seconds"]) == (len(search.runs), search.seconds)
        assert f"/commit/{range_town.shas[4]}" in page
        described, page = await pages_of(town, f"/{search.id}")
        assert (described["outcome"], described["first"], len(described["commits"])) == ("culprit", 4, 7)
        assert described["commits"][3]["title"] == "Fuse"
        assert described["commits"][3]["author"]
        assert described["issue"] == range_town.issue.number
        assert all(f'id="run{run.number}"' in page for run in search.runs)
        labels = f'lab="{LAB}",repository="{devices.place.town.repo.full_name}",target="{HEXAGON}"'
        metric = f"nightjar_search_device_seconds_total{{{labels}}} {search.seconds}"
        assert metric in devices.place.town.bot.metrics.exposition()[0].decode()
        assert await devices.place.town.bot.services.records.under(OPEN_SEARCH) == {}
        (comment,) = range_town.pull.comments_by(BOT)
        assert f"Since this change, the test `{TEST}` of `operators` fails on `{LAB}/{HEXAGON}`" in comment.body
        assert f'`@ci reproduce "{TEST}" on {LAB}/{HEXAGON}`' in comment.body

        reactions, said = await range_town.comments("hubot", f"@ci find culprit {TEST} on hexagon-v73")
        assert f"Began with {culprit}" in said, "the same request is searched once"
        await range_town.end(first_lost, failed=False, runs=10)
        await devices.sweep()
        search = await range_town.search()
        assert search.answer is None, "late results that contradict the answer open the search again"
        assert "nothing is certain yet" in (range_town.issue.body or "")
        assert await range_town.work(lambda commit, _: commit >= 4, HEXAGON)
        assert len(range_town.pull.comments_by(BOT)) == 1
        for _ in range(2):
            range_town.shas.append(devices.place.nightly_run())
            await range_town.upload("AssertionError: 3 != 4", (HEXAGON,), other="AssertionError: 6 != 7")
        body = range_town.issue.body or ""
        assert "test_mul" in body
        assert f"Began with {culprit}" in body, "later news of the target leave the answer in place"
        issue = devices.place.town.repo.open_issue("somebody", "Crash", (range_town.issue.body or ""))
        issue.comment("hubot", "@ci find culprit on hexagon-v73")
        await devices.place.town.quiet()
        assert "not an open issue of mine" in issue.comments_by(BOT)[-1].body, "only its own issue names failures"

        await range_town.end(second_lost, failed=False, time="late", runs=400)
        (comment,) = range_town.pull.comments_by(BOT)
        assert "I named this change as the one with which tests began to fail. That was wrong" in comment.body
        assert "Cannot tell: the tests do not fail at" in comment.body
        assert "Began with" not in (range_town.issue.body or "")
        _, page = await pages_of(town, f"/{search.id}")
        assert "Cannot tell: the tests do not fail at" in page


async def reproduces_on_the_issue(range_town: SearchTown) -> None:
    """Request runs at the commit where the test began to fail and at the last good one, and read both rates."""
    refusals = {
        ("hubot", "@ci reproduce on hexagon-v73 x1000"): "A test runs 1 to ",
        ("somebody", "@ci reproduce on hexagon-v73"): "You need write access",
        ("hubot", "@ci reproduce test_sub on hexagon-v73"): "No failure of this issue on `hexagon-v73`",
    }
    for (author, text), answer in refusals.items():
        reactions, said = await range_town.comments(author, text)
        assert answer in said
        assert reactions == ["confused"]
    good, bad = range_town.shas[0], range_town.shas[-1]
    for _ in range(2):
        reactions, said = await range_town.comments("hubot", "@ci reproduce on hexagon-v73 x4")
        assert reactions == ["+1"]
        assert f"I run `{TEST}` 4 times at `{bad[:7]}`, where it began to fail, and at `{good[:7]}`" in said
    claimed = await range_town.devices.claim()
    job = claimed.job
    assert (job.sha, job.few_tests.base_sha, job.pull_request) == (bad, good, 0)
    assert job.requested_by.login == "hubot", "it comes before the jobs of the bot"
    outcome = FewTestsOutcome({TEST: TestAttempts(1, 3)}, {TEST: TestAttempts(4)}, seconds=30.0)
    done = await range_town.devices.store.complete_few_tests(LAB, job.id, SUITE, outcome)
    await announce_step(range_town.devices.place.town.bot.services.announce, done)
    await range_town.devices.place.town.quiet()
    answer = range_town.issue.comments_by(BOT)[-1].body
    assert f"`{TEST}` failed in 3 of 4 runs at `{bad[:7]}` on `{LAB}/{HEXAGON}`." in answer
    assert f"| failing commit `{bad[:7]}` | 3 of 4 | 75% |" in answer
    assert f"| last good commit `{good[:7]}` | 0 of 4 | 0% |" in answer
    assert f"To repeat this, comment `@ci reproduce {TEST} on {LAB}/{HEXAGON} x4` again." in answer
    await range_town.devices.sweep()
    assert range_town.issue.comments_by(BOT)[-1].body == answer, "there was one job, and its answer is not repeated"


async def test_a_reported_regression_of_two_targets_is_searched_on_both_and_the_lab_is_found(
    tmp_path: Path, aws_world: World
) -> None:
    async with device_town(
        f"sqlite:///{tmp_path}/nightjar.db", aws_world, features="regressions: {to: [issue], find: true}"
    ) as devices:
        range_town = SearchTown(devices)
        await range_town.regression(5, HEXAGON, ADRENO)
        search = await range_town.search()
        assert search.request.targets == (f"{LAB}/{ADRENO}", f"{LAB}/{HEXAGON}")
        assert len(search.runs) == 2, "both idle targets got a job"
        jobs = await range_town.work(lambda *_: True, HEXAGON, ADRENO)
        assert {job.target for job in jobs} == {HEXAGON, ADRENO}
        body = range_town.issue.body or ""
        assert "No commit is the cause (99." in body
        assert f"the tests fail at {range_town.shas[0][:10]} too" in body
        assert "Began with" not in body


@pytest.mark.exhaustive
async def test_a_search_over_its_budget_continues_the_next_day(tmp_path: Path, aws_world: World) -> None:
    async with device_town(
        f"sqlite:///{tmp_path}/nightjar.db",
        aws_world,
        targets="{hexagon-v73: {tier: 2, suites: [operators], searches: {budget: 3/day}}}",
    ) as devices:
        range_town = SearchTown(devices)
        await range_town.regression(6, HEXAGON)
        await range_town.sweep(days=1)
        await range_town.begin_search()
        days, jobs = 0, await range_town.work(lambda commit, _: commit >= 2, HEXAGON)
        while (search := await range_town.search()).answer is None:
            assert len(jobs) == 3, f"the budget of day {days}"
            await range_town.sweep()
            assert await range_town.work(lambda *_: False, HEXAGON) == []
            days += 1
            if days == 2:
                # A paused target is asked nothing until its day, though there is budget.
                day = datetime.fromtimestamp(devices.place.time(), UTC).date() + timedelta(days=2)
                await devices.says(devices.pull(), "octocat", f"@ci lab pause {HEXAGON} until {day}")
                await range_town.sweep(days=1)
                assert await range_town.work(lambda *_: False, HEXAGON) == []
            await range_town.sweep(days=1)
            jobs = await range_town.work(lambda commit, _: commit >= 2, HEXAGON)
        assert days >= 2
        assert search.answer.first == 2
