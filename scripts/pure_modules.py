"""Find the modules that do no I/O, so that tests can show every decision of them, and the quick tests."""

from __future__ import annotations

import ast

from scripts.imports import ROOT, imported_names

FOLDERS = ("bot", "handlers", "lab")
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
OTHER_ENVIRONMENT = ("lab/nightjar_lab/suite/suites/", "lab/nightjar_lab/suite/flows/")
"""Folders whose tests need libraries such as PyTorch, which only `make suite-test` installs."""
JOINING = frozenset({"__main__.py", "feature.py", "wiring.py"})
"""Modules that only join others."""
SLOW_TESTS = ("browser", "conversations", "deploy", "robustness", "signal")
"""Folders of tests that start the whole bot, which takes too long for each mutant."""
CONVERSATIONS = "tests/conversations/"
"""The folder of tests that run the whole bot in their own process."""
DECISIONS = (ast.BoolOp, ast.Compare, ast.For, ast.If, ast.IfExp, ast.While, ast.comprehension)


def pure_modules() -> list[str]:
    """Return the paths of the pure modules that decide something."""
    modules = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path, tree = file.relative_to(ROOT).as_posix(), ast.parse(file.read_bytes())
            if file.name in JOINING or path.startswith(OTHER_ENVIRONMENT):
                continue
            is_pure = path in ALSO_PURE or not (_awaits(tree) or any(map(_does_io, imported_names(tree))))
            if is_pure and any(isinstance(node, DECISIONS) for node in ast.walk(tree)):
                modules.append(path)
    return sorted(modules)


def recorded_tests() -> list[str]:
    """Return the files of quick tests."""
    files = (file.relative_to(ROOT) for file in (ROOT / "tests").rglob("test_*.py"))
    return sorted(file.as_posix() for file in files if len(file.parts) > 2 and file.parts[1] not in SLOW_TESTS)


def conversation_tests() -> list[str]:
    """Return the files of tests that run the whole bot in their own process: for mutants that no quick test detects."""
    return sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / CONVERSATIONS).rglob("test_*.py"))


def _awaits(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(tree))


def _does_io(name: str) -> bool:
    return name in IO or name.partition(".")[0] in IO
