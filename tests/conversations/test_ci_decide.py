"""`nightjar ci decide` as a CI step runs it: a separate process that asks a running bot or GitHub."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import PullRequest
from tests.conversations.test_requests import PULL, SETTINGS, STATUSES
from tests.conversations.test_skip_ci import CODE, DOCS, FILES, SKIP
from tests.conversations.town import Town, town
from tests.running import ROOT, Finished, environment, run

EVERYTHING = "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=true\n"
OWN_FILE = 'skip_ci: {globs: ["*.md"]}\nrebuild_docker:\n'
READS = {"contents": "read", "pull_requests": "read", "statuses": "read"}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    """A town where CI may be skipped."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=SKIP) as place:
        yield place


def token(here: Town) -> str:
    """Return a token like that of a workflow of the repository, with read access only."""
    installed = here.github.create_app("workflows", permissions=READS).install(here.repo)
    narrowed = ("repositories", "permissions")
    return here.github.tokens.issue(installed, [here.repo], READS, narrowed).value


async def decide(folder: Path, pull: PullRequest | None, *more: str, **env: str) -> Finished:
    """Run the command; it must not fail, and must write only comments to standard error."""
    number = str(pull.number) if pull else ""
    asked = ["ci", "decide", "--pr", number, "--repo", "octocat/compiler", *more]
    finished = await run(*asked, env=env, cwd=folder)
    assert finished.status == 0, finished
    assert all(line.startswith("# ") for line in finished.err.splitlines()), finished.err
    return finished


async def asked_of_bot(here: Town, folder: Path, pull: PullRequest, *more: str, **env: str) -> Finished:
    await here.quiet()
    return await decide(folder, pull, *more, NIGHTJAR_URL=here.url, **env)


async def asked_of_github(here: Town, folder: Path, pull: PullRequest, *more: str, **env: str) -> Any:
    here.github.requests.clear()
    given = {"GITHUB_TOKEN": token(here), "GITHUB_API_URL": here.github.url, **env}
    finished = await decide(folder, pull, "--format", "json", *more, **given)
    assert given["GITHUB_TOKEN"] not in finished.out + finished.err
    return json.loads(finished.out)


def requests(here: Town) -> list[str]:
    return [f"{r.method} {r.route}" for r in here.github.requests.of_installation]


async def test_a_ci_step_asks_the_bot(here: Town, tmp_path: Path) -> None:
    docs = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    decided = await asked_of_bot(here, tmp_path, docs)
    assert decided.out == "SKIP_CI=true\nDOCS_ONLY=true\nSKIP_SLOW_TESTS=true\nREBUILD_DOCKER=false\n"
    assert f"# skip_ci=true: {DOCS}" in decided.err.splitlines()
    answer = json.loads((await asked_of_bot(here, tmp_path, docs, "--json")).out)
    path = f"/api/v1/repos/octocat/compiler/pulls/{docs.number}/decision"
    assert answer == (await here.ask(path))[2]
    docs.push({"src/codegen.cc": "x"})
    docs.comment("hubot", "@ci run slow tests")
    decided = await asked_of_bot(here, tmp_path, docs, "--sha", docs.head_sha)
    assert decided.out == "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=false\n"


async def in_a_shell(script: str, folder: Path, **env: str) -> tuple[int, str]:
    """Run a script as a CI does; returns its exit status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-ec", script), cwd=folder, env=environment(env), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_the_commands_of_the_guide_work_and_a_command_that_cannot_start_is_noticed(
    here: Town, tmp_path: Path
) -> None:
    """TVM #10457: its script could not be executed, and CI took that for an answer."""
    shown = re.search(r"```sh\n(decided=.*?)```", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    lines = shown[1].replace("https://ci.example.org", here.url) + 'echo "$SKIP_CI $SKIP_SLOW_TESTS $REBUILD_DOCKER"'
    pull = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await here.quiet()
    given = {"PR": str(pull.number), "SHA": pull.head_sha}
    command = f'nightjar() {{ "{sys.executable}" -m bot "$@"; }}\n'
    assert await in_a_shell(command + lines, tmp_path, **given) == (0, "true true false\n")
    (tmp_path / "nightjar").write_text("#!/bin/sh\n")  # not executable
    status, out = await in_a_shell(lines, tmp_path, PATH=str(tmp_path), **given)
    assert status in (126, 127)  # shells differ in this
    assert out == ""


async def test_a_workflow_step_gets_outputs(here: Town, tmp_path: Path) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    output = tmp_path / "output"
    output.write_text("before=1\n")
    lines = f"run_slow_tests=false\nskip_ci=true\ndocs_only=true\nrebuild_docker=false\nsha={pull.head_sha}\n"
    decided = await asked_of_bot(here, tmp_path, pull, "--format", "github", GITHUB_OUTPUT=str(output))
    assert (decided.out, output.read_text()) == ("", f"before=1\n{lines}")
    assert (await asked_of_bot(here, tmp_path, pull, "--format", "github")).out == lines
    nowhere = str(tmp_path / "no" / "output")
    decided = await asked_of_bot(here, tmp_path, pull, "--format", "github", GITHUB_OUTPUT=nowhere)
    assert decided.out == lines
    assert "could not append the values to GITHUB_OUTPUT" in decided.err


async def test_a_file_name_with_shell_syntax_is_escaped(here: Town, tmp_path: Path) -> None:
    pull = here.repo.open_pull_request("reader", "$(touch broken)", fork=True, files={"$(touch broken);`x`": "x"})
    decided = await asked_of_bot(here, tmp_path, pull)
    assert "# skip_ci=false: CI runs because _(touch broken)__x_ changed." in decided.err.splitlines()


async def test_everything_runs_and_the_reason_is_printed_if_the_bot_is_down_or_does_not_know_the_repository(
    here: Town, tmp_path: Path
) -> None:
    """TVM #10457: for days, an error was taken for an answer."""
    pull = here.repo.open_pull_request("hubot", "[skip ci] Faster")
    away, unknown = await asyncio.gather(
        decide(tmp_path, pull, "--api", "http://127.0.0.1:9/"),
        decide(tmp_path, pull, "--api", here.url, "--repo", "octocat/elsewhere"),
    )
    assert (away.out, unknown.out) == (EVERYTHING, EVERYTHING)
    why = "Fallback: the bot did not answer (no connection to 127.0.0.1:9), so CI runs."
    assert f"# skip_ci=false: {why}" in away.err.splitlines()
    assert "Fallback: the bot answered 401: There is no public repository" in unknown.err


async def test_the_bots_address_may_come_from_app_yaml_and_without_one_everything_runs(
    here: Town, tmp_path: Path
) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await here.quiet()
    decided = await decide(tmp_path, pull)
    assert decided.out == EVERYTHING
    assert "NIGHTJAR_URL" in decided.err
    (tmp_path / "app.yaml").write_text(f"public_url: {here.url}\n{SKIP}")
    finished = await run("ci", "decide", "--pr", str(pull.number), env={}, cwd=tmp_path)
    assert finished.out.startswith("SKIP_CI=true\n")
    (tmp_path / "app.yaml").write_text("repositories: {compiler: }\n")
    decided = await decide(tmp_path, pull)
    assert decided.out == EVERYTHING
    assert "could not read app.yaml (app.yaml:1:16: repositories.compiler: must be" in decided.err


async def test_without_the_bot_github_gets_five_requests(here: Town, tmp_path: Path) -> None:
    here.repo.push("main", {".github/nightjar.yaml": OWN_FILE}, by="octocat")
    docs = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await here.quiet()
    answer = await asked_of_github(here, tmp_path, docs)
    assert answer == {
        "sha": docs.head_sha,
        "run_slow_tests": {
            "value": False,
            "reason": "Off: nobody requested them. To turn on, comment: @ci run slow tests",
        },
        "skip_ci": {"value": True, "reason": DOCS},
        "docs_only": {
            "value": True,
            "reason": "Only the docs are built: only documentation changed (1 file).",
        },
        "rebuild_docker": {
            "value": False,
            "reason": "The images are not rebuilt: none of their files changed.",
        },
    }
    assert requests(here) == [SETTINGS, PULL, FILES, PULL, STATUSES]
    docs.push({"src/codegen.cc": "x", "docker/Dockerfile": "x"})
    docs.comment("hubot", "@ci run slow tests")
    await here.quiet()
    answer = await asked_of_github(here, tmp_path, docs)
    assert answer["skip_ci"] == {"value": False, "reason": "CI runs because docker/Dockerfile changed."}
    assert answer["rebuild_docker"]["value"] is True
    assert answer["run_slow_tests"]["value"] is True


async def test_settings_in_a_pull_requests_own_checkout_are_ignored(here: Town, tmp_path: Path) -> None:
    """Both those on its branch and those in the folder in which CI runs."""
    mine = {".github/nightjar.yaml": 'skip_ci: {globs: ["*"]}\n', "app.yaml": f"public_url: {here.url}\n{SKIP}"}
    pull = here.repo.open_pull_request("reader", "Faster", fork=True, files={**mine, "src/codegen.cc": "x"})
    (tmp_path / ".github").mkdir()
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    answer = await asked_of_github(here, tmp_path, pull)
    assert answer["skip_ci"]["value"] is False
    assert "skip_ci is off in" in answer["skip_ci"]["reason"]
    assert answer["rebuild_docker"]["value"] is True


async def test_without_the_bot_the_named_app_yaml_applies(here: Town, tmp_path: Path) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", files={"src/codegen.cc": "x"})
    (tmp_path / "trusted.yaml").write_text(SKIP)
    answer = await asked_of_github(here, tmp_path, pull, "--config", "trusted.yaml")
    assert answer["skip_ci"] == {"value": False, "reason": CODE}
    (tmp_path / "trusted.yaml").write_text("repositories: {octocat/elsewhere: }\n")
    answer = await asked_of_github(here, tmp_path, pull, "--config", "trusted.yaml")
    assert answer["skip_ci"]["reason"].startswith("Fallback: trusted.yaml does not list octocat/compiler")


async def test_without_the_bot_nothing_is_skipped_that_could_not_be_determined(here: Town, tmp_path: Path) -> None:
    """Each decision stands alone: those that can be made are printed."""
    here.repo.push("main", {".github/nightjar.yaml": OWN_FILE}, by="octocat")
    pull = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await here.quiet()
    other = await asked_of_github(here, tmp_path, pull, "--sha", "d" * 40)
    why = f"Fallback: ddddddd is not the head, which is {pull.head_sha[:7]}, so CI runs."
    assert other["skip_ci"] == {"value": False, "reason": why}
    here.github.faults.add("GET", FILES.removeprefix("GET "), status=403, message="Forbidden", times=None)
    unlisted = await asked_of_github(here, tmp_path, pull)
    assert unlisted["skip_ci"]["reason"] == "Fallback: the token lacks a permission that this needs, so CI runs."
    assert (unlisted["run_slow_tests"]["value"], unlisted["rebuild_docker"]["value"]) == (False, True)
    here.github.faults.clear()
    here.github.faults.add("GET", STATUSES.removeprefix("GET "), status=502, times=None)
    blind = await asked_of_github(here, tmp_path, pull)
    assert blind["run_slow_tests"]["reason"].startswith("Fallback: ")
    assert (blind["run_slow_tests"]["value"], blind["skip_ci"]["value"]) == (True, True)


async def test_slow_tests_run_if_the_bot_has_not_posted_a_status_yet(here: Town, tmp_path: Path) -> None:
    here.github.webhooks.hold()
    pull = here.repo.open_pull_request("hubot", "Faster")
    answer = await asked_of_github(here, tmp_path, pull)
    why = f"Fallback: there is no status ci/slow-tests on {pull.head_sha[:7]} yet, so the slow tests run."
    assert answer["run_slow_tests"] == {"value": True, "reason": why}


async def test_without_the_bot_and_github_everything_runs(here: Town, tmp_path: Path) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    given: dict[str, dict[str, str]] = {
        "GitHub does not accept the token": {"GITHUB_TOKEN": "ghs_not_one_of_ours"},
        "GitHub did not answer": {"GITHUB_API_URL": "http://127.0.0.1:9"},
        "GITHUB_API_URL must start with https://": {"GITHUB_API_URL": "http://ghe.example.org/api/v3"},
    }
    answers = await asyncio.gather(*(asked_of_github(here, tmp_path, pull, **env) for env in given.values()))
    for why, answer in zip(given, answers, strict=True):
        values = {name: answer[name]["value"] for name in ("run_slow_tests", "skip_ci", "rebuild_docker")}
        assert values == {"run_slow_tests": True, "skip_ci": False, "rebuild_docker": True}
        assert all(answer[name]["reason"].startswith(f"Fallback: {why}") for name in values)


async def test_invalid_settings_and_missing_pull_requests_run_everything(here: Town, tmp_path: Path) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    given = {"GITHUB_TOKEN": token(here), "GITHUB_API_URL": here.github.url}
    finished = await run(*("ci", "decide", "--pr", "4711", "--repo", "octocat/compiler"), env=given, cwd=tmp_path)
    assert (finished.status, finished.out) == (0, EVERYTHING)
    assert "GitHub shows no such pull request to this token" in finished.err
    here.repo.push("main", {".github/nightjar.yaml": "skip_ci: {globs: x}\n"}, by="octocat")
    answer = await asked_of_github(here, tmp_path, pull)
    why = "Fallback: .github/nightjar.yaml on the default branch has errors, so CI runs."
    assert answer["skip_ci"] == {"value": False, "reason": why}
