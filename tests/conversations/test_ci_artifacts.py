"""CI's tests in artifacts of GitHub Actions: the pull request shows which tests are skipped and which are slower."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.untrusted.pool import POOL
from bot.github.text import sticky
from sandbox import PullRequest
from sandbox.model.workflows import WorkflowRun
from tests.conversations.town import BOT, REPOSITORY, Town
from tests.conversations.town import town as start_town
from tests.handlers.ci_reports.test_artifacts import junit

CONFIG = f"""
repositories:
  {REPOSITORY}:
    slow_tests: false
    repository_file: false
    skipped_tests: {{workflow: CI, artifacts: ["tests-*"], required: ci/required.json}}
"""
BOTH = f'{CONFIG}    runtime: {{workflow: CI, artifacts: ["tests-*"]}}\n'
REPO = "/repos/{owner}/{repo}"
PULL = f"GET {REPO}/pulls/{{pull_number}}"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
EDIT = f"PATCH {REPO}/issues/comments/{{comment_id}}"
LIST, ZIP = (
    f"GET {REPO}/actions/runs/{{run_id}}/artifacts",
    f"GET {REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}",
)
RUNS, ANCESTORS = f"GET {REPO}/actions/workflows/{{workflow_id}}/runs", f"GET {REPO}/commits"
TREE, COMPARE, FILE = (
    f"GET {REPO}/git/trees/{{tree_sha}}",
    f"GET {REPO}/compare/{{basehead}}",
    f"GET {REPO}/contents/{{path}}",
)
HEAD_READ, BASE_READ = {LIST: 1, ZIP: 1, TREE: 1}, {COMPARE: 1, RUNS: 1, LIST: 1, ZIP: 1, TREE: 1}
BOTH_READ = dict(Counter(HEAD_READ) + Counter(BASE_READ))
WRITTEN, EDITED = {COMMENTS: 1, COMMENT: 1}, {COMMENTS: 1, EDIT: 1}
TEST_FILE, ADD, MUL = "tests/test_ops.py", "tests/test_ops.py::test_add", "tests/test_ops.py::test_mul"
REQUIRED = {TEST_FILE: "def test_add(): ...\n", "ci/required.json": json.dumps({"tests-cpu": [ADD]})}
ALL_PASS = {"tests-cpu": junit(add="passed 1", mul="passed 2")}
ADD_SKIPPED = {"tests-cpu": junit(add="skipped", mul="passed 2")}


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as town:
        town.repo.push("main", REQUIRED, by="octocat")
        yield town


@pytest.fixture
async def town_with_runtime(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=BOTH) as town:
        town.repo.push("main", REQUIRED, by="octocat")
        yield town


def run_ci(
    town: Town, sha: str, artifacts: Mapping[str, str], conclusion: str = "success", *, event: str = "pull_request"
) -> WorkflowRun:
    """Let CI run on a commit, upload artifacts, and finish."""
    run = town.repo.add_workflow_run(sha, "CI", event=event)
    for name, text in artifacts.items():
        run.upload(name, {"junit.xml": text})
    run.finish(conclusion)
    return run


def on_main(town: Town, artifacts: Mapping[str, str], conclusion: str = "success") -> str:
    sha = town.repo.branch("main")
    run_ci(town, sha, artifacts, conclusion, event="push")
    return sha


def sections(pull: PullRequest) -> dict[str, str]:
    comments = pull.comments_by(BOT)
    assert len(comments) <= 1
    return sticky.sections_of(comments[0].body) if comments else {}


def section(pull: PullRequest) -> str:
    return sections(pull)["skipped-tests"]


async def cost(town: Town) -> dict[str, int]:
    """Return the requests since the previous call."""
    await town.quiet()
    requests = Counter(f"{r.method} {r.route}" for r in town.github.requests.of_installation)
    town.github.requests.clear()
    return dict(requests)


async def opened(town: Town, *, fork: bool = False) -> PullRequest:
    pull = town.repo.open_pull_request("hubot", "Faster", fork=fork)
    await cost(town)
    return pull


async def test_the_comment_names_a_test_that_ran_at_the_merge_base_and_is_skipped_here(town: Town) -> None:
    base = on_main(town, ALL_PASS)
    pull = await opened(town)
    run = run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    section_text = section(pull)
    assert f"at `{pull.head_sha[:7]}` ({run.updated_at:%Y-%m-%d %H:%M} UTC)" in section_text
    assert (
        f"1 test is newly skipped, compared with [`{base[:7]}`]({town.github.url}/octocat/compiler/actions/runs/"
        in section_text
    )
    assert f"Newly skipped:\n- `{ADD}`" in section_text
    assert f"`tests-cpu`: `{ADD}`: skipped" in section_text
    assert "**1 required test did not run**; `ci/required.json` on `main` lists the required tests." in section_text


async def test_one_line_says_that_nothing_differs(town: Town) -> None:
    on_main(town, ALL_PASS)
    pull = await opened(town)
    run_ci(town, pull.head_sha, ALL_PASS, "failure")
    await town.quiet()
    assert section(pull).startswith("**Skipped tests:** no difference from [`")
    assert "\n" not in section(pull)


async def test_after_a_push_the_section_is_outdated_until_ci_has_finished_again(town: Town) -> None:
    on_main(town, ALL_PASS)
    pull = await opened(town)
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    old = pull.head_sha[:7]
    pull.push()
    await town.quiet()
    assert section(pull).startswith(f"> **Out of date:** this is for `{old}`; the head is now `{pull.head_sha[:7]}`.\n")
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert section(pull).startswith("**Skipped tests:** no difference")


async def test_the_base_is_the_nearest_ancestor_where_the_workflow_succeeded(town: Town) -> None:
    """TVM compared with the newest commit of `main`, and only said so if that one had failed."""
    good = on_main(town, ALL_PASS)
    town.repo.push("main", by="octocat")
    on_main(town, ADD_SKIPPED, "failure")
    town.repo.push("main", by="octocat")
    pull = await opened(town)
    town.repo.push("main", by="octocat")
    on_main(town, ADD_SKIPPED)
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    assert f"1 test is newly skipped, compared with [`{good[:7]}`]" in section(pull)


async def test_the_section_says_that_the_base_has_no_good_run(town: Town) -> None:
    base = on_main(town, ALL_PASS, "failure")
    pull = await opened(town)
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert (
        f"No results to compare with: no run of `CI` on `main` was green at the merge base `{base[:7]}` or at "
        "an earlier commit among its newest 100." in section(pull)
    )
    assert "`tests-cpu`: no earlier results on the base branch to compare with." in section(pull)


async def test_the_section_says_that_the_artifacts_of_the_base_have_expired(town: Town) -> None:
    base = on_main(town, ALL_PASS)
    town.repo.workflow_runs[-1].artifacts[0].expired = True
    pull = await opened(town)
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert f"at `{base[:7]}` has no matching artifact that can be read." in section(pull)


async def test_the_section_says_that_a_run_uploaded_nothing(town: Town) -> None:
    pull = await opened(town)
    run_ci(town, pull.head_sha, {"wheel": ""}, "failure")
    await town.quiet()
    assert "- The run of `CI` has no artifact that matches `tests-*`." in section(pull)


async def test_removed_and_new_suites_are_reported(town: Town) -> None:
    """TVM crashed with a KeyError on a suite that `main` did not have."""
    on_main(town, {**ALL_PASS, "tests-gpu": junit(add="passed")})
    pull = await opened(town)
    run_ci(town, pull.head_sha, {**ALL_PASS, "tests-arm": junit(add="skipped")})
    await town.quiet()
    section_text = section(pull)
    assert "- `tests-gpu`: **no results**, although the base has some." in section_text
    assert "- `tests-arm`: no earlier results on the base branch to compare with." in section_text
    assert "Newly skipped" not in section_text


async def test_required_tests_are_read_from_the_base_branch(town: Town) -> None:
    """A pull request must not exempt itself."""
    on_main(town, ALL_PASS)
    pull = town.repo.open_pull_request("hubot", "Faster", files={"ci/required.json": "{}"})
    await town.quiet()
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    assert "**1 required test did not run**" in section(pull)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "it does not exist"),
        ("{", "it is not JSON: "),
        ("{}", "it lists no test"),
        ("[]", "it must be one object"),
    ],
)
async def test_an_invalid_list_of_required_tests_is_reported(town: Town, content: str | None, reason: str) -> None:
    """TVM #13368: the file was deleted a day after it was added, and no required test was ever reported."""
    town.repo.push("main", {"ci/required.json": content}, by="octocat")
    on_main(town, ALL_PASS)
    pull = await opened(town)
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert f"- We could not read the list of required tests, `ci/required.json` on `main`: `{reason}" in section(pull)


async def test_a_folder_in_place_of_the_list_is_reported(town: Town) -> None:
    town.repo.push("main", {"ci/required.json": None, "ci/required.json/old.json": "{}"}, by="octocat")
    on_main(town, ALL_PASS)
    pull = await opened(town)
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert "on `main`: `it is not a file`." in section(pull)


async def test_a_pull_request_from_a_fork_is_found_by_its_head(town: Town) -> None:
    """GitHub names no pull request in a run of a fork."""
    on_main(town, ALL_PASS)
    pull = await opened(town, fork=True)
    run = run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    assert run.repository is town.repo
    assert "1 test is newly skipped" in section(pull)


async def test_a_run_of_a_pull_request_from_a_branch_called_main_is_no_base(town: Town) -> None:
    """Its code is the pull request's own, and may claim anything."""
    pull = await opened(town)
    run_ci(town, town.repo.branch("main"), ALL_PASS)  # the event of a pull request, on the merge base itself
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    assert "No results to compare with" in section(pull)


async def test_results_of_an_older_head_do_not_overwrite_the_section_of_a_newer_one(town: Town) -> None:
    on_main(town, ALL_PASS)
    pull = await opened(town)
    slow = town.repo.add_workflow_run(pull.head_sha, "CI")
    slow.upload("tests-cpu", {"a.xml": ALL_PASS["tests-cpu"]})
    pull.push()
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    newer_section = section(pull)
    await cost(town)
    slow.finish("success")
    assert await cost(town) == {}
    assert section(pull) == newer_section


async def test_an_unreadable_result_is_reported_until_the_next_run(town: Town) -> None:
    """TVM #12860: failures were hidden by `|| /bin/true`, and nobody noticed them."""
    on_main(town, ALL_PASS)
    pull = await opened(town)
    town.github.faults.add(
        "GET", LIST.removeprefix("GET "), status=403, message="Resource not accessible by integration", times=1
    )
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert section(pull).startswith(
        f"**Skipped tests:** we could not compare the tests at `{pull.head_sha[:7]}`: GitHub denied this: the App needs"
    )
    run_ci(town, pull.head_sha, ALL_PASS)
    await town.quiet()
    assert section(pull).startswith("**Skipped tests:** no difference")


async def test_each_section_reports_its_own_errors(town_with_runtime: Town) -> None:
    pull = await opened(town_with_runtime)
    town_with_runtime.github.faults.add("GET", LIST.removeprefix("GET "), status=403, message="Not accessible", times=2)
    run_ci(town_with_runtime, pull.head_sha, ALL_PASS)
    await town_with_runtime.quiet()
    assert all(": GitHub " in text for text in sections(pull).values())
    assert sections(pull).keys() == {"skipped-tests", "runtime"}


async def test_a_section_that_fails_does_not_stop_the_others(town_with_runtime: Town) -> None:
    """TVM #12824: one failing section failed the whole comment."""
    on_main(town_with_runtime, ALL_PASS)
    pull = await opened(town_with_runtime)
    town_with_runtime.github.faults.add("GET", FILE.removeprefix("GET "), status=403, message="Not accessible", times=1)
    run_ci(town_with_runtime, pull.head_sha, {"tests-cpu": junit(add="passed 1", mul="passed 2000")})
    await town_with_runtime.quiet()
    assert sections(pull)["skipped-tests"].startswith("**Skipped tests:** we could not compare the tests at")
    assert "`tests-cpu`: 686 times as long" in sections(pull)["runtime"]


async def test_a_longer_runtime_is_reported_until_it_is_normal_again(town_with_runtime: Town) -> None:
    base = on_main(town_with_runtime, {"tests-cpu": junit(add="passed 100")})
    pull = await opened(town_with_runtime)
    run_ci(town_with_runtime, pull.head_sha, {"tests-cpu": junit(add="passed 100", mul="passed 100")})
    await town_with_runtime.quiet()
    section_text = sections(pull)["runtime"]
    assert f"**Runtime of tests** at `{pull.head_sha[:7]}`" in section_text
    assert f"1 → 2 tests), compared with [`{base[:7]}`]" in section_text
    assert f"Slow new tests:\n- `{MUL}`, " in section_text
    pull.push()
    run_ci(town_with_runtime, pull.head_sha, {"tests-cpu": junit(add="passed 100", mul="passed 1")})
    await town_with_runtime.quiet()
    assert list(sections(pull)) == ["skipped-tests"]


# Requests


async def test_a_run_is_read_once_and_reported_in_one_write(town: Town) -> None:
    on_main(town, ALL_PASS)
    pull = await opened(town)
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    assert await cost(town) == BOTH_READ | {FILE: 1} | WRITTEN
    pull.push()
    assert await cost(town) == EDITED
    # The base was read before.
    run_ci(town, pull.head_sha, ALL_PASS)
    assert await cost(town) == HEAD_READ | {COMPARE: 1, RUNS: 1, FILE: 1} | EDITED


async def test_an_older_base_costs_one_listing_of_the_commits(town: Town) -> None:
    on_main(town, ALL_PASS)
    for _ in range(20):
        town.repo.push("main", by="octocat")
    pull = await opened(town)
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    assert await cost(town) == BOTH_READ | {RUNS: 2, ANCESTORS: 1, FILE: 1} | WRITTEN


async def test_two_sections_read_a_run_only_once(town_with_runtime: Town) -> None:
    on_main(town_with_runtime, ALL_PASS)
    pull = await opened(town_with_runtime)
    run_ci(town_with_runtime, pull.head_sha, {"tests-cpu": junit(add="skipped", mul="passed 2000")})
    requests = await cost(town_with_runtime)
    assert list(sections(pull)) in (["skipped-tests", "runtime"], ["runtime", "skipped-tests"])
    assert (requests[LIST], requests[ZIP], requests[TREE]) == (2, 2, 2)
    assert requests == {**requests, COMPARE: 2, RUNS: 2, FILE: 1, COMMENTS: 2, COMMENT: 1, EDIT: 1}


async def test_runs_that_contain_no_tests_cost_nothing(town: Town) -> None:
    """Other workflows, runs that have only started, those of branches, and those in which no test ran."""
    pull = await opened(town)
    town.repo.add_workflow_run(pull.head_sha, "Lint", "failure")
    town.repo.add_workflow_run(pull.head_sha, "CI", "cancelled")
    town.repo.add_workflow_run(pull.head_sha, "CI", "skipped")
    town.repo.add_workflow_run(pull.head_sha, "CI")
    on_main(town, ALL_PASS)
    assert await cost(town) == {}
    assert pull.comments == []


async def test_an_artifact_that_is_too_expensive_is_reported_with_the_limit(town: Town) -> None:
    on_main(town, ALL_PASS)
    pull = await opened(town)
    pool = town.bot.services.part(POOL)
    pool.limits = replace(pool.limits, artifact=replace(pool.limits.artifact, wall=1e-6))
    run_ci(town, pull.head_sha, ADD_SKIPPED)
    await town.quiet()
    reason = "cannot be read: `reading one artifact took longer than 1e-06 seconds, the maximum`."
    assert reason in section(pull)
    assert await town.failures() == []


async def test_a_comparison_that_is_too_expensive_is_reported_with_the_limit(town_with_runtime: Town) -> None:
    """The author of a pull request decides how many tests there are to compare, and their names."""
    on_main(town_with_runtime, ALL_PASS)
    pull = await opened(town_with_runtime)
    pool = town_with_runtime.bot.services.part(POOL)
    pool.limits = replace(pool.limits, tests=replace(pool.limits.tests, wall=1e-6))
    run_ci(town_with_runtime, pull.head_sha, ADD_SKIPPED)
    await town_with_runtime.quiet()
    limit = ": comparing the tests of one commit took longer than 1e-06 seconds, the maximum"
    assert sections(pull).keys() == {"skipped-tests", "runtime"}
    assert all(limit in text for text in sections(pull).values()), sections(pull)
