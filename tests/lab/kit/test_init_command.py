"""`nightjar-lab init` and the files that it writes for each CI:

the scripts run against the real S3 protocol and git.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nightjar_lab.cli import options
from ruamel.yaml import YAML

from tests.bucket import World
from tests.lab.kit.running import LAB, REPOSITORY, ROOT, TARGET, kit_environment, run_here, run_kit

JUNIT = '<testsuite name="ops"><testcase classname="test_ops" name="test_add" time="0.1"/></testsuite>'
WRITES = f"echo '{JUNIT}' > \"$NIGHTJAR_RESULTS/te.xml\""
PACKAGE = f"git+https://git.example.org/nightjar@{'a' * 40}#subdirectory=lab"
FILES = {
    "github": ".github/workflows/nightjar-lab.yml",
    "gitlab": ".gitlab-ci.yml",
    "jenkins": "Jenkinsfile",
}


def script_of(ci: str, text: str) -> str:
    """Return the shell commands of the last step in a CI's file."""
    if ci == "github":
        return str(YAML(typ="safe").load(text)["jobs"]["test"]["steps"][-1]["run"])
    if ci == "gitlab":
        return str(YAML(typ="safe").load(text)["nightjar-lab"]["script"][-1])
    return str(re.findall(r"sh '(.*)'", text)[-1])


def run_script(script: str, folder: Path, env: dict[str, str]) -> None:
    """Run a script as a CI does."""
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def mirror(folder: Path) -> str:
    """Create a repository with one commit; return its SHA."""
    folder.mkdir()
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (
        ["init", "--quiet"],
        ["config", "uploadpack.allowAnySHA1InWant", "true"],
        ["commit", "--quiet", "--allow-empty", "-m", "one"],
    ):
        subprocess.run(["git", *author, *words], cwd=folder, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.exhaustive("github")
@pytest.mark.parametrize("ci", sorted(FILES))
async def test_the_files_for_a_ci_upload_a_run_of_the_nightly_commit(ci: str, tmp_path: Path, aws_world: World) -> None:
    env = kit_environment(tmp_path, aws_world)
    named = ("--ci", ci, "--package", PACKAGE, "--target", TARGET, "--suite", "operators", "--folder", "lab")
    words = ("init", *named, "--", WRITES)
    done = await run_kit(*words, env=env, cwd=tmp_path)
    assert done.status == 0, done
    assert "te.xml: junit: 1 passed" in done.err
    assert aws_world.keys("results/") == [], "a dry run uploads nothing"
    names = {str(path.relative_to(tmp_path / "lab")) for path in (tmp_path / "lab").rglob("*") if path.is_file()}
    assert names == {"nightjar-lab.env", "nightjar-lab.sh", FILES[ci]}

    sha = mirror(tmp_path / "mirror")
    aws_world.put(f"results/{REPOSITORY}/nightly.json", json.dumps({"sha": sha, "branch": "nightly"}).encode())
    add_tool(tmp_path / "bin", "nightjar-lab", f'exec {sys.executable} -m nightjar_lab "$@"')
    of_ci = {name: value for name, value in env.items() if not name.startswith("NIGHTJAR_")}
    of_ci["PATH"] = f"{tmp_path}/bin:{os.environ['PATH']}"
    of_ci["NIGHTJAR_CLONE_URL"] = f"file://{tmp_path}/mirror"
    written = (tmp_path / "lab" / FILES[ci]).read_text()
    assert f".venv/bin/pip install --quiet {PACKAGE}" in written
    script = script_of(ci, written)
    run_script(script, tmp_path / "lab", of_ci)
    (key,) = [key for key in aws_world.keys("results/") if key.endswith("manifest.json")]
    assert key.startswith(f"results/{REPOSITORY}/{LAB}/{TARGET}/{sha}/")


async def test_git_gets_no_secret_and_runs_nothing_that_tests_left_in_the_checkout(
    tmp_path: Path, aws_world: World
) -> None:
    leaves = (
        f'echo kept > built; echo "env >> {tmp_path}/hook" > .git/hooks/post-checkout; '
        f"chmod +x .git/hooks/post-checkout; "
        f'git config core.fsmonitor "env >> {tmp_path}/monitor; false"; '
    )
    env = kit_environment(tmp_path, aws_world)
    words = (
        "init",
        "--ci",
        "github",
        "--package",
        PACKAGE,
        "--target",
        TARGET,
        "--folder",
        "lab",
        "--",
        f"mkdir -p .git/hooks; {leaves}{WRITES}",
    )
    done = await run_kit(*words, env=env, cwd=tmp_path)
    assert done.status == 0, done
    sha = mirror(tmp_path / "mirror")
    aws_world.put(f"results/{REPOSITORY}/nightly.json", json.dumps({"sha": sha, "branch": "nightly"}).encode())
    add_tool(tmp_path / "bin", "nightjar-lab", f'exec {sys.executable} -m nightjar_lab "$@"')
    add_tool(tmp_path / "bin", "git", f'env >> {tmp_path}/variables; exec {shutil.which("git")} "$@"')
    of_ci = {name: value for name, value in env.items() if not name.startswith("NIGHTJAR_")}
    of_ci["PATH"] = f"{tmp_path}/bin:{os.environ['PATH']}"
    of_ci["NIGHTJAR_CLONE_URL"] = f"file://{tmp_path}/mirror"
    for _ in range(2):
        run_script("sh ./nightjar-lab.sh", tmp_path / "lab", of_ci)
    assert (tmp_path / "lab/source/built").read_text() == "kept\n", "an incremental build goes on"
    left = [name for name in ("hook", "monitor") if (tmp_path / name).exists()]
    assert left == [], "the next night's git runs them"
    variables = {line.partition("=")[0] for line in (tmp_path / "variables").read_text().splitlines()}
    assert "PATH" in variables
    assert [name for name in variables if name.startswith("AWS_")] == []


def add_tool(folder: Path, name: str, command: str) -> None:
    """Add a program to a folder."""
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{command}\n")
    tool.chmod(0o755)


async def test_init_overwrites_nothing_and_asks_for_missing_values(tmp_path: Path) -> None:
    env = {**kit_environment(tmp_path), "NIGHTJAR_BUCKET": "device-results"}
    (tmp_path / "nightjar-lab.sh").write_text("mine")
    named = ("--package", PACKAGE)
    done = await run_kit("init", *named, "--target", TARGET, "--", "true", env=env, cwd=tmp_path)
    assert (done.status, len(done.err.splitlines())) == (1, 1), done
    assert "nightjar-lab.sh exist" in done.err
    assert (tmp_path / "nightjar-lab.sh").read_text() == "mine"
    assert not (tmp_path / "nightjar-lab.env").exists()
    done = await run_kit("init", "--", "true", env=env, cwd=tmp_path)
    assert (done.status, "--target (NIGHTJAR_TARGET) is not set" in done.err) == (2, True), done


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        ((), "--package is not set; name what the CI installs: a wheel"),
        (("--package", "nightjar-lab"), "nightjar-lab is on no package index"),
        (("--package", "nightjar-lab==0.1.0"), "nightjar-lab is on no package index"),
        (("--package", "git+https://git.example.org/nightjar@main#subdirectory=lab"), "the full SHA of a commit"),
        (("--package", f"git+http://git.example.org/nightjar@{'a' * 40}"), "git+https://"),
        (("--package", "https://git.example.org/nightjar_lab-0.1.0-py3-none-any.whl"), "#sha256=DIGEST"),
        (("--package", "lab.whl --index-url=evil"), "a wheel's path"),
    ],
)
def test_init_writes_nothing_that_installs_what_anybody_could_replace(
    package: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    env = {**kit_environment(tmp_path), "NIGHTJAR_BUCKET": "device-results"}
    done = run_here("init", *package, "--target", TARGET, "--folder", str(tmp_path), "--", "true", env=env)
    assert (done.status, reason in done.err) == (2, True), done
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "package",
    [
        "nightjar_lab-0.1.0-py3-none-any.whl",
        f"https://git.example.org/nightjar_lab-0.1.0-py3-none-any.whl#sha256={'a' * 64}",
        f"git+ssh://git@git.example.org/nightjar@{'a' * 40}#subdirectory=lab",
    ],
)
def test_a_wheel_or_a_full_commit_is_installed(package: str) -> None:
    assert options.PACKAGE.convert(package, None, None) == package


@pytest.mark.parametrize("ci", sorted(FILES))
@pytest.mark.parametrize(
    ("place", "secrets", "others"),
    [
        (("--bucket", "device-results"), ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], "NIGHTJAR_LAB_TOKEN"),
        (("--url", "https://ci.example.org"), ["NIGHTJAR_LAB_TOKEN"], "AWS_"),
    ],
)
def test_a_ci_gets_the_secrets_of_the_place_to_upload_to(
    ci: str, place: tuple[str, str], secrets: list[str], others: str, tmp_path: Path
) -> None:
    named = ("--ci", ci, "--package", PACKAGE, "--target", TARGET, "--folder", str(tmp_path), *place)
    done = run_here("init", *named, "--no-dry-run", "--", "true", env=kit_environment(tmp_path))
    assert (done.status, f"add {' and '.join(secrets)} as secrets" in done.err) == (0, True), done
    written = {name: (tmp_path / name).read_text() for name in (FILES[ci], "nightjar-lab.env")}
    for name, text in written.items():
        assert [secret for secret in secrets if secret not in text] == [], name
        assert others not in text, name
        assert "@" not in text.replace(PACKAGE, "").replace("checkout@", ""), name


def test_init_needs_a_bucket_or_the_address_of_the_bot(tmp_path: Path) -> None:
    named = ("--package", PACKAGE, "--target", TARGET, "--folder", str(tmp_path))
    done = run_here("init", *named, "--", "true", env=kit_environment(tmp_path))
    assert (done.status, "--url (NIGHTJAR_URL) is not set" in done.err) == (2, True), done


def read_action() -> dict[str, Any]:
    """Return the action for labs, which a marketplace looks for in the root of a repository."""
    action: dict[str, Any] = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return action


def test_a_marketplace_can_list_the_action() -> None:
    action = read_action()
    assert set(action["branding"]) == {"icon", "color"}
    decision = {"skip_ci", "docs_only", "run_slow_tests", "rebuild_docker", "level", "sha"}
    assert set(action["outputs"]) == {"run-id", "exit-status", *decision}


@pytest.mark.parametrize(("works", "output"), [(True, "command=python3\n"), (False, "")])
def test_the_action_takes_a_python_that_is_there(works: bool, output: str, tmp_path: Path) -> None:
    """Runners on 32-bit ARM have no builds of setup-python."""
    look, setup = read_action()["runs"]["steps"][:2]
    for name in ("python3", "python"):
        add_tool(tmp_path / "bin", name, f'exec {sys.executable} "$@"' if works else "exit 1")
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "GITHUB_OUTPUT": str(tmp_path / "output")}
    (tmp_path / "output").touch()
    run_script(look["run"], tmp_path, env)
    assert (tmp_path / "output").read_text() == output
    assert (setup["if"], setup["uses"].partition("@")[0]) == (
        f"steps.{look['id']}.outputs.command == ''",
        "actions/setup-python",
    )


async def test_the_action_runs_the_command_and_uploads(tmp_path: Path, aws_world: World) -> None:
    action = read_action()
    steps = action["runs"]["steps"]
    for step in steps:
        assert "uses" not in step or re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]), "actions are pinned"
        assert "${{ inputs" not in step.get("run", ""), "no input is inserted into a script"
    last = steps[-1]
    inputs = {
        "command": WRITES,
        "repository": REPOSITORY,
        "lab": LAB,
        "bucket": aws_world.name,
        "target": TARGET,
        "suite": "operators",
        "sha": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c",
        "attempt": "2",
        "environment": "device=Pixel 9\ndriver=512.800",
    }
    defaults = {name: str(input_.get("default", "")) for name, input_ in action["inputs"].items()}
    values = {**defaults, **inputs}
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+)[^}]* \}\}", lambda match: values[match[1]], text)
        for name, text in last["env"].items()
    }
    add_tool(tmp_path / "bin", "nightjar-lab", f'exec {sys.executable} -m nightjar_lab "$@"')
    env = {
        **{name: value for name, value in kit_environment(tmp_path, aws_world).items() if "NIGHTJAR" not in name},
        **variables,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_RUN_ID": "123",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    run_script(last["run"], tmp_path, env)
    outputs = dict(line.split("=") for line in (tmp_path / "output").read_text().splitlines())
    assert outputs["exit-status"] == "0"
    (key,) = [key for key in aws_world.keys("results/") if key.endswith("manifest.json")]
    document = json.loads(aws_world.s3.get_object(Bucket=aws_world.name, Key=key)["Body"].read())
    assert key.split("/")[-2] == outputs["run-id"]
    assert document["attempt"] == 2
    assert document["environment"] == {"device": "Pixel 9", "driver": "512.800"}
