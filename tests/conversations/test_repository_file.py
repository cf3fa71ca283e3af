"""`.github/nightjar.yaml`: a repository's maintainers change what the bot does there with a push."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from sandbox import PullRequest
from sandbox.model.checks import CheckRun
from tests.conversations.nightly_runs import nightly_town
from tests.conversations.town import Town
from tests.conversations.town import town as start_town

FILE = ".github/nightjar.yaml"
NAME = "nightjar/config"
ONLY_WRITERS = "slow_tests: {allow: [write]}\n"
BROKEN = "cc_reviewers: false\nslow_tests:\n  allow: [triager]\n  status: ci/other\nnightly: {require: []}\n"


def push(town: Town, text: str | None) -> str:
    """Push the file to the default branch, or its removal; returns the commit."""
    return town.repo.push("main", {FILE: text}, by="octocat", message="Say what holds here").sha


async def refused(town: Town, pull: PullRequest, commenter: str = "triager") -> str:
    """Let a person request slow tests; return the refusal of the bot, empty if it does not refuse."""
    comment = pull.comment(commenter, "@ci run slow tests")
    await town.quiet()
    return "" if "+1" in pull.reactions(comment) else town.answers(pull)[-1]


def checks(town: Town, sha: str) -> list[CheckRun]:
    """Return the check runs of a commit that people see."""
    return town.repo.check_runs(sha, NAME)


def places(run: CheckRun) -> list[tuple[str, int, int, str]]:
    return [(a["path"], a["start_line"], a["start_column"], a["title"]) for a in run.annotations]


async def faults(town: Town) -> float:
    """Return the number of faults in the repository's file, from the metrics."""
    async with aiohttp.ClientSession() as session, session.get(f"{town.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    (faults_line,) = [line for line in lines if line.startswith("nightjar_repository_file_faults{")]
    return float(faults_line.rpartition(" ")[2])


async def test_the_file_on_the_default_branch_applies_until_it_is_removed(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    assert await refused(town, pull) == ""
    sha = push(town, ONLY_WRITERS)
    await town.quiet()
    assert "You need write access" in await refused(town, pull)
    assert await refused(town, pull, commenter="hubot") == ""
    assert checks(town, sha) == []  # all is well, and nobody asked

    push(town, "slow_tests: false\n")
    await town.quiet()
    assert "add `slow_tests` to `.github/nightjar.yaml` or `app.yaml`" in await refused(town, pull)
    status, _, answer = await town.ask(f"/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision")
    assert (status, answer["run_slow_tests"]["value"]) == (200, True)
    assert "slow_tests is off" in answer["run_slow_tests"]["reason"]
    pull.push()
    await town.quiet()
    assert town.repo.all_statuses(pull.head_sha) == []

    push(town, None)
    await town.quiet()
    assert await refused(town, pull) == ""


async def test_other_branches_change_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Stricter", files={FILE: ONLY_WRITERS})
    town.repo.push("release/1.0", {FILE: ONLY_WRITERS}, by="octocat")
    await town.quiet()
    assert await refused(town, pull) == ""


async def test_the_last_valid_file_stays_in_force_and_the_invalid_commit_says_so(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    good = push(town, ONLY_WRITERS)
    await town.quiet()
    assert await faults(town) == 0
    bad = push(town, BROKEN)
    await town.quiet()
    assert "You need write access" in await refused(town, pull)
    assert await faults(town) == 3
    (run,) = checks(town, bad)
    assert (run.conclusion, run.title) == ("failure", "3 errors")
    assert f"in force: the file of commit `{good[:7]}`" in (run.summary or "")
    assert places(run) == [
        (FILE, 3, 11, "slow_tests.allow[0]"),
        (FILE, 4, 3, "slow_tests.status"),
        (FILE, 5, 1, "nightly"),
    ]

    better = push(town, BROKEN.splitlines()[0])
    await town.quiet()
    assert checks(town, better) == []
    assert await faults(town) == 0
    assert await refused(town, pull) == ""


@pytest.mark.parametrize("fork", [False, True])
async def test_a_pull_request_that_edits_the_file_shows_each_fault_at_its_line_and_then_its_changes(
    town: Town, fork: bool
) -> None:
    push(town, ONLY_WRITERS)
    pull = town.repo.open_pull_request("reader", "Looser", files={FILE: BROKEN}, fork=fork)
    await town.quiet()
    (run,) = checks(town, pull.head_sha)
    assert (run.status, run.conclusion, run.title) == ("completed", "failure", "3 errors")
    assert [(annotation["start_line"], annotation["message"]) for annotation in run.annotations] == [
        (3, "must be one of author, triage, write, maintain, admin (did you mean triage?)"),
        (4, "can only be set in app.yaml, by the operator of the bot; remove it here"),
        (
            5,
            "is not enabled in app.yaml, and cannot be enabled here; remove it, or ask the operator of the bot to "
            "enable it",
        ),
    ]
    assert {annotation["annotation_level"] for annotation in run.annotations} == {"failure"}

    pull.push({FILE: "cc_reviewers: false\nslow_tests: {allow: [triage]}\n"})
    await town.quiet()
    (run,) = checks(town, pull.head_sha)
    assert (run.conclusion, run.title, run.annotations) == ("success", "Valid; 2 settings change", [])
    assert (run.summary or "").splitlines()[2:] == [
        "| key | now | with this change |",
        "| --- | --- | --- |",
        '| `slow_tests.allow` | `["write"]` | `["triage"]` |',
        "| `cc_reviewers` | `true` | `false` |",
    ]
    assert "You need write access" in await refused(town, pull)
    pull.merge("octocat")
    await town.quiet()
    assert await refused(town, town.repo.open_pull_request("hubot")) == ""


async def test_a_pull_request_that_removes_the_file_shows_what_that_changes(town: Town) -> None:
    push(town, "help: false\n")
    await town.quiet()  # the two deliveries are handled in any order
    pull = town.repo.open_pull_request("hubot", "Tidy up", files={FILE: None})
    await town.quiet()
    (run,) = checks(town, pull.head_sha)
    assert (run.conclusion, run.title) == ("success", "Removed; 1 setting changes")
    assert "| `help` | `false` | `true` |" in (run.summary or "")


async def test_a_rerun_of_the_check_compares_with_the_settings_in_force_then(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Quieter", files={FILE: "help: false\n"})
    await town.quiet()
    (run,) = checks(town, pull.head_sha)
    assert run.title == "Valid; 1 setting changes"
    push(town, "help: false\n")
    await town.quiet()
    run.rerequest("hubot")
    await town.quiet()
    (second_run,) = checks(town, pull.head_sha)
    assert (second_run is run, second_run.title) == (False, "Valid; no changes")
    second_run.suite.rerequest("hubot")
    await town.quiet()
    (last,) = checks(town, pull.head_sha)
    assert (last is second_run, last.title) == (False, "Valid; no changes")


@pytest.fixture
async def settled(tmp_path: Path) -> AsyncIterator[Town]:
    """Return a town whose repository had its file before the bot started."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", files={FILE: ONLY_WRITERS}) as town:
        await town.started()
        await town.quiet()
        yield town


async def test_a_file_that_exists_when_the_bot_starts_is_in_force(settled: Town) -> None:
    pull = settled.repo.open_pull_request("hubot", "Faster")
    assert "You need write access" in await refused(settled, pull)


async def test_a_repository_whose_file_the_operator_does_not_allow_is_left_alone(tmp_path: Path) -> None:
    config = "repositories: {octocat/compiler: {repository_file: false}}"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config, files={FILE: ONLY_WRITERS}) as town:
        push(town, "slow_tests: {allow: [admin]}")
        pull = town.repo.open_pull_request("hubot", "Stricter", files={FILE: BROKEN})
        assert await refused(town, pull) == ""
        assert checks(town, pull.head_sha) == []
        assert [record.route for record in town.github.requests.records if "contents" in record.route] == []


async def test_the_file_may_set_what_the_nightly_branch_requires(tmp_path: Path) -> None:
    files = {FILE: 'nightly: {require: ["gpu"]}\n'}
    async with nightly_town(f"sqlite:///{tmp_path}/nightjar.db", files=files) as place:
        await place.town.started()
        sha = place.push()
        await place.nightly_run()
        assert place.head is None
        assert await place.verdicts() == [
            ("Improve it", "missing", ["gpu missing"]),
            ("Begin", "missing", ["gpu missing"]),
        ]
        place.town.repo.set_status("hubot", sha, "gpu", "success")
        await place.nightly_run()
        assert place.head == sha
