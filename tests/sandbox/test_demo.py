"""The demo's foundations: its reports, and test files that match them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sandbox import GitHubSandbox
from sandbox.demo.images import browser
from sandbox.demo.mirror import AUTHOR, Mirror, push_to_fork
from sandbox.demo.nightly_runs import FAILURE
from sandbox.demo.reports import reports
from sandbox.demo.reports import test_files as files_of


@pytest.mark.parametrize("nightly_run", ["night-1", "night-2", "broken-lab"])
def test_the_files_of_a_nightly_run_are_valid_python(nightly_run: str) -> None:
    files = files_of(nightly_run)
    assert len(files) > len(reports(nightly_run))
    for path, text in files.items():
        assert path.startswith("tests/python/")
        ast.parse(text)


@pytest.mark.parametrize(
    ("path", "line", "code"),
    [
        (*FAILURE, "except tvm.base.TVMError as ex:"),
        ("tests/python/arith/test_arith_analyzer_object.py", 140, "with pytest.raises(tvm.TVMError):"),
    ],
)
def test_a_failure_is_at_the_line_of_its_traceback(path: str, line: int, code: str) -> None:
    assert files_of("night-1")[path].splitlines()[line - 1].strip() == code


def test_a_file_has_the_tests_that_ran() -> None:
    tree = ast.parse(files_of("night-1")["tests/python/te/test_te_tag.py"])
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert names == ["test_with", "test_decorator", "test_nested"]


async def test_screenshots_name_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(click.ClickException, match="Install it and a font with emoji"):
        async with browser():
            pass


def test_a_contributors_commit_has_the_same_sha_in_the_labs_mirror(tmp_path: Path) -> None:
    repo = GitHubSandbox().create_repository("octocat/compiler", files={"README.md": "# Compiler\n"})
    sha = push_to_fork(repo, Mirror(tmp_path), "faster", {"src/tile.cc": "// Tiles.\n"}, "Tile")
    pull = repo.open_pull_request(AUTHOR, "Tile", branch="faster", fork=True)
    assert pull.head_sha == sha
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", sha], cwd=tmp_path, capture_output=True, text=True)
    assert listed.stdout.split() == ["README.md", "src/tile.cc"]
    assert [change.path for change in pull.files] == ["src/tile.cc"]


def test_the_demos_bot_hands_jobs_out_again_after_seconds() -> None:
    # In a separate process, because the shortened times apply to all of it.
    program = (
        "from sandbox.demo.bot import shorten; shorten();"
        "from handlers.device_tests import feature, model, transitions;"
        "print(feature.JOBS_TICK, model.LEASE_SECONDS, transitions.LEASE_SECONDS)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "* * * * * */2 5.0 5.0"
