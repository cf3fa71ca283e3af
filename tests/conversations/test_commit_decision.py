"""CI's decisions for a commit of a branch, over HTTP, and by `nightjar ci decide` with and without the bot."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.test_ci_decide import EVERYTHING, OWN_FILE, token
from tests.conversations.test_requests import REPO
from tests.conversations.test_skip_ci import CODE, DOCS, SKIP
from tests.conversations.town import Town
from tests.conversations.town import town as start_town
from tests.running import Finished, run

COMMIT = f"GET {REPO}/git/commits/{{commit_sha}}"
ACTIVITY = f"GET {REPO}/activity"
COMPARE = f"GET {REPO}/compare/{{basehead}}"
ON = {"value": True, "reason": "On: only a pull request can turn slow tests off, and this is a commit of a branch."}
NO_IMAGE = "The images are not rebuilt: none of their files changed."


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A town where CI may be skipped."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=SKIP) as town:
        yield town


async def decision(town: Town, sha: str, branch: str = "main") -> Mapping[str, Any]:
    """Return the decision that CI gets for a commit."""
    await town.quiet()
    query = f"?branch={branch}" if branch else ""
    status, kind, answer = await town.ask(f"/api/v1/repos/octocat/compiler/commits/{sha}/decision{query}")
    assert (status, kind, answer["sha"]) == (200, "application/json", sha)
    return dict(answer)


def requests(town: Town) -> list[str]:
    """Return the bot's requests to GitHub about commits since the previous call."""
    routes = [f"{r.method} {r.route}" for r in town.github.requests.records]
    town.github.requests.clear()
    return [route for route in routes if route in (COMMIT, ACTIVITY, COMPARE)]


def runs_everything(answer: Mapping[str, Any], reason: str) -> None:
    """Fail unless everything runs, with a reason."""
    assert answer["skip_ci"] == {"value": False, "reason": f"Fallback: {reason}, so CI runs."}
    assert answer["docs_only"] == {"value": False, "reason": f"Fallback: {reason}, so everything is built."}
    assert answer["rebuild_docker"] == {"value": True, "reason": f"Fallback: {reason}, so the images are built."}
    assert answer["run_slow_tests"]["value"] is True


async def test_a_commit_is_compared_with_its_parent(town: Town) -> None:
    code = town.repo.push("main", {"src/codegen.cc": "x"}, by="octocat")
    image = town.repo.push("main", {"docker/Dockerfile": "x"}, by="octocat")
    docs = town.repo.push("main", {"docs/index.rst": "x"}, by="octocat")
    assert await decision(town, code.sha) == {
        "sha": code.sha,
        "level": "main",
        "run_slow_tests": ON,
        "skip_ci": {"value": False, "reason": CODE},
        "docs_only": {
            "value": False,
            "reason": "Everything is built because src/codegen.cc changed, which is not documentation.",
        },
        "rebuild_docker": {"value": False, "reason": NO_IMAGE},
    }
    answer = await decision(town, image.sha)
    assert answer["rebuild_docker"] == {
        "value": True,
        "reason": "The images are built because docker/Dockerfile changed.",
    }
    answer = await decision(town, docs.sha, branch="")
    assert answer["skip_ci"] == {"value": True, "reason": DOCS}
    assert (answer["docs_only"]["value"], answer["rebuild_docker"]["value"]) == (True, False)


async def test_a_merge_commit_is_compared_with_its_first_parent(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    town.repo.push("main", {"docker/Dockerfile": "x", "src/codegen.cc": "x"}, by="octocat")
    merged = pull.merge("octocat")
    assert len(town.repo.git.commits[merged].parents) == 2
    answer = await decision(town, merged)
    assert answer["skip_ci"] == {"value": True, "reason": DOCS}
    assert answer["rebuild_docker"] == {"value": False, "reason": NO_IMAGE}


async def test_the_message_of_a_commit_does_not_skip_ci(town: Town) -> None:
    """TVM #10537: only titles of pull requests do."""
    pushed = town.repo.push("main", {"src/codegen.cc": "x"}, by="octocat", message="[skip ci] Fix it")
    assert (await decision(town, pushed.sha))["skip_ci"] == {"value": False, "reason": CODE}


async def test_a_forced_push_runs_everything(town: Town) -> None:
    """CI compares with the commit that it built before, which is no longer on the branch."""
    first = town.repo.push("main", {"docs/a.rst": "x"}, by="octocat")
    second = town.repo.push("main", {"docker/Dockerfile": "x"}, by="octocat")
    forced = town.repo.push("main", {"docs/b.rst": "x"}, by="octocat", onto=first.sha)
    reason = f"the branch was at {second.sha[:7]} before the push of {forced.sha[:7]}, whose parent is {first.sha[:7]}"
    runs_everything(await decision(town, forced.sha), reason)
    runs_everything(await decision(town, forced.sha, branch=""), reason)
    # The bot knows of no such push to another branch.
    assert (await decision(town, forced.sha, branch="release/1.0"))["skip_ci"]["value"] is True


async def test_a_push_of_several_commits_runs_everything_for_the_last_one(town: Town) -> None:
    """A CI that builds only the tip would miss what the earlier commits change."""
    start = town.repo.branch("main")
    town.repo.push("side", {"docker/Dockerfile": "x"}, by="octocat")
    inner = town.repo.branch("side")
    tip = town.repo.push("side", {"docs/a.rst": "x"}, by="octocat")
    town.repo.move("refs/heads/main", tip.sha, "octocat")
    reason = f"the branch was at {start[:7]} before the push of {tip.sha[:7]}, whose parent is {inner[:7]}"
    runs_everything(await decision(town, tip.sha), reason)
    assert (await decision(town, tip.sha, branch="side"))["skip_ci"]["value"] is True


async def test_a_commit_without_a_parent_runs_everything(town: Town) -> None:
    octocat, clock = town.github.user("octocat"), town.github.clock
    root = town.repo.git.commit((), {"docs/a.rst": "x"}, "Begin", octocat, clock.now())
    town.repo.move("refs/heads/other", root.sha, "octocat")
    runs_everything(await decision(town, root.sha, branch="other"), f"{root.sha[:7]} has no parent to compare it with")


@pytest.mark.parametrize(("count", "skipped"), [(299, True), (300, False)])
async def test_a_comparison_with_more_files_than_github_lists_runs_everything(
    town: Town, count: int, skipped: bool
) -> None:
    pushed = town.repo.push("main", {f"docs/{n}.rst": "x" for n in range(count)}, by="octocat")
    answer = await decision(town, pushed.sha)
    assert answer["skip_ci"]["value"] is skipped
    if not skipped:
        runs_everything(answer, "GitHub shows at most 300 changed files of a commit, and there may be more")


async def test_a_file_moved_out_of_a_relevant_folder_still_counts(town: Town) -> None:
    town.repo.push("main", {"docker/Dockerfile": "FROM x\n"}, by="octocat")
    moved = town.repo.push("main", {"docker/Dockerfile": None, "docs/Dockerfile": "FROM x\n"}, by="octocat")
    answer = await decision(town, moved.sha)
    assert answer["rebuild_docker"]["reason"] == "The images are built because docker/Dockerfile changed."
    assert answer["skip_ci"]["value"] is False


async def test_the_steps_of_a_build_cost_three_requests_together(town: Town) -> None:
    pushed = town.repo.push("main", {"docs/a.rst": "x"}, by="octocat")
    await town.quiet()
    requests(town)
    for _ in range(10):
        await decision(town, pushed.sha)
    assert requests(town) == [COMMIT, ACTIVITY, COMPARE]


async def test_a_missing_commit_is_reported_and_remembered(town: Town) -> None:
    requests(town)
    for _ in range(10):
        status, kind, problem = await town.ask(f"/api/v1/repos/octocat/compiler/commits/{'d' * 40}/decision")
        assert (status, kind) == (404, "application/problem+json")
        assert problem["detail"] == "There is no such commit, or app.yaml does not list the repository."
    assert requests(town) == [COMMIT]


@pytest.mark.parametrize("fails", [COMMIT, ACTIVITY, COMPARE])
async def test_if_github_is_down_everything_runs_and_the_reason_says_so(town: Town, fails: str) -> None:
    pushed = town.repo.push("main", {"docs/a.rst": "x"}, by="octocat")
    await town.quiet()
    town.github.faults.add("GET", fails.removeprefix("GET "), status=502, times=None)
    runs_everything(await decision(town, pushed.sha), "GitHub did not answer about the commit")


async def test_strangers_can_use_a_small_share_of_the_quota_and_then_everything_runs(tmp_path: Path) -> None:
    config = f"http: {{anonymous_percent: 2}}\n{SKIP}"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        # Else GitHub's answers to the startup tell of two limits, in any order.
        await town.started()
        town.github.rate_limits.limit = 500
        await town.ask(f"/api/v1/repos/octocat/compiler/commits/{'d' * 40}/decision")
        requests(town)
        paths = [f"/api/v1/repos/octocat/compiler/commits/{made_up:040x}/decision" for made_up in range(20)]
        answers = [await town.ask(path) for path in paths]
        assert [status for status, _, _ in answers] == [404] * 9 + [200] * 11
        assert requests(town) == [COMMIT] * 9
        runs_everything(answers[-1][2], "GitHub did not answer about the commit")


async def decide(folder: Path, sha: str, *options: str, **env: str) -> Finished:
    """Run the command for a commit of main."""
    arguments = ("ci", "decide", "--branch", "main", "--sha", sha, "--repo", "octocat/compiler")
    finished = await run(*arguments, *options, env=env, cwd=folder)
    assert finished.status == 0, finished
    return finished


async def test_a_ci_step_asks_the_bot_about_a_commit(town: Town, tmp_path: Path) -> None:
    pushed = town.repo.push("main", {"docs/index.rst": "x"}, by="octocat")
    await town.quiet()
    decided = await decide(tmp_path, pushed.sha, NIGHTJAR_URL=town.url)
    assert (
        decided.out
        == "SKIP_CI=true\nDOCS_ONLY=true\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=false\nNIGHTJAR_LEVEL=main\n"
    )
    assert f"# skip_ci=true: {DOCS}" in decided.err.splitlines()
    answer = json.loads((await decide(tmp_path, pushed.sha, "--json", NIGHTJAR_URL=town.url)).out)
    assert answer == await decision(town, pushed.sha)
    unknown = await decide(tmp_path, "d" * 40, NIGHTJAR_URL=town.url)
    assert unknown.out == EVERYTHING
    assert "Fallback: the bot answered 404: There is no such commit" in unknown.err


async def test_one_command_line_serves_builds_of_pull_requests_and_of_branches(town: Town, tmp_path: Path) -> None:
    """Jenkins sets BRANCH_NAME to PR-42 in a build of a pull request."""
    pull = town.repo.open_pull_request("hubot", "Faster", files={"src/codegen.cc": "x"})
    await town.quiet()
    arguments = ("ci", "decide", "--pr", str(pull.number), "--branch", f"PR-{pull.number}", "--sha", pull.head_sha)
    decided = await run(*arguments, "--repo", "octocat/compiler", env={"NIGHTJAR_URL": town.url}, cwd=tmp_path)
    assert (decided.status, decided.out) == (
        0,
        "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=true\nREBUILD_DOCKER=false\nNIGHTJAR_LEVEL=pull-request\n",
    )


async def test_a_branch_with_special_characters_in_its_name_is_asked_about_by_that_name(
    town: Town, tmp_path: Path
) -> None:
    branch = "feature/a&sha=x#1%41é"
    first = town.repo.push(branch, {"docs/a.rst": "x"}, by="octocat")
    forced = town.repo.push(branch, {"docs/b.rst": "x"}, by="octocat", onto=town.repo.branch("main"))
    await town.quiet()
    arguments = ("ci", "decide", "--branch", branch, "--sha", forced.sha, "--repo", "octocat/compiler")
    decided = await run(*arguments, env={"NIGHTJAR_URL": town.url}, cwd=tmp_path)
    assert f"Fallback: the branch was at {first.sha[:7]} before the push" in decided.err


async def test_without_the_bot_the_command_asks_github_about_a_commit(town: Town, tmp_path: Path) -> None:
    town.repo.push("main", {".github/nightjar.yaml": OWN_FILE}, by="octocat")
    docs = town.repo.push("main", {"docs/index.rst": "x"}, by="octocat")
    forced = town.repo.push("main", {"docs/b.rst": "x"}, by="octocat", onto=docs.parents[0])
    await town.quiet()
    variables = {"GITHUB_TOKEN": token(town), "GITHUB_API_URL": town.github.url}
    requests(town)
    answer = json.loads((await decide(tmp_path, docs.sha, "--json", **variables)).out)
    assert requests(town) == [COMMIT, ACTIVITY, COMPARE]
    assert answer["skip_ci"] == {"value": True, "reason": DOCS}
    assert answer["rebuild_docker"] == {"value": False, "reason": NO_IMAGE}
    answer = json.loads((await decide(tmp_path, forced.sha, "--json", **variables)).out)
    assert answer["rebuild_docker"]["reason"].startswith(f"Fallback: the branch was at {docs.sha[:7]} before")
    unknown = await decide(tmp_path, "d" * 40, **variables)
    assert unknown.out == EVERYTHING
    assert "GitHub shows no such commit to this token" in unknown.err
