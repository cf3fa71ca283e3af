"""CI uploads test results to the bucket as a lab of its own: the pull request shows skipped and slow tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.github.text import sticky
from sandbox import PullRequest
from tests.bucket import World
from tests.conversations.lab import LAB, TARGET, TEST_FILE, LabTown, lab_town
from tests.conversations.town import BOT
from tests.handlers.ci_reports.test_artifacts import junit

SOURCE = f"{{lab: {LAB}, target: {TARGET}}}"
FEATURES = f"""slow_tests: false
    repository_file: false
    skipped_tests: {SOURCE}
    runtime: {SOURCE}"""
REPO = "/repos/{owner}/{repo}"
COMPARE = f"GET {REPO}/compare/{{basehead}}"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
EDIT = f"PATCH {REPO}/issues/comments/{{comment_id}}"
OURS = "https://ci.example.org"
ADD, MUL = f"{TEST_FILE}::test_add", f"{TEST_FILE}::test_mul"


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    url = f"sqlite:///{tmp_path}/nightjar.db"
    async with lab_town(url, aws_world, features=FEATURES, settings=f"public_url: {OURS}\n") as place:
        yield place


def uploaded(place: LabTown, sha: str, pull: PullRequest | None = None, *, suite: str = "ops", **cases: str) -> None:
    claims: dict[str, Any] = {"pull_request": pull.number} if pull else {}
    place.upload(sha, {"junit.xml": junit(**cases).encode()}, suite=suite, **claims)


async def based(place: LabTown, **cases: str) -> tuple[str, PullRequest]:
    """Test a commit of the nightly branch, and open a pull request based on it."""
    nightly_run = place.nightly_run()
    uploaded(place, nightly_run, None, **cases)
    await place.settle()
    place.town.repo.push("main", onto=nightly_run, by="octocat")
    place.town.github.clock.advance(seconds=20)
    pull = place.town.repo.open_pull_request("octocat")
    await place.town.quiet()
    return nightly_run, pull


def sections(pull: PullRequest) -> dict[str, str]:
    comments = pull.comments_by(BOT)
    assert len(comments) <= 1
    return sticky.sections_of(comments[0].body) if comments else {}


async def test_the_sections_name_tests_that_are_skipped_or_slower_than_at_the_nearest_tested_ancestor(
    place: LabTown,
) -> None:
    nightly_run, pull = await based(place, add="passed 100", mul="skipped")
    uploaded(place, pull.head_sha, pull, add="skipped", mul="passed 20", big="passed 300")
    await place.settle()
    link = f"[`{nightly_run[:7]}`]({place.town.github.url}/octocat/compiler/commit/{nightly_run})"
    skipped, runtime = sections(pull)["skipped-tests"], sections(pull)["runtime"]
    assert f"- `ops`: 1 test is newly skipped, 1 test runs again, compared with {link}." in skipped
    assert f"Newly skipped:\n- `{ADD}`\n\nRunning again:\n- `{MUL}`" in skipped
    assert f"at `{pull.head_sha[:7]}` (" in skipped
    assert f"2 → 3 tests), compared with {link}. This adds " in runtime
    assert f"Slow new tests:\n- `{TEST_FILE}::test_big`" in runtime
    page = f"[Everything the bot did on this pull request]({OURS}/r/octocat/compiler/pulls/{pull.number})"
    assert skipped.endswith(page)
    assert page in runtime


async def test_a_push_marks_both_sections_as_outdated_in_one_write(place: LabTown) -> None:
    _, pull = await based(place, add="passed 100")
    uploaded(place, pull.head_sha, pull, add="passed 300")
    await place.settle()
    place.town.github.requests.clear()
    pull.push()
    await place.town.quiet()
    outdated_sections = sections(pull)
    assert all(text.startswith("> **Out of date:** ") for text in outdated_sections.values())
    assert len(outdated_sections) == 2
    assert place.town.github.requests.count("PATCH", EDIT.removeprefix("PATCH ")) == 1


async def test_late_results_of_the_base_update_the_sections(place: LabTown) -> None:
    nightly_run = place.nightly_run()
    place.town.repo.push("main", onto=nightly_run, by="octocat")
    place.town.github.clock.advance(seconds=20)
    pull = place.town.repo.open_pull_request("octocat")
    uploaded(place, pull.head_sha, pull, add="skipped")
    await place.settle()
    assert "`ops`: no earlier results on the base branch to compare with." in sections(pull)["skipped-tests"]
    uploaded(place, nightly_run, add="passed")
    await place.settle()
    assert "`ops`: 1 test is newly skipped" in sections(pull)["skipped-tests"]


async def test_a_missing_suite_is_reported_once_no_more_results_are_expected(place: LabTown) -> None:
    nightly_run = place.nightly_run()
    for suite in ("ops", "te"):
        uploaded(place, nightly_run, suite=suite, add="passed")
    await place.settle()
    place.town.repo.push("main", onto=nightly_run, by="octocat")
    place.town.github.clock.advance(seconds=20)
    pull = place.town.repo.open_pull_request("octocat")
    uploaded(place, pull.head_sha, pull, add="passed")
    await place.settle()
    assert "`te`: **no results**, although the base has some." in sections(pull)["skipped-tests"]
    uploaded(place, pull.head_sha, pull, suite="te", add="passed")
    await place.settle()
    assert sections(pull)["skipped-tests"].startswith("**Skipped tests:** no difference from ")


async def test_other_targets_and_commits_without_a_pull_request_create_no_section(place: LabTown) -> None:
    nightly_run, pull = await based(place, add="passed")
    place.upload(pull.head_sha, {"a.xml": junit(add="skipped").encode()}, target="adreno", pull_request=pull.number)
    uploaded(place, nightly_run, suite="te", add="passed")
    await place.settle()
    assert pull.comments == []


async def test_results_of_a_head_cost_one_listing_of_its_ancestors_and_one_write(place: LabTown) -> None:
    """The number of tests and nightly runs does not matter. Another test counts what the lab's check run costs."""
    for _ in range(3):
        _, pull = await based(place, add="passed 1")
    await place.settle()
    place.town.github.requests.clear()
    many: dict[str, Any] = {f"t{number}": "passed" for number in range(2_000)}
    uploaded(place, pull.head_sha, pull, **many)
    await place.settle()
    requests = Counter(f"{r.method} {r.route}" for r in place.town.github.requests.of_installation)
    # Is the commit on the branch, and is its baseline its ancestor: the check run and the two sections may ask both at
    # the same time.
    assert requests[COMPARE] in (2, 3, 4)
    assert {route: requests[route] for route in (COMMENTS, COMMENT, EDIT)} == {COMMENTS: 1, COMMENT: 1, EDIT: 0}
