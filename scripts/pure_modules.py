"""Find the modules that do no I/O, so that tests can show every decision of them, and the tests of each."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from scripts.imports import ROOT, by_import, dotted, imported_names

FOLDERS = ("bot", "handlers", "lab/nightjar_formats")
IO = frozenset(
    {
        *("aiohttp", "asyncio", "boto3", "botocore", "concurrent", "fcntl", "gc", "http", "importlib", "jinja2"),
        *("logging", "mmap", "multiprocessing", "nturl2path", "os", "pathlib", "procrastinate", "prometheus_client"),
        *("psycopg", "random", "resource", "secrets", "select", "shutil", "signal", "socket", "sqlalchemy", "sqlite3"),
        *("ssl", "structlog", "subprocess", "sys", "tempfile", "threading", "time", "urllib.request", "uuid"),
    }
)
"""Libraries for files, networks, processes, clocks and chance. What is imported for types alone does not count."""
ALSO_PURE = frozenset({"bot/engine/sql/portable.py", "bot/engine/retry.py"})
"""Modules that use only types and errors of these libraries."""
JOINING = frozenset({"__main__.py", "feature.py", "wiring.py"})
"""Modules that only join others."""
SLOW_TESTS = ("browser", "conversations", "deploy", "robustness", "signal")
"""Folders of tests that start the whole bot, which takes too long for each mutant, as do those beside the folders."""
ENOUGH, MOST_MORE = 8, 40
"""Files of tests: when no further ones are looked for, and how many are added at once at most."""
DECISIONS = (ast.BoolOp, ast.Compare, ast.For, ast.If, ast.IfExp, ast.While, ast.comprehension)


def pure_modules() -> list[str]:
    """Return the pure modules that decide something, as paths; those with the most decisions first."""
    decisions: dict[str, int] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path, tree = file.relative_to(ROOT).as_posix(), ast.parse(file.read_bytes())
            if file.name in JOINING:
                continue
            if path in ALSO_PURE or not (_awaits(tree) or any(map(_does_io, imported_names(tree)))):
                decisions[path] = sum(isinstance(node, DECISIONS) for node in ast.walk(tree))
    return [path for path in sorted(decisions, key=lambda path: -decisions[path]) if decisions[path]]


def quick_tests(module: str) -> list[str]:
    """Return the quick tests that import a module, or one of its folder that uses it.

    If these are fewer than `ENOUGH`, add those of the modules that import these, and so on: what a part of a reader
    does is shown by the tests of the reader. If nothing quick imports any, return the tests of the folder that mirrors
    the module's, or the nearest one above it that has tests.
    """
    name = dotted(module)
    folder_name = name.rpartition(".")[0]
    neighbors = {importer for importer in _importers().get(name, ()) if importer.rpartition(".")[0] == folder_name}
    tests, names, visited = _importers_among_tests(), {name, *neighbors}, {name, *neighbors}
    found = dict[str, None]()
    while names and len(found) < ENOUGH:
        nearest = sorted({test for name in names for test in tests.get(name, ())} - found.keys())
        if found and len(nearest) > MOST_MORE:  # what everything imports shows little of one module
            break
        found |= dict.fromkeys(nearest)
        names = {importer for name in names for importer in _importers().get(name, ())} - visited
        visited |= names
    if found:
        return list(found)
    folders = (ROOT / "tests" / folder for folder in Path(module).parents)
    tests_by_folder = [sorted(folder.glob("test_*.py")) for folder in folders]
    return [file.relative_to(ROOT).as_posix() for file in next(filter(None, tests_by_folder), [])]


def recorded_tests() -> list[str]:
    """Return the files of quick tests."""
    files = (file.relative_to(ROOT) for file in (ROOT / "tests").rglob("test_*.py"))
    return sorted(file.as_posix() for file in files if len(file.parts) > 2 and file.parts[1] not in SLOW_TESTS)


@cache
def _importers_among_tests() -> dict[str, set[str]]:
    return by_import({file: file for file in recorded_tests()})


@cache
def _importers() -> dict[str, set[str]]:
    files = (file.relative_to(ROOT).as_posix() for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    return by_import({file: dotted(file) for file in files})


def _awaits(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))


def _does_io(name: str) -> bool:
    return name in IO or name.partition(".")[0] in IO
