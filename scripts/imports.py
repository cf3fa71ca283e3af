"""Read what our files import."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


def by_import(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the importers of each module and of each name in a module. `files` has the importers' names by path."""
    importers: dict[str, set[str]] = {}
    for file, name in files.items():
        for imported in imported_names(ast.parse((ROOT / file).read_bytes())):
            importers.setdefault(imported, set()).add(name)
    return importers


def dotted(module: str) -> str:
    """Return the name under which the module at a path is imported; modules of labs have no folder `lab` in theirs."""
    return module.removeprefix("lab/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield each module that a file imports, and each name from it: `bot.core`, `bot.core.urls`. Types do not count."""
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
        elif not isinstance(child, ast.expr):  # no expression has an import
            yield from _sources(child)
