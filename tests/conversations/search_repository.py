"""A git repository of many commits, one of which breaks a test; and how its tests run under a real pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.lab.agent_rack import git

TEST_FILE = "tests/test_ops.py"
TEST = f"{TEST_FILE}::test_add"
GOOD_CODE = "def add(a, b):\n    return a + b  # {number}\n"
BROKEN_CODE = "def add(a, b):\n    return a - b  # {number}\n"
UNREADABLE_CODE = "def add(a, b:\n"
FLAKY_TEST = """\
import os
import pathlib
import random

from ops import add


def test_add():
    runs = pathlib.Path(os.environ["HOME"], "runs-" + os.environ["NIGHTJAR_TARGET"])
    number = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (number + 1))
    assert random.Random(f"{runs.name} {number}").random() >= {rate}, "the device was lost"
    assert add(2, 2) == 4
"""
PYTEST = f'{sys.executable} -m pytest -q -p nightjar_lab.pytest --junitxml="$NIGHTJAR_RESULTS/t.xml" {TEST_FILE}'
"""The command of a lab. Other plugins are not loaded, since each start would import them."""


@dataclass(frozen=True, slots=True)
class BrokenRepository:
    """A repository whose commits are `shas`, oldest first; the first is the one before the range.

    The test fails at every commit from the position `culprit` on, and before it with a known rate.
    """

    folder: Path
    shas: list[str]
    culprit: int


def broken_repository(
    folder: Path, commits: int, culprit: int, *, rate: float = 0.0, not_built: Collection[int] = ()
) -> BrokenRepository:
    """Make a repository in a new folder, with so many commits after the first; `not_built` cannot be imported."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    stream = "".join(_stream(commits, culprit, rate, not_built))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, check=True, input=stream, text=True)
    return BrokenRepository(folder, git(folder, "rev-list", "--reverse", "main").split(), culprit)


def _stream(commits: int, culprit: int, rate: float, not_built: Collection[int]) -> Iterator[str]:
    """Yield what `git fast-import` reads: https://git-scm.com/docs/git-fast-import."""
    for number in range(commits + 1):
        code = BROKEN_CODE if number >= culprit else GOOD_CODE
        code = UNREADABLE_CODE if number in not_built else code.format(number=number)
        message = f"Change {number}"
        yield f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + number} +0000\n"
        yield f"data {len(message)}\n{message}\n"
        files = {"ops.py": code}
        if number == 0:
            files[TEST_FILE] = FLAKY_TEST.replace("{rate}", str(rate))
        for path, text in files.items():
            yield f"M 100644 inline {path}\ndata {len(text)}\n{text}\n"
