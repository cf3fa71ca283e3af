"""`nightjar ci local`: the decision for a checkout, and how a step runs. Git and the steps are real programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.cli.checkout import read_checkout
from bot.cli.ci_local import LocalStep
from bot.core.errors import UserError
from handlers.changed_files.changes import ChangedFiles, UnknownChanges
from sandbox.registry import RegistrySandbox
from tests.running import Finished, run

OWN_FILE = """\
skip_ci: {globs: ["*.md"]}
rebuild_docker:
ci:
  steps:
    variables: 'env | grep -E "^(SKIP|DOCS|REBUILD|NIGHTJAR)_" | sort'
    folder: pwd
    fails: exit 7
    killed: kill -TERM $$
"""
IMAGES = "[jenkins]\nci_cpu: tlcpack/ci-cpu:1\n"
IMAGE_FILE = "ci/jenkins/docker-images.ini"
APP = """\
repositories:
  octocat/compiler:
    docker_update: {{registry: "{url}"}}
    ci: {{steps: {{unit: "echo tested; env", lint: "true"}}, images: {{unit: ci_cpu}}}}
"""
DOCKER = """\
#!/bin/sh
printf '%s\\n' "$@" > "{folder}/arguments"
while [ "$1" != sh ]; do shift; done
exec "$@"
"""
GIT = ("-c", "user.name=octocat", "-c", "user.email=octocat@example.org")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *GIT, *arguments], cwd=folder, check=True, capture_output=True)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def commit(folder: Path, files: dict[str, str]) -> None:
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "Faster")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a clone of a project, with a branch of its own."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init", "--initial-branch", "main")
    commit(origin, {".github/nightjar.yaml": OWN_FILE, IMAGE_FILE: IMAGES, "src/a.cc": "int a;\n", ".gitignore": "*.o"})
    git(tmp_path, "clone", str(origin), str(clone))
    git(clone, "switch", "--create", "faster")
    return clone


def tools(folder: Path, *, docker: bool = False) -> dict[str, str]:
    """Return the environment of a machine that has git and a shell, and a Docker that runs commands without an image.

    It keeps the arguments that it gets in the file `arguments`.
    """
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in ("git", "sh", "env", "grep", "sort"):
        program = shutil.which(name)
        assert program is not None
        (bin_folder / name).symlink_to(program)
    if docker:
        (bin_folder / "docker").write_text(DOCKER.format(folder=folder))
        (bin_folder / "docker").chmod(0o755)
    return {"PATH": str(bin_folder)}


async def local(folder: Path, *arguments: str, **env: str) -> Finished:
    return await run("ci", "local", *arguments, env=env, cwd=folder)


async def test_a_step_gets_the_variables_of_the_decision(project: Path) -> None:
    write(project, {"docs/index.rst": "x"})
    ended = await local(project, "variables")
    assert ended.status == 0, ended.err
    assert (
        ended.out
        == "DOCS_ONLY=true\nNIGHTJAR_LEVEL=pull-request\nREBUILD_DOCKER=false\nSKIP_CI=true\nSKIP_SLOW_TESTS=true\n"
    )
    assert "CI is skipped: only documentation changed (1 file)." in ended.err
    commit(project, {"src/b.cc": "int b;\n"})
    ended = await local(project, "variables", "--slow-tests")
    assert (
        ended.out
        == "DOCS_ONLY=false\nNIGHTJAR_LEVEL=main\nREBUILD_DOCKER=false\nSKIP_CI=false\nSKIP_SLOW_TESTS=false\n"
    )
    assert "CI runs because src/b.cc changed." in ended.err
    assert "On: requested with --slow-tests." in ended.err


async def test_without_a_step_all_steps_are_listed_with_the_reasons(project: Path) -> None:
    write(project, {"docker/Dockerfile": "FROM scratch\n"})
    ended = await local(project)
    assert (ended.status, ended.err) == (0, "")
    title, variables, steps = ended.out.split("\n\n")
    assert title.startswith("faster at ")
    assert title.endswith(", compared with origin/HEAD:")
    assert "REBUILD_DOCKER   true          The images are built because docker/Dockerfile changed." in variables
    assert "SKIP_SLOW_TESTS  true          Off: nobody requested them. To turn on, use --slow-tests." in variables
    assert "fails      this machine  exit 7" in steps.splitlines()


@pytest.mark.parametrize(("step", "status"), [("fails", 7), ("killed", 143), ("folder", 0)])
async def test_the_exit_status_is_that_of_the_step(project: Path, step: str, status: int) -> None:
    ended = await local(project / "src", step)
    assert ended.status == status
    assert ended.out == (f"{project}\n" if step == "folder" else "")


async def test_a_dry_run_runs_nothing(project: Path) -> None:
    ended = await local(project, "fails", "--dry-run")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.endswith("\n\nsh -c 'exit 7'\n")
    answer = json.loads((await local(project, "fails", "--dry-run", "--json")).out)
    assert (answer["status"], answer["base"]) == (None, "origin/HEAD")
    assert [step["arguments"] for step in answer["steps"]] == [["sh", "-c", "exit 7"]]


async def test_json_is_all_of_standard_output(project: Path) -> None:
    ended = await local(project, "folder", "--json")
    assert f"{project}\n" in ended.err
    answer = json.loads(ended.out)
    assert answer["status"] == 0
    assert answer["variables"] == {
        "SKIP_CI": "false",
        "DOCS_ONLY": "false",
        "SKIP_SLOW_TESTS": "true",
        "REBUILD_DOCKER": "false",
        "NIGHTJAR_LEVEL": "pull-request",
    }
    assert answer["decision"]["skip_ci"] == {"value": False, "reason": "CI runs: no file changed."}
    ended = await local(project, "fails", "--json")
    assert (ended.status, json.loads(ended.out)["status"]) == (7, 7)


SECRETS = {
    "GITHUB_PRIVATE_KEY": "sesame",
    "GITHUB_PRIVATE_KEY_FILE": "sesame",
    "GITHUB_WEBHOOK_SECRET": "sesame",
    "GITHUB_WEBHOOK_SECRET_FILE": "sesame",
    "GITHUB_CLIENT_SECRET": "sesame",
    "SESSION_SECRET": "sesame",
    "DATABASE_URL": "postgresql://bot:sesame@db/bot",
    "JENKINS_TOKEN": "sesame",
    "DISCORD_WEBHOOK_URL": "https://discord.com/sesame",
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/sesame",
    "AWS_SECRET_ACCESS_KEY": "sesame",
    "AWS_SESSION_TOKEN": "sesame",
    "NIGHTJAR_TOKEN": "sesame",
    "NIGHTJAR_LAB_TOKEN": "sesame",
}


@pytest.fixture
async def hub() -> AsyncIterator[RegistrySandbox]:
    sandbox = RegistrySandbox()
    async with sandbox.serve():
        yield sandbox


def app_yaml(project: Path, folder: Path, hub: RegistrySandbox) -> str:
    """Return an app.yaml with all settings of the project, which has no file of its own."""
    (project / ".github/nightjar.yaml").unlink()
    write(folder, {"app.yaml": APP.format(url=hub.url)})
    return str(folder / "app.yaml")


@pytest.mark.parametrize("docker", [False, True])
async def test_a_step_gets_no_secrets(project: Path, tmp_path: Path, hub: RegistrySandbox, docker: bool) -> None:
    hub.push("tlcpack/ci-cpu", "1")
    options = ("--config", app_yaml(project, tmp_path, hub))
    ended = await local(project, "unit", *options, HOSTNAME="mine", **SECRETS, **tools(tmp_path, docker=docker))
    assert ended.status == 0, ended.err
    assert "HOSTNAME=mine" in ended.out.splitlines()
    assert "sesame" not in ended.out + ended.err


@pytest.mark.parametrize("is_released", [True, False])
async def test_a_step_runs_in_the_image_that_ci_would_use(
    project: Path, tmp_path: Path, hub: RegistrySandbox, is_released: bool
) -> None:
    if is_released:
        hub.push("tlcpack/ci-cpu", "1")
    image = "tlcpack/ci-cpu:1" if is_released else "tlcpackstaging/ci_cpu:1"
    options, env = ("--config", app_yaml(project, tmp_path, hub)), tools(tmp_path, docker=True)
    listing = await local(project, *options, **env)
    assert "unit  tlcpack/ci-cpu:1 (docker)  echo tested; env" in listing.out.splitlines()
    assert "lint  this machine               true" in listing.out.splitlines()
    assert hub.requests == [], "a list asks nobody"
    ended = await local(project, "unit", *options, **env)
    assert (ended.status, ended.out.splitlines()[0]) == (0, "tested"), ended.err
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments == [
        *("run", "--rm", "--user", f"{os.getuid()}:{os.getgid()}", "--volume", f"{project}:{project}"),
        *("--workdir", str(project), "--env", "SKIP_CI=false", "--env", "DOCS_ONLY=false"),
        *("--env", "SKIP_SLOW_TESTS=true", "--env", "REBUILD_DOCKER=true", "--env", "NIGHTJAR_LEVEL=pull-request"),
        *(image, "sh", "-c", "echo tested; env"),
    ]


def test_podman_gets_no_owner_because_root_in_its_container_is_this_person(tmp_path: Path) -> None:
    step = LocalStep("unit", "true", "tlcpack/ci-cpu:1", "podman")
    arguments = step.arguments(tmp_path, {"SKIP_CI": "false"})
    assert arguments[:5] == ["podman", "run", "--rm", "--security-opt", "label=disable"]
    assert arguments[-6:] == ["--env", "SKIP_CI=false", "tlcpack/ci-cpu:1", "sh", "-c", "true"]
    assert "--user" not in arguments


async def test_without_an_engine_a_step_runs_on_the_machine_and_nobody_is_asked(
    project: Path, tmp_path: Path, hub: RegistrySandbox
) -> None:
    ended = await local(project, "unit", "--config", app_yaml(project, tmp_path, hub), **tools(tmp_path))
    assert (ended.status, ended.out.splitlines()[0]) == (0, "tested")
    assert "this machine, not ci_cpu: no docker or podman" in ended.err
    assert hub.requests == []


async def test_the_checkouts_own_file_wins_over_app_yaml(project: Path, tmp_path: Path, hub: RegistrySandbox) -> None:
    options = ("--config", app_yaml(project, tmp_path, hub))
    write(project, {".github/nightjar.yaml": "ci: {steps: {unit: echo of the project}}"})
    ended = await local(project, "unit", *options, **tools(tmp_path))
    assert (ended.status, ended.out) == (0, "of the project\n"), ended.err


@pytest.mark.parametrize(
    ("own_file", "arguments", "status", "message"),
    [
        (OWN_FILE, ["nothing"], 2, "there is no step nothing; available: variables, folder, fails, killed"),
        (OWN_FILE, ["--base", "nothing"], 1, "git knows no commit nothing; name a branch"),
        (OWN_FILE, ["--base", "--all"], 1, "git knows no commit --all; name a branch"),
        ("ci: {steps: {a: b}, images: {c: ci_cpu}}", [], 1, "ci.images names c, which is no step; available: a"),
        ("ci: true", [], 1, "no steps; name them below ci: steps: in "),
        ("ci: {steps: {a: ''}}", [], 1, "ci.steps.a: must be a shell command of up to 2,000 characters"),
        ("ci: {steps: {'a b': b}}", [], 1, "must be the name of a step of letters, digits, - and _"),
        (None, [], 1, "this checkout has no .github/nightjar.yaml, and there is no app.yaml"),
    ],
)
async def test_what_cannot_run_is_an_error(
    project: Path, own_file: str | None, arguments: list[str], status: int, message: str
) -> None:
    (project / ".github/nightjar.yaml").unlink()
    if own_file is not None:
        write(project, {".github/nightjar.yaml": own_file})
    ended = await local(project, *arguments)
    assert (ended.status, ended.out) == (status, "")
    assert message in ended.err


def test_a_folder_without_a_commit_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not in a checkout with a commit \\(git: not a git repository"):
        read_checkout(tmp_path, "")
    git(tmp_path, "init")
    with pytest.raises(UserError, match="not in a checkout with a commit"):
        read_checkout(tmp_path, "")


def test_the_changes_are_those_since_the_branch_began(project: Path, tmp_path: Path) -> None:
    commit(tmp_path / "origin", {"src/theirs.cc": "int c;\n"})
    git(project, "fetch")
    commit(project, {"src/mine.cc": "int b;\n"})
    git(project, "mv", "src/a.cc", "src/z.cc")
    write(project, {"new\nline.py": "", "é.py": "", "ignored.o": "", "src/mine.cc": "int d;\n"})
    checkout = read_checkout(project / "src", "")
    assert isinstance(checkout.changes, ChangedFiles)
    assert sorted(checkout.changes.names) == ["new\nline.py", "src/a.cc", "src/mine.cc", "src/z.cc", "é.py"]
    assert checkout.changes.count == 4, "a renamed file counts once"
    assert (checkout.top, checkout.branch, checkout.base) == (project, "faster", "origin/HEAD")


def test_the_remote_upstream_is_the_project_of_a_fork(project: Path, tmp_path: Path) -> None:
    git(project, "remote", "add", "upstream", str(tmp_path / "origin"))
    git(project, "fetch", "upstream")
    git(project, "switch", "--detach")
    checkout = read_checkout(project, "")
    assert (checkout.base, checkout.branch) == ("upstream/main", "")


def test_changes_are_unknown_without_a_base(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch", "main")
    commit(tmp_path, {"a": ""})
    assert isinstance(read_checkout(tmp_path, "").changes, UnknownChanges)
    git(tmp_path, "switch", "--orphan", "other")
    commit(tmp_path, {"b": ""})
    changes = read_checkout(tmp_path, "main").changes
    assert changes == UnknownChanges("HEAD and main have no commit in common here")
