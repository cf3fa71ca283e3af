"""Find the modules that do no I/O, so that tests can show every decision of them, and the tests of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
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
ALSO_PURE = frozenset({"bot/engine/jobs/definitions.py", "bot/engine/sql/portable.py", "bot/engine/retry.py"})
"""Modules that use only types and errors of these libraries."""
JOINING = frozenset({"__main__.py", "feature.py", "wiring.py"})
"""Modules that only join others."""
SLOW_TESTS = ("browser", "conversations", "deploy", "robustness", "signal")
"""Folders of tests that start the whole bot, which takes too long for each mutant, as do those beside the folders."""
DECISIONS = (ast.BoolOp, ast.Compare, ast.For, ast.If, ast.IfExp, ast.While, ast.comprehension)


def pure_modules() -> list[str]:
    """Return the pure modules that decide something, as paths; those with the most decisions first."""
    decisions: dict[str, int] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path, tree = file.relative_to(ROOT).as_posix(), ast.parse(file.read_bytes())
            if file.name in JOINING:
                continue
            if path in ALSO_PURE or not (_awaits(tree) or any(map(_does_io, _imported(tree)))):
                decisions[path] = sum(isinstance(node, DECISIONS) for node in ast.walk(tree))
    return [path for path in sorted(decisions, key=lambda path: -decisions[path]) if decisions[path]]


def quick_tests(module: str) -> list[str]:
    """Return the quick tests that import a module; if none does, those of the modules that import it, and so on.

    If nothing quick imports these either, return the tests of the folder that mirrors the module's.
    """
    tests, names, known = _importers_among_tests(), {dotted(module)}, {dotted(module)}
    while names:
        if direct := sorted({test for name in names for test in tests.get(name, ())}):
            return direct
        names = {importer for name in names for importer in _importers().get(name, ())} - known
        known |= names
    folder = ROOT / "tests" / Path(module).parent
    return [file.relative_to(ROOT).as_posix() for file in sorted(folder.glob("test_*.py"))]


@cache
def _importers_among_tests() -> dict[str, set[str]]:
    files = (file.relative_to(ROOT) for file in (ROOT / "tests").rglob("test_*.py"))
    return _by_import(
        {file.as_posix(): file.as_posix() for file in files if len(file.parts) > 2 and file.parts[1] not in SLOW_TESTS}
    )


@cache
def _importers() -> dict[str, set[str]]:
    files = (file.relative_to(ROOT).as_posix() for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    return _by_import({file: dotted(file) for file in files})


def _by_import(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the names of the files that import each module; the name of a file is given."""
    by_import: dict[str, set[str]] = {}
    for file, name in files.items():
        for imported in _imported(ast.parse((ROOT / file).read_bytes())):
            by_import.setdefault(imported, set()).add(name)
    return by_import


def dotted(module: str) -> str:
    """Return the name under which a module is imported: that of a lab's has no folder `lab`."""
    return module.removeprefix("lab/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _awaits(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))


def _does_io(name: str) -> bool:
    return name in IO or name.partition(".")[0] in IO


def _imported(tree: ast.Module) -> Iterator[str]:
    for source, names in _sources(tree):
        yield source
        yield from (f"{source}.{name}" for name in names)


def _sources(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield each module that is imported when the program runs, with the names that come from it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, []) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.module or "", [alias.name for alias in child.names]
        else:
            yield from _sources(child)
