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
from tests.conversations.town import BOT, REPOSITORY, Town, town
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
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as place:
        place.repo.push("main", REQUIRED, by="octocat")
        yield place


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=BOTH) as place:
        place.repo.push("main", REQUIRED, by="octocat")
        yield place


def ran(
    here: Town, sha: str, artifacts: Mapping[str, str], conclusion: str = "success", *, event: str = "pull_request"
) -> WorkflowRun:
    """Let CI run on a commit, upload artifacts, and finish."""
    run = here.repo.add_workflow_run(sha, "CI", event=event)
    for name, text in artifacts.items():
        run.upload(name, {"junit.xml": text})
    run.finish(conclusion)
    return run


def on_main(here: Town, artifacts: Mapping[str, str], conclusion: str = "success") -> str:
    sha = here.repo.branch("main")
    ran(here, sha, artifacts, conclusion, event="push")
    return sha


def sections(pull: PullRequest) -> dict[str, str]:
    comments = pull.comments_by(BOT)
    assert len(comments) <= 1
    return sticky.sections_of(comments[0].body) if comments else {}


def section(pull: PullRequest) -> str:
    return sections(pull)["skipped-tests"]


async def cost(here: Town) -> dict[str, int]:
    """Return the requests since the previous call."""
    await here.quiet()
    made = Counter(f"{r.method} {r.route}" for r in here.github.requests.of_installation)
    here.github.requests.clear()
    return dict(made)


async def opened(here: Town, *, fork: bool = False) -> PullRequest:
    pull = here.repo.open_pull_request("hubot", "Faster", fork=fork)
    await cost(here)
    return pull


async def test_the_comment_names_a_test_that_ran_at_the_merge_base_and_is_skipped_here(here: Town) -> None:
    base = on_main(here, ALL_PASS)
    pull = await opened(here)
    run = ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    said = section(pull)
    assert f"at `{pull.head_sha[:7]}` ({run.updated_at:%Y-%m-%d %H:%M} UTC)" in said
    assert (
        f"1 test is newly skipped, compared with [`{base[:7]}`]({here.github.url}/octocat/compiler/actions/runs/"
        in said
    )
    assert f"Newly skipped:\n- `{ADD}`" in said
    assert f"`tests-cpu`: `{ADD}`: skipped" in said
    assert "**1 required test did not run**; `ci/required.json` on `main` lists the required tests." in said


async def test_one_line_says_that_nothing_differs(here: Town) -> None:
    on_main(here, ALL_PASS)
    pull = await opened(here)
    ran(here, pull.head_sha, ALL_PASS, "failure")
    await here.quiet()
    assert section(pull).startswith("**Skipped tests:** no difference from [`")
    assert "\n" not in section(pull)


async def test_after_a_push_the_section_is_outdated_until_ci_has_finished_again(here: Town) -> None:
    on_main(here, ALL_PASS)
    pull = await opened(here)
    ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    old = pull.head_sha[:7]
    pull.push()
    await here.quiet()
    assert section(pull).startswith(f"> **Out of date:** this is for `{old}`; the head is now `{pull.head_sha[:7]}`.\n")
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert section(pull).startswith("**Skipped tests:** no difference")


async def test_the_base_is_the_nearest_ancestor_where_the_workflow_succeeded(here: Town) -> None:
    """TVM compared with the newest commit of `main`, and only said so if that one had failed."""
    good = on_main(here, ALL_PASS)
    here.repo.push("main", by="octocat")
    on_main(here, ADD_SKIPPED, "failure")
    here.repo.push("main", by="octocat")
    pull = await opened(here)
    here.repo.push("main", by="octocat")
    on_main(here, ADD_SKIPPED)
    ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    assert f"1 test is newly skipped, compared with [`{good[:7]}`]" in section(pull)


async def test_the_section_says_that_the_base_has_no_good_run(here: Town) -> None:
    base = on_main(here, ALL_PASS, "failure")
    pull = await opened(here)
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert (
        f"No results to compare with: no run of `CI` on `main` was green at the merge base `{base[:7]}` or at "
        "an earlier commit among its newest 100." in section(pull)
    )
    assert "`tests-cpu`: no earlier results on the base branch to compare with." in section(pull)


async def test_the_section_says_that_the_artifacts_of_the_base_have_expired(here: Town) -> None:
    base = on_main(here, ALL_PASS)
    here.repo.workflow_runs[-1].artifacts[0].expired = True
    pull = await opened(here)
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert f"at `{base[:7]}` has no matching artifact that can be read." in section(pull)


async def test_the_section_says_that_a_run_uploaded_nothing(here: Town) -> None:
    pull = await opened(here)
    ran(here, pull.head_sha, {"wheel": ""}, "failure")
    await here.quiet()
    assert "- The run of `CI` has no artifact that matches `tests-*`." in section(pull)


async def test_removed_and_new_suites_are_reported(here: Town) -> None:
    """TVM crashed with a KeyError on a suite that `main` did not have."""
    on_main(here, {**ALL_PASS, "tests-gpu": junit(add="passed")})
    pull = await opened(here)
    ran(here, pull.head_sha, {**ALL_PASS, "tests-arm": junit(add="skipped")})
    await here.quiet()
    said = section(pull)
    assert "- `tests-gpu`: **no results**, although the base has some." in said
    assert "- `tests-arm`: no earlier results on the base branch to compare with." in said
    assert "Newly skipped" not in said


async def test_required_tests_are_read_from_the_base_branch(here: Town) -> None:
    """A pull request must not exempt itself."""
    on_main(here, ALL_PASS)
    pull = here.repo.open_pull_request("hubot", "Faster", files={"ci/required.json": "{}"})
    await here.quiet()
    ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    assert "**1 required test did not run**" in section(pull)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "it does not exist"),
        ("{", "it is not JSON: "),
        ("{}", "it lists no test"),
        ("[]", "it must be one object"),
    ],
)
async def test_an_invalid_list_of_required_tests_is_reported(here: Town, content: str | None, why: str) -> None:
    """TVM #13368: the file was deleted a day after it was added, and no required test was ever reported."""
    here.repo.push("main", {"ci/required.json": content}, by="octocat")
    on_main(here, ALL_PASS)
    pull = await opened(here)
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert f"- We could not read the list of required tests, `ci/required.json` on `main`: `{why}" in section(pull)


async def test_a_folder_in_place_of_the_list_is_reported(here: Town) -> None:
    here.repo.push("main", {"ci/required.json": None, "ci/required.json/old.json": "{}"}, by="octocat")
    on_main(here, ALL_PASS)
    pull = await opened(here)
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert "on `main`: `it is not a file`." in section(pull)


async def test_a_pull_request_from_a_fork_is_found_by_its_head(here: Town) -> None:
    """GitHub names no pull request in a run of a fork."""
    on_main(here, ALL_PASS)
    pull = await opened(here, fork=True)
    run = ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    assert run.repository is here.repo
    assert "1 test is newly skipped" in section(pull)


async def test_a_run_of_a_pull_request_from_a_branch_called_main_is_no_base(here: Town) -> None:
    """Its code is the pull request's own, and may claim anything."""
    pull = await opened(here)
    ran(here, here.repo.branch("main"), ALL_PASS)  # the event of a pull request, on the merge base itself
    ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    assert "No results to compare with" in section(pull)


async def test_results_of_an_older_head_do_not_overwrite_the_section_of_a_newer_one(here: Town) -> None:
    on_main(here, ALL_PASS)
    pull = await opened(here)
    slow = here.repo.add_workflow_run(pull.head_sha, "CI")
    slow.upload("tests-cpu", {"a.xml": ALL_PASS["tests-cpu"]})
    pull.push()
    ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    before = section(pull)
    await cost(here)
    slow.finish("success")
    assert await cost(here) == {}
    assert section(pull) == before


async def test_an_unreadable_result_is_reported_until_the_next_run(here: Town) -> None:
    """TVM #12860: failures were hidden by `|| /bin/true`, and nobody noticed them."""
    on_main(here, ALL_PASS)
    pull = await opened(here)
    here.github.faults.add(
        "GET", LIST.removeprefix("GET "), status=403, message="Resource not accessible by integration", times=1
    )
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert section(pull).startswith(
        f"**Skipped tests:** we could not compare the tests at `{pull.head_sha[:7]}`: GitHub denied this: the App needs"
    )
    ran(here, pull.head_sha, ALL_PASS)
    await here.quiet()
    assert section(pull).startswith("**Skipped tests:** no difference")


async def test_each_section_reports_its_own_errors(both: Town) -> None:
    pull = await opened(both)
    both.github.faults.add("GET", LIST.removeprefix("GET "), status=403, message="Not accessible", times=2)
    ran(both, pull.head_sha, ALL_PASS)
    await both.quiet()
    assert all(": GitHub " in text for text in sections(pull).values())
    assert sections(pull).keys() == {"skipped-tests", "runtime"}


async def test_a_section_that_fails_does_not_stop_the_others(both: Town) -> None:
    """TVM #12824: one failing section failed the whole comment."""
    on_main(both, ALL_PASS)
    pull = await opened(both)
    both.github.faults.add("GET", FILE.removeprefix("GET "), status=403, message="Not accessible", times=1)
    ran(both, pull.head_sha, {"tests-cpu": junit(add="passed 1", mul="passed 2000")})
    await both.quiet()
    assert sections(pull)["skipped-tests"].startswith("**Skipped tests:** we could not compare the tests at")
    assert "`tests-cpu`: 686 times as long" in sections(pull)["runtime"]


async def test_a_longer_runtime_is_reported_until_it_is_normal_again(both: Town) -> None:
    base = on_main(both, {"tests-cpu": junit(add="passed 100")})
    pull = await opened(both)
    ran(both, pull.head_sha, {"tests-cpu": junit(add="passed 100", mul="passed 100")})
    await both.quiet()
    said = sections(pull)["runtime"]
    assert f"**Runtime of tests** at `{pull.head_sha[:7]}`" in said
    assert f"1 → 2 tests), compared with [`{base[:7]}`]" in said
    assert f"Slow new tests:\n- `{MUL}`, " in said
    pull.push()
    ran(both, pull.head_sha, {"tests-cpu": junit(add="passed 100", mul="passed 1")})
    await both.quiet()
    assert list(sections(pull)) == ["skipped-tests"]


# Requests


async def test_a_run_is_read_once_and_reported_in_one_write(here: Town) -> None:
    on_main(here, ALL_PASS)
    pull = await opened(here)
    ran(here, pull.head_sha, ADD_SKIPPED)
    assert await cost(here) == BOTH_READ | {FILE: 1} | WRITTEN
    pull.push()
    assert await cost(here) == EDITED
    # The base was read before.
    ran(here, pull.head_sha, ALL_PASS)
    assert await cost(here) == HEAD_READ | {COMPARE: 1, RUNS: 1, FILE: 1} | EDITED


async def test_an_older_base_costs_one_listing_of_the_commits(here: Town) -> None:
    on_main(here, ALL_PASS)
    for _ in range(20):
        here.repo.push("main", by="octocat")
    pull = await opened(here)
    ran(here, pull.head_sha, ADD_SKIPPED)
    assert await cost(here) == BOTH_READ | {RUNS: 2, ANCESTORS: 1, FILE: 1} | WRITTEN


async def test_two_sections_read_a_run_only_once(both: Town) -> None:
    on_main(both, ALL_PASS)
    pull = await opened(both)
    ran(both, pull.head_sha, {"tests-cpu": junit(add="skipped", mul="passed 2000")})
    made = await cost(both)
    assert list(sections(pull)) in (["skipped-tests", "runtime"], ["runtime", "skipped-tests"])
    assert (made[LIST], made[ZIP], made[TREE]) == (2, 2, 2)
    assert made == {**made, COMPARE: 2, RUNS: 2, FILE: 1, COMMENTS: 2, COMMENT: 1, EDIT: 1}


async def test_runs_that_contain_no_tests_cost_nothing(here: Town) -> None:
    """Other workflows, runs that have only started, those of branches, and those in which no test ran."""
    pull = await opened(here)
    here.repo.add_workflow_run(pull.head_sha, "Lint", "failure")
    here.repo.add_workflow_run(pull.head_sha, "CI", "cancelled")
    here.repo.add_workflow_run(pull.head_sha, "CI", "skipped")
    here.repo.add_workflow_run(pull.head_sha, "CI")
    on_main(here, ALL_PASS)
    assert await cost(here) == {}
    assert pull.comments == []


async def test_an_artifact_that_is_too_expensive_is_reported_with_the_limit(here: Town) -> None:
    on_main(here, ALL_PASS)
    pull = await opened(here)
    pool = here.bot.services.part(POOL)
    pool.limits = replace(pool.limits, artifact=replace(pool.limits.artifact, wall=1e-6))
    ran(here, pull.head_sha, ADD_SKIPPED)
    await here.quiet()
    reason = "cannot be read: `reading one artifact took longer than 1e-06 seconds, the maximum`."
    assert reason in section(pull)
    assert await here.failures() == []


async def test_a_comparison_that_is_too_expensive_is_reported_with_the_limit(both: Town) -> None:
    """The author of a pull request decides how many tests there are to compare, and their names."""
    on_main(both, ALL_PASS)
    pull = await opened(both)
    pool = both.bot.services.part(POOL)
    pool.limits = replace(pool.limits, tests=replace(pool.limits.tests, wall=1e-6))
    ran(both, pull.head_sha, ADD_SKIPPED)
    await both.quiet()
    limit = ": comparing the tests of one commit took longer than 1e-06 seconds, the maximum"
    assert sections(pull).keys() == {"skipped-tests", "runtime"}
    assert all(limit in said for said in sections(pull).values()), sections(pull)
