"""Run tests in a copy of the tree in which one module is changed.

A fork cannot show a change to code that runs while modules are imported or in other processes; a copy can.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.imports import ROOT

OF_PLUGIN, OF_SUITE, OF_KIT = "lab/nightjar_lab/pytest/", "lab/nightjar_lab/suite/", "lab/nightjar_lab/"
TESTS = {OF_PLUGIN: ("tests/lab/plugin",), OF_SUITE: ("tests/lab/suite",), OF_KIT: ("tests/lab", "tests/lab/kit")}
"""The folders whose tests run modules in other processes, by the beginning of a module's path; the first one counts."""
MOST_CPU_SECONDS, MOST_SECONDS = 120, 1_200
"""The CPU time of each process of the tests, and the time of all of them. A run that takes longer shows no failure."""
NOT_STARTED = "the start of pytest"
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
_ALL_PASSED = (0, 5)
"""Statuses of pytest: https://docs.pytest.org/en/stable/reference/exit-codes.html."""


def process_tests(module: str) -> list[str]:
    """Return the files of tests that run a module in other processes, those that name it first."""
    name = Path(module).stem
    for prefix, folders in TESTS.items():
        if module.startswith(prefix):
            files = [file for folder in folders for file in sorted((ROOT / folder).glob("test_*.py"))]
            files.sort(key=lambda file: name.removesuffix("_plugin") not in file.name + file.read_text())
            return [file.relative_to(ROOT).as_posix() for file in files]
    return []


def failure_in_copy(tests: Sequence[str], module: str = "", text: str = "", root: Path = ROOT) -> str:
    """Run tests in a copy of the tree, where a module may have another text; return the first that fails, or "".

    A run that takes too long shows no failure.
    """
    if not tests:
        return ""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _copy(root, tree)
        if module:
            (tree / module).unlink()
            (tree / module).write_text(text)
        path = os.pathsep.join([str(tree), str(tree / "lab"), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-qq", "-p", "no:cacheprovider", *tests]
        try:
            process = subprocess.run(
                command,
                cwd=tree,
                env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
                preexec_fn=_limit,
            )
        except subprocess.TimeoutExpired:
            return ""
    return failed_test(process.returncode, process.stdout)


def failed_test(status: int, output: str) -> str:
    """Return the test, without parameters, that failed in a run of pytest, from its status and output; "" for none.

    That pytest does not start counts as a failure, but not that a signal ends it.
    """
    if status in _ALL_PASSED or status < 0:
        return ""
    # A test that runs pytest itself shows that output, too, before the summary.
    failed = _FAILED.findall(output)
    return failed[-1] if failed else NOT_STARTED


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))


def _copy(root: Path, tree: Path) -> None:
    """Copy what git knows of a tree, as links, and its compiled modules, which are read as long as they are current."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            folder = (tree / name).parent
            if not folder.exists():
                folder.mkdir(parents=True, exist_ok=True)
                if (compiled := (root / name).parent / "__pycache__").is_dir():
                    (folder / "__pycache__").symlink_to(compiled)
            (tree / name).symlink_to(root / name)
