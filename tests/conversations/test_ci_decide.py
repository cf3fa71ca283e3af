"""`nightjar ci decide` as a CI step runs it: a separate process that asks a running bot or GitHub."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sandbox import PullRequest
from tests.conversations.test_requests import PULL, SETTINGS, STATUSES
from tests.conversations.test_skip_ci import CODE, DOCS, FILES, SKIP
from tests.conversations.town import Town
from tests.conversations.town import town as start_town
from tests.running import ROOT, Finished, environment, finished, run

EVERYTHING = "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=true\nNIGHTJAR_LEVEL=main\n"
OWN_FILE = 'skip_ci: {globs: ["*.md"]}\nrebuild_docker:\n'
READS = {"contents": "read", "pull_requests": "read", "statuses": "read"}


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A town where CI may be skipped."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=SKIP) as town:
        yield town


def token(town: Town) -> str:
    """Return a token like that of a workflow of the repository, with read access only."""
    installed = town.github.create_app("workflows", permissions=READS).install(town.repo)
    narrowed = ("repositories", "permissions")
    return town.github.tokens.issue(installed, [town.repo], READS, narrowed).value


async def decide(folder: Path, pull: PullRequest | None, *options: str, **env: str) -> Finished:
    """Run the command; it must not fail, and must write only comments to standard error."""
    number = str(pull.number) if pull else ""
    arguments = ["ci", "decide", "--pr", number, "--repo", "octocat/compiler", *options]
    finished = await run(*arguments, env=env, cwd=folder)
    assert finished.status == 0, finished
    assert all(line.startswith("# ") for line in finished.err.splitlines()), finished.err
    return finished


async def ask_bot(town: Town, folder: Path, pull: PullRequest, *options: str, **env: str) -> Finished:
    await town.quiet()
    return await decide(folder, pull, *options, NIGHTJAR_URL=town.url, **env)


async def ask_github(town: Town, folder: Path, pull: PullRequest, *options: str, **env: str) -> Any:
    town.github.requests.clear()
    variables = {"GITHUB_TOKEN": token(town), "GITHUB_API_URL": town.github.url, **env}
    finished = await decide(folder, pull, "--format", "json", *options, **variables)
    assert variables["GITHUB_TOKEN"] not in finished.out + finished.err
    return json.loads(finished.out)


def requests(town: Town) -> list[str]:
    return [f"{r.method} {r.route}" for r in town.github.requests.of_installation]


async def test_a_ci_step_asks_the_bot(town: Town, tmp_path: Path) -> None:
    docs = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    decided = await ask_bot(town, tmp_path, docs)
    assert (
        decided.out
        == "SKIP_CI=true\nDOCS_ONLY=true\nSKIP_SLOW_TESTS=true\nREBUILD_DOCKER=false\nNIGHTJAR_LEVEL=pull-request\n"
    )
    assert f"# skip_ci=true: {DOCS}" in decided.err.splitlines()
    answer = json.loads((await ask_bot(town, tmp_path, docs, "--json")).out)
    path = f"/api/v1/repos/octocat/compiler/pulls/{docs.number}/decision"
    assert answer == (await town.ask(path))[2]
    docs.push({"src/codegen.cc": "x"})
    docs.comment("hubot", "@ci run slow tests")
    decided = await ask_bot(town, tmp_path, docs, "--sha", docs.head_sha)
    assert (
        decided.out
        == "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=false\nNIGHTJAR_LEVEL=main\n"
    )


KIT_ALONE = """
import sys
for name in ("aiohttp", "bot", "gidgethub", "handlers", "pydantic", "sqlalchemy", "yarl"):
    sys.modules[name] = None
from nightjar_lab.main import main
main(sys.argv[1:])
"""


async def test_the_kit_gets_the_answer_of_the_server_without_its_packages(town: Town, tmp_path: Path) -> None:
    docs = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    words = ("ci", "decide", "--pr", str(docs.number), "--repo", "octocat/compiler", "--sha", docs.head_sha)
    await town.quiet()
    for form in ("env", "json", "github"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", KIT_ALONE, *words, "--format", form),
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT / "lab"), "NIGHTJAR_URL": town.url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        kit = await finished(process)
        server = await ask_bot(town, tmp_path, docs, "--sha", docs.head_sha, "--format", form)
        assert (kit.status, kit.out, kit.err) == (0, server.out, server.err)


async def in_a_shell(script: str, folder: Path, **env: str) -> tuple[int, str]:
    """Run a script as a CI does; returns its exit status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-ec", script), cwd=folder, env=environment(env), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_the_action_asks_the_bot_for_a_workflow(town: Town, tmp_path: Path) -> None:
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
    [step] = [step for step in action["runs"]["steps"] if step.get("id") == "decide"]
    docs = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await town.quiet()
    command = tmp_path / "nightjar-lab/bin/nightjar-lab"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nightjar_lab "$@"\n')
    command.chmod(0o755)
    variables = {
        "NIGHTJAR_PULL_REQUEST": str(docs.number),
        "NIGHTJAR_BRANCH": "",
        "NIGHTJAR_SHA": docs.head_sha,
        "NIGHTJAR_REPOSITORY": "octocat/compiler",
        "NIGHTJAR_URL": town.url,
        "NIGHTJAR_TOKEN": "",
    }
    assert set(step["env"]) == set(variables)
    output = tmp_path / "output"
    runner = {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(output), "PYTHONPATH": str(ROOT / "lab")}
    assert await in_a_shell(step["run"], tmp_path, **runner, **variables) == (0, "")
    outputs = dict(line.split("=") for line in output.read_text().splitlines())
    assert outputs == {
        "sha": docs.head_sha,
        "level": "pull-request",
        "skip_ci": "true",
        "docs_only": "true",
        "run_slow_tests": "false",
        "rebuild_docker": "false",
    }
    values = {name: settings["value"] for name, settings in action["outputs"].items() if name in outputs}
    assert values == {name: f"${{{{ steps.decide.outputs.{name} }}}}" for name in outputs}


def test_the_workflow_of_the_guide_has_inputs_and_outputs_of_the_action() -> None:
    action = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "uses: OWNER/REPO" in block)
    question = YAML(typ="safe").load(example)[0]
    assert question["with"]["decide"] is True
    assert set(question["with"]) <= set(action["inputs"])
    read = re.findall(rf"steps\.{question['id']}\.outputs\.(\w+)", example)
    assert read
    assert set(read) <= set(action["outputs"])


async def test_the_commands_of_the_guide_work_and_a_command_that_cannot_start_is_noticed(
    town: Town, tmp_path: Path
) -> None:
    """TVM #10457: its script could not be executed, and CI took that for an answer."""
    example = re.search(r"```sh\n(decided=.*?)```", (ROOT / "docs/ci.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    lines = example[1].replace("https://ci.example.org", town.url) + 'echo "$SKIP_CI $SKIP_SLOW_TESTS $REBUILD_DOCKER"'
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await town.quiet()
    variables = {"PR": str(pull.number), "SHA": pull.head_sha}
    command = tmp_path / "nightjar-lab"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nightjar_lab "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert await in_a_shell(lines, tmp_path, PATH=path, **variables) == (0, "true true false\n")
    command.chmod(0o644)  # not executable
    status, output = await in_a_shell(lines, tmp_path, PATH=str(tmp_path), **variables)
    assert status in (126, 127)  # shells differ in this
    assert output == ""


async def test_a_workflow_step_gets_outputs(town: Town, tmp_path: Path) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    output = tmp_path / "output"
    output.write_text("before=1\n")
    lines = (
        f"run_slow_tests=false\nskip_ci=true\ndocs_only=true\n"
        f"rebuild_docker=false\nlevel=pull-request\nsha={pull.head_sha}\n"
    )
    decided = await ask_bot(town, tmp_path, pull, "--format", "github", GITHUB_OUTPUT=str(output))
    assert (decided.out, output.read_text()) == ("", f"before=1\n{lines}")
    assert (await ask_bot(town, tmp_path, pull, "--format", "github")).out == lines
    nowhere = str(tmp_path / "no" / "output")
    decided = await ask_bot(town, tmp_path, pull, "--format", "github", GITHUB_OUTPUT=nowhere)
    assert decided.out == lines
    assert "could not append the values to GITHUB_OUTPUT" in decided.err


async def test_a_file_name_with_shell_syntax_is_escaped(town: Town, tmp_path: Path) -> None:
    pull = town.repo.open_pull_request("reader", "$(touch broken)", fork=True, files={"$(touch broken);`x`": "x"})
    decided = await ask_bot(town, tmp_path, pull)
    assert "# skip_ci=false: CI runs because _(touch broken)__x_ changed." in decided.err.splitlines()


async def test_everything_runs_and_the_reason_is_printed_if_the_bot_is_down_or_does_not_know_the_repository(
    town: Town, tmp_path: Path
) -> None:
    """TVM #10457: for days, an error was taken for an answer."""
    pull = town.repo.open_pull_request("hubot", "[skip ci] Faster")
    away, unknown = await asyncio.gather(
        decide(tmp_path, pull, "--api", "http://127.0.0.1:9/"),
        decide(tmp_path, pull, "--api", town.url, "--repo", "octocat/elsewhere"),
    )
    assert (away.out, unknown.out) == (EVERYTHING, EVERYTHING)
    reason = "Fallback: the bot did not answer (no connection to 127.0.0.1:9), so CI runs."
    assert f"# skip_ci=false: {reason}" in away.err.splitlines()
    assert "Fallback: the bot answered 401: There is no public repository" in unknown.err


async def test_the_bots_address_may_come_from_app_yaml_and_without_one_everything_runs(
    town: Town, tmp_path: Path
) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await town.quiet()
    decided = await decide(tmp_path, pull)
    assert decided.out == EVERYTHING
    assert "NIGHTJAR_URL" in decided.err
    (tmp_path / "app.yaml").write_text(f"public_url: {town.url}\n{SKIP}")
    finished = await run("ci", "decide", "--pr", str(pull.number), env={}, cwd=tmp_path)
    assert finished.out.startswith("SKIP_CI=true\n")
    (tmp_path / "app.yaml").write_text("repositories: {compiler: }\n")
    decided = await decide(tmp_path, pull)
    assert decided.out == EVERYTHING
    assert "could not read app.yaml (app.yaml:1:16: repositories.compiler: must be" in decided.err


async def test_without_the_bot_github_gets_five_requests(town: Town, tmp_path: Path) -> None:
    town.repo.push("main", {".github/nightjar.yaml": OWN_FILE}, by="octocat")
    docs = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await town.quiet()
    answer = await ask_github(town, tmp_path, docs)
    assert answer == {
        "sha": docs.head_sha,
        "level": "pull-request",
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
    assert requests(town) == [SETTINGS, PULL, FILES, PULL, STATUSES]
    docs.push({"src/codegen.cc": "x", "docker/Dockerfile": "x"})
    docs.comment("hubot", "@ci run slow tests")
    await town.quiet()
    answer = await ask_github(town, tmp_path, docs)
    assert answer["skip_ci"] == {"value": False, "reason": "CI runs because docker/Dockerfile changed."}
    assert answer["rebuild_docker"]["value"] is True
    assert answer["run_slow_tests"]["value"] is True


async def test_settings_in_a_pull_requests_own_checkout_are_ignored(town: Town, tmp_path: Path) -> None:
    """Both those on its branch and those in the folder in which CI runs."""
    settings = {".github/nightjar.yaml": 'skip_ci: {globs: ["*"]}\n', "app.yaml": f"public_url: {town.url}\n{SKIP}"}
    pull = town.repo.open_pull_request("reader", "Faster", fork=True, files={**settings, "src/codegen.cc": "x"})
    (tmp_path / ".github").mkdir()
    for name, text in settings.items():
        (tmp_path / name).write_text(text)
    answer = await ask_github(town, tmp_path, pull)
    assert answer["skip_ci"]["value"] is False
    assert "skip_ci is off in" in answer["skip_ci"]["reason"]
    assert answer["rebuild_docker"]["value"] is True


async def test_without_the_bot_the_named_app_yaml_applies(town: Town, tmp_path: Path) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"src/codegen.cc": "x"})
    (tmp_path / "trusted.yaml").write_text(SKIP)
    answer = await ask_github(town, tmp_path, pull, "--config", "trusted.yaml")
    assert answer["skip_ci"] == {"value": False, "reason": CODE}
    (tmp_path / "trusted.yaml").write_text("repositories: {octocat/elsewhere: }\n")
    answer = await ask_github(town, tmp_path, pull, "--config", "trusted.yaml")
    assert answer["skip_ci"]["reason"].startswith("Fallback: trusted.yaml does not list octocat/compiler")


async def test_without_the_bot_nothing_is_skipped_that_could_not_be_determined(town: Town, tmp_path: Path) -> None:
    """Each decision stands alone: those that can be made are printed."""
    town.repo.push("main", {".github/nightjar.yaml": OWN_FILE}, by="octocat")
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    await town.quiet()
    other_sha_decision = await ask_github(town, tmp_path, pull, "--sha", "d" * 40)
    reason = f"Fallback: ddddddd is not the head, which is {pull.head_sha[:7]}, so CI runs."
    assert other_sha_decision["skip_ci"] == {"value": False, "reason": reason}
    town.github.faults.add("GET", FILES.removeprefix("GET "), status=403, message="Forbidden", times=None)
    unlisted = await ask_github(town, tmp_path, pull)
    assert unlisted["skip_ci"]["reason"] == "Fallback: the token lacks a permission that this needs, so CI runs."
    assert (unlisted["run_slow_tests"]["value"], unlisted["rebuild_docker"]["value"]) == (False, True)
    town.github.faults.clear()
    town.github.faults.add("GET", STATUSES.removeprefix("GET "), status=502, times=None)
    blind = await ask_github(town, tmp_path, pull)
    assert blind["run_slow_tests"]["reason"].startswith("Fallback: ")
    assert (blind["run_slow_tests"]["value"], blind["skip_ci"]["value"]) == (True, True)


async def test_slow_tests_run_if_the_bot_has_not_posted_a_status_yet(town: Town, tmp_path: Path) -> None:
    town.github.webhooks.hold()
    pull = town.repo.open_pull_request("hubot", "Faster")
    answer = await ask_github(town, tmp_path, pull)
    reason = f"Fallback: there is no status ci/slow-tests on {pull.head_sha[:7]} yet, so the slow tests run."
    assert answer["run_slow_tests"] == {"value": True, "reason": reason}


async def test_without_the_bot_and_github_everything_runs(town: Town, tmp_path: Path) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    environments: dict[str, dict[str, str]] = {
        "GitHub does not accept the token": {"GITHUB_TOKEN": "ghs_not_one_of_ours"},
        "GitHub did not answer": {"GITHUB_API_URL": "http://127.0.0.1:9"},
        "GITHUB_API_URL must start with https://": {"GITHUB_API_URL": "http://ghe.example.org/api/v3"},
    }
    answers = await asyncio.gather(*(ask_github(town, tmp_path, pull, **env) for env in environments.values()))
    for reason, answer in zip(environments, answers, strict=True):
        values = {name: answer[name]["value"] for name in ("run_slow_tests", "skip_ci", "rebuild_docker")}
        assert values == {"run_slow_tests": True, "skip_ci": False, "rebuild_docker": True}
        assert all(answer[name]["reason"].startswith(f"Fallback: {reason}") for name in values)


async def test_invalid_settings_and_missing_pull_requests_run_everything(town: Town, tmp_path: Path) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", files={"docs/index.rst": "x"})
    variables = {"GITHUB_TOKEN": token(town), "GITHUB_API_URL": town.github.url}
    finished = await run(*("ci", "decide", "--pr", "4711", "--repo", "octocat/compiler"), env=variables, cwd=tmp_path)
    assert (finished.status, finished.out) == (0, EVERYTHING)
    assert "GitHub shows no such pull request to this token" in finished.err
    town.repo.push("main", {".github/nightjar.yaml": "skip_ci: {globs: x}\n"}, by="octocat")
    answer = await ask_github(town, tmp_path, pull)
    reason = "Fallback: .github/nightjar.yaml on the default branch has errors, so CI runs."
    assert answer["skip_ci"] == {"value": False, "reason": reason}
