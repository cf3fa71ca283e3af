"""The page of a pull request, as its author sees it while things happen: pending first, then what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.web.answers import AnswerPart, answer_text
from sandbox import PullRequest
from tests.bucket import World
from tests.conversations.devices import BAD, GOOD, HEXAGON, Devices, device_town
from tests.conversations.lab import LAB, junit
from tests.conversations.merges import KEYS, approve, merge_town, report
from tests.conversations.town import Town

HERE = "/r/octocat/compiler/pulls"
ON_HEXAGON = f"{LAB}/{HEXAGON}"


@pytest.fixture
async def devices(tmp_path: Path, aws_world: World) -> AsyncIterator[Devices]:
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


async def told(town: Town, pull: PullRequest) -> tuple[Any, str, str]:
    """Return the JSON of the page, its first sentence, and its HTML."""
    status, _, page = await town.ask(f"/api/v1/repos/octocat/compiler/pulls/{pull.number}")
    assert status == 200, page
    async with aiohttp.ClientSession() as session, session.get(f"{town.url}{HERE}/{pull.number}") as response:
        html = await response.text()
    parts = [AnswerPart(**part) for part in page["answer"]]
    return page, answer_text(parts), html


def steps(page: Any) -> list[str]:
    return ["".join(part["text"] for part in step) for step in page["next_steps"]]


def command_stories(page: Any) -> list[tuple[str, str, str, str]]:
    """Return what each command did, the oldest first."""
    stories = [(story["login"], story["command"], story["state"], story["result"]) for story in page["commands_given"]]
    return stories[::-1]


async def test_a_device_test_from_its_request_to_ignored_failures(devices: Devices) -> None:
    place, town = devices.place, devices.place.town
    base = place.nightly_run()
    place.upload(base, {"te.xml": junit(**GOOD)})
    await place.settle()
    town.repo.push("main", onto=base, by="octocat")
    town.github.clock.advance(seconds=20)
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()

    page, answer, html = await told(town, pull)
    assert (answer, page["pending"], "data-wait" in html) == ("Nothing is pending.", False, False)
    assert (page["head"]["title"], page["head"]["author"], page["head"]["state"]) == ("Faster", "hubot", "open")
    assert steps(page) == ["To test the head on a device, comment @ci test on hexagon-v73"]

    await devices.says(pull, "hubot", f"@ci test on {HEXAGON}")
    page, answer, html = await told(town, pull)
    assert answer == f"{ON_HEXAGON}: queued, next in line."
    assert (page["pending"], 'data-wait="15"' in html, '<meta http-equiv="refresh"' in html) == (True, True, True)
    assert command_stories(page) == [("hubot", f"`@ci test on {HEXAGON}`", "done", "requested 1 device test")]
    (test,) = page["device_tests"]
    assert (test["state"], test["jobs_before"], test["requested_by"]) == ("queued", 0, "hubot")
    check_run = devices.check(pull.head_sha)
    assert [(line["name"], line["title"], line["conclusion"], line["url"]) for line in page["check_runs"]] == [
        (check_run.name, check_run.title, "", f"{page['github']}/runs/{check_run.id}")
    ]

    claimed = await devices.claim()
    await devices.store.heartbeat(LAB, claimed.job.id, claimed.lease, note="1 of 3")
    _, answer, _ = await told(town, pull)
    assert answer.startswith(f"{ON_HEXAGON}: running for ")
    place.upload(pull.head_sha, {"te.xml": junit(**BAD)}, job=claimed.job.id)
    await place.settle()
    page, answer, html = await told(town, pull)
    assert answer == "Nothing is pending. 1 new failure on 1 of 1 target."
    (results,) = page["results"]
    check_run = devices.check(pull.head_sha)
    assert (results["title"], results["conclusion"]) == (check_run.title, check_run.conclusion)
    assert (results["new_failures"], results["failed"], results["passed"]) == (1, 1, 1)
    assert [failure["test"].rpartition("::")[2] for failure in results["failures"]] == ["test_mul"]
    assert page["device_tests"][0]["state"] == "done"
    assert steps(page)[0].startswith(f"Look at the new failures of {ON_HEXAGON}; if this pull request did not cause")
    # The list knows the same without a comparison.
    _, _, listed = await town.ask("/api/v1/repos/octocat/compiler/pulls?state=open&author=HUBOT")
    (row,) = [row for row in listed["pulls"] if row["number"] == pull.number]
    assert (row["title"], row["device_tests"], [check["title"] for check in row["checks"]]) == (
        "Faster", 0, [check_run.title],
    )  # fmt: skip

    check_run.press("octocat", "ignore")
    await town.quiet()
    page, answer, _ = await told(town, pull)
    assert answer == "Nothing is pending. No new failures on 1 target."
    assert (page["results"][0]["title"], page["results"][0]["ignored"]) == (devices.checks(pull.head_sha)[-1].title, 1)
    assert [(ignored["target"], ignored["ignored_by"], ignored["tests"]) for ignored in page["ignored_failures"]] == [
        (ON_HEXAGON, "octocat", 1)
    ]


async def test_what_happened_to_commands_reviewers_and_a_merge(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", KEYS, "    cc_reviewers: {}\n") as town:
        pull = town.repo.open_pull_request("hubot", "Faster", "Saves a pass.")
        await town.quiet()
        page, _, _ = await told(town, pull)
        (reviewers,) = [
            plan for story in page["deliveries"] for plan in story["plans"] if plan["handler"] == "cc-reviewers"
        ]
        assert reviewers["why"] == "the text names nobody after `cc`"

        async def says(person: str, text: str) -> None:
            town.github.clock.advance(seconds=1)
            pull.comment(person, text)
            await town.quiet()

        await says("somebody", "@ci merge")
        page, _, _ = await told(town, pull)
        refusal = "You need write access for this. Ask a maintainer to comment `@ci merge`."
        assert command_stories(page) == [("somebody", "`@ci merge`", "refused", refusal)]
        assert page["deliveries"][0]["state"] == "refused"
        assert [plan["why"] for plan in page["deliveries"][0]["plans"]][-1].startswith("commands that were not carried")
        assert steps(page)[0] == "@ci merge was not carried out: the answer says why."

        approve(pull)
        report(town, pull, "pending")
        await says("octocat", "@ci merge when green")
        page, answer, _ = await told(town, pull)
        assert answer.startswith("The merge that octocat requested is pending: ")
        assert f"cpu/pr-head is still running on {pull.head_sha[:7]}." in answer
        report(town, pull, "pending", "gpu/pr-head")
        report(town, pull)
        await town.quiet()
        _, answer, _ = await told(town, pull)
        assert "pending: gpu/pr-head is still running" in answer
        _, _, listed = await town.ask("/api/v1/repos/octocat/compiler/pulls")
        assert [(row["state"], row["merge"]) for row in listed["pulls"]] == [("open", "waiting")]

        report(town, pull, "success", "gpu/pr-head")
        await town.quiet()
        page, answer, html = await told(town, pull)
        assert answer.startswith("Merged by nightjar[bot] on ")
        assert answer.endswith(" UTC. Nothing is pending.")
        assert (page["head"]["state"], page["next_steps"], "data-wait" in html) == ("merged", [], False)
        _, _, listed = await town.ask("/api/v1/repos/octocat/compiler/pulls?state=merged")
        assert [row["number"] for row in listed["pulls"]] == [pull.number]
