"""Tests pass other values as arguments: none changes a module of ours, which other tests share.

A constant that is patched by its name stops being patched when it moves or is bound elsewhere, and no test notices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = frozenset({"bot", "handlers", "sandbox", "nightjar_formats", "nightjar_lab"})
PATCHES = frozenset({"setattr", "delattr"})
INSTRUMENTS = {
    "tests/jumping.py": "has the sandbox's clock jump, in runs that ask for it",
    "tests/statements.py": "collects the statements that the engine prepares",
    "tests/simulated_hours.py": "runs a bot by a simulated clock, and counts its statements",
    "tests/handlers/dashboard/test_large_suites.py": "counts the tests and failures that a page works on",
    "tests/handlers/dashboard/test_many.py": "counts the runs whose columns a page reads",
}
"""They observe a whole run, and change nothing that a test asserts."""
pytestmark = pytest.mark.xdist_group("source")


def _is_ours(name: str) -> bool:
    return name.split(".")[0] in OURS


def _imported(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Return the full name of each of our names in a file: `bot.web.oidc` for `oidc`; also of classes and functions."""
    names = dict[str, str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {name: full for name, full in names.items() if _is_ours(full)}


def _ours(node: ast.expr, imported: Mapping[str, str]) -> bool:
    """Return whether an expression is one of our modules or a name from one, even as a string with its dotted name."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _is_ours(node.value) and "." in node.value
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in imported


def _assigned(nodes: Sequence[ast.AST], imported: Mapping[str, str]) -> Iterator[int]:
    """Yield the lines that assign to an attribute of one of our modules or classes."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and _ours(node.value, imported):
            yield node.lineno


def patched(source: str) -> list[int]:
    """Return the lines of a test that change a module of ours."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = _imported(nodes)
    lines = set(_assigned(nodes, imported))
    for node in nodes:
        if isinstance(node, ast.Call) and node.args and _ours(node.args[0], imported):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in PATCHES or called in {"patch", "object"}:
                lines.add(node.lineno)
    return sorted(lines)


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr("bot.web.oidc.PAUSE_SECONDS", 0)',
        'monkeypatch.setattr(oidc, "PAUSE_SECONDS", 0)',
        'monkeypatch.delattr(oidc, "PAUSE_SECONDS")',
        'setattr(oidc.IssuerKeys, "find", None)',
        "oidc.PAUSE_SECONDS = 0",
        "oidc.PAUSE_SECONDS += 1",
        "IssuerKeys.find = None",
        'mock.patch("bot.web.oidc.PAUSE_SECONDS", 0)',
        'mock.patch.object(oidc, "PAUSE_SECONDS", 0)',
    ],
)
def test_each_way_to_change_a_module_is_detected(line: str) -> None:
    imports = "import os\nfrom bot.web import oidc\nfrom bot.web.oidc import IssuerKeys\n"
    assert patched(imports + line) == [4]
    assert patched(imports + 'monkeypatch.setattr(os, "fsync", None)\nkeys = IssuerKeys()\nkeys.clock = None') == []


def test_no_test_changes_a_module_of_ours() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "tests").rglob("*.py"))}
    patched_lines = {
        name: lines for name, path in files.items() if (lines := patched(path.read_text(encoding="utf-8")))
    }
    assert {name: lines for name, lines in patched_lines.items() if name not in INSTRUMENTS} == {}
    assert patched_lines.keys() == INSTRUMENTS.keys()
