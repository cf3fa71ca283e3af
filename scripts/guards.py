"""Find the tests that guard a change against a branch, by imports, folders and names: `make test-changed`.

It prints why it runs each:

    tests/core/test_urls.py: imports bot/core/urls.py
    tests/conversations/test_merge.py: is named like handlers/merge/
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from scripts.imports import ROOT, by_import, dotted

MIRRORED = {
    "bot": "tests",
    "handlers": "tests/handlers",
    "lab/nightjar_lab": "tests/lab",
    "lab/nightjar_formats/readers": "tests/results/formats",
    "sandbox": "tests/sandbox",
    "deploy": "tests/deploy",
}
"""Folders of modules, and the folder in which their tests have the same names."""
READS_ALL_MODULES = 'rglob("*.py")'
"""Tests with this code read every module, such as those of layers and names."""


def main() -> int:
    """Print the tests that guard the changes against a branch: `main`, or the first argument."""
    branch = sys.argv[1] if len(sys.argv) > 1 else "main"
    tests = guards(changed_files(branch))
    for test, reason in sorted(tests.items()):
        print(f"{test}: {reason}", file=sys.stderr)  # noqa: T201
    if not tests:
        print(f"no test guards the changes against {branch}", file=sys.stderr)  # noqa: T201
    print(*sorted(tests))  # noqa: T201
    return 0


def changed_files(branch: str, root: Path = ROOT) -> list[str]:
    """Return the paths of files that differ from where this branch began, also uncommitted, deleted and new ones."""
    [base] = _git(root, "merge-base", branch, "HEAD")
    tracked = _git(root, "diff", "--name-only", "--no-renames", base)
    return sorted({*tracked, *_git(root, "ls-files", "--others", "--exclude-standard")})


def _git(root: Path, *arguments: str) -> list[str]:
    """Return the lines that git prints."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def guards(changed: list[str]) -> dict[str, str]:
    """Return the test files that guard a change, each with the first reason."""
    tests: dict[str, str] = {}
    for path in changed:
        for test, reason in _guards_of(path):
            if (ROOT / test).exists():
                tests.setdefault(test, reason)
    return tests


def _guards_of(path: str) -> Iterator[tuple[str, str]]:
    file = PurePosixPath(path)
    if file.parts[0] == "tests" and file.suffix == ".py":
        yield from _guards_of_test_code(file)
    elif file.suffix == ".py":
        yield from ((test, f"imports {path}") for test in _importing_tests(path))
        yield from ((test, "reads all modules") for test, text in _tests().items() if READS_ALL_MODULES in text)
    yield from _tests_in_same_folder(file)
    quoted = f'"{file.name}"' if file.parts[0] == "tests" else f'"{path}"'
    yield from ((test, f"names {path}") for test, text in _tests().items() if quoted in text)
    if file.suffix == ".md":
        yield "tests/test_docs_pages.py", f"reads {path}"


def _guards_of_test_code(file: PurePosixPath) -> Iterator[tuple[str, str]]:
    path = file.as_posix()
    if file.name.startswith("test_"):
        yield path, "changed"
    elif file.name == "conftest.py":
        yield from ((test, f"uses {path}") for test in _tests() if file.parent in PurePosixPath(test).parents)
    else:
        yield from ((test, f"imports {path}") for test in _importing_tests(path))


def _tests_in_same_folder(file: PurePosixPath) -> Iterator[tuple[str, str]]:
    """Yield the tests whose folder mirrors that of a file, and those that are named like its feature."""
    for source, tests in MIRRORED.items():
        if file.is_relative_to(source):
            folders = [tests / parent.relative_to(source) for parent in file.parents if parent.is_relative_to(source)]
            mirror = next((folder for folder in folders if (ROOT / folder).is_dir()), None)
            if mirror is not None and mirror != PurePosixPath("tests"):
                yield from ((test, f"is in {mirror}/") for test in _tests() if mirror in PurePosixPath(test).parents)
    if file.parts[0] == "handlers" and len(file.parts) > 1:
        feature = PurePosixPath(file.parts[1]).stem
        reason = f"is named like handlers/{file.parts[1]}"
        yield from ((test, reason) for test in _tests() if PurePosixPath(test).stem.startswith(f"test_{feature}"))


def _importing_tests(path: str) -> list[str]:
    """Return the tests that import a module, or modules of `tests` that import it."""
    importers: set[str] = set()
    names = {dotted(path)}
    while names:
        files = {file for name in names for file in _importers_in_tests().get(name, ())} - importers
        importers |= files
        names = {dotted(file) for file in files}
    return sorted(file for file in importers if file in _tests())


@cache
def _importers_in_tests() -> dict[str, set[str]]:
    files = [file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("*.py")]
    return by_import({file: file for file in files})


@cache
def _tests() -> dict[str, str]:
    """Return the text of each test file by its path."""
    return {
        file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
    }


if __name__ == "__main__":
    sys.exit(main())
