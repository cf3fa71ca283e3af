"""docs/seeds.md: its commands print what it says, and its tests exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from nightjar_lab.main import kit

from bot.cli.main import cli

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| asks for"))
]
COMMAND = re.compile(r"`([^`]+)` → `([^`]+)`")
PATH = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")
PROGRAMS = {"nightjar": cli, "nightjar-lab": kit}
CONFTEST = """\
from nightjar_lab.pytest import Target

nightjar_targets = [
    Target("llvm"),
    Target("gpu", parametrized=False, available=False),
    Target("cuda", available=False, parents=["gpu"]),
]
"""
TESTS = """\
import pytest
from nightjar_lab.pytest import requires

def test_add(target, dev):
    assert target == "llvm"

@pytest.mark.slow
def test_resnet():
    pass

@pytest.mark.level("nightly")
def test_bert():
    pass

@requires("cuda")
def test_on_the_gpu():
    raise AssertionError
"""
REPORT = """\
<testsuites><testsuite name="pytest" tests="2">
<testcase classname="test_ops" name="test_add[llvm]" file="test_ops.py" time="0.1">
<properties><property name="measurement.latency" value="1.25 ms lower"/></properties></testcase>
<testcase classname="test_ops" name="test_resnet" file="test_ops.py" time="0">
<skipped message="slow test: set SKIP_SLOW_TESTS=false or write @ci run slow tests"/></testcase>
</testsuite></testsuites>
"""
APP = """\
repositories:
  octocat/compiler:
    nightly: {at: "21:00", timezone: America/Los_Angeles}
    ci: {steps: {unit: pytest tests, lint: ruff check}}
"""
FILES = {
    "conftest.py": CONFTEST,
    "test_ops.py": TESTS,
    "pytest.ini": "[pytest]\nmarkers = gpu: needs a GPU\n",
    "results.xml": REPORT,
    "app.yaml": APP,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiler")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git = ["git", "-c", "user.name=octocat", "-c", "user.email=octocat@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "One"]):
        subprocess.run([*git, *arguments], cwd=folder, check=True)
    return folder


def run(command: str, project: Path) -> tuple[int, str]:
    """Run a command: ours in this process, pytest in one of its own. Return its status and all that it printed."""
    words = shlex.split(command)
    if words[0] in PROGRAMS:
        done = CliRunner().invoke(PROGRAMS[words[0]], words[1:])
        return done.exit_code, done.output
    names = ("HOME", "LANG", "TMPDIR", "PATH")
    settings = dict(word.split("=", 1) for word in words[: words.index("pytest")])
    arguments = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words[words.index("pytest") + 1 :]]
    finished = subprocess.run(
        arguments,
        cwd=project,
        env={name: os.environ[name] for name in names if name in os.environ} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.returncode, finished.stdout + finished.stderr


@pytest.mark.exhaustive
def test_the_commands_print_what_the_page_says(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "200")
    expected: dict[str, list[str]] = {}
    for command, text in COMMAND.findall(PAGE):
        expected.setdefault(command, []).append(text)
    assert len(expected) > 20
    results = {command: run(command, project) for command in expected}
    wrong = {
        command: results[command]
        for command, texts in expected.items()
        if results[command][0] or not all(text in results[command][1] for text in texts)
    }
    assert wrong == {}


def test_every_row_is_shown_by_something_that_exists() -> None:
    assert len(ROWS) > 60
    assert {state for _, state, _ in ROWS} == {"works", "works, where the backend runs", "does not"}
    for _, state, evidence in ROWS:
        for name, function in PATH.findall(evidence):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not function or f"def {function}(" in text, (name, function)
        shown = COMMAND.search(evidence) or PATH.search(evidence) or "](" in evidence
        assert shown or state != "works" or evidence == "the same test", evidence
