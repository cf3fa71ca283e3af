"""No pattern of Python's own `re` that reads text from outside can backtrack."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]  # the only way to see what a pattern is made of
from re import _parser as patterns  # type: ignore[attr-defined]
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# One worker parses all files, once.
pytestmark = pytest.mark.xdist_group("source")
COMPILES = ("re.compile", "possessive")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OF_OURS = frozenset(
    {
        "bot/engine/sql/portable.py",
        "lab/nightjar_formats/patterns.py",
    }
)
"""Modules that match only text of this repository, or text on the machine of its author."""


def compiled(module: Path) -> Iterator[str]:
    """Yield the patterns that a module compiles with `re`: literals, or patterns that it assembles at import."""
    source = module.read_text()
    if not any(name in source for name in COMPILES):
        return  # parsing takes twenty times as long as reading
    tree, at_import = ast.parse(source), False
    in_functions = {id(inner) for node in ast.walk(tree) if isinstance(node, FUNCTIONS) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in COMPILES:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str | bytes):
                yield _text(node.args[0].value)
            else:
                assert id(node) not in in_functions, (
                    f"{module}:{node.lineno} compiles a pattern that may come from outside"
                )
                at_import = True
    if at_import:
        name = ".".join(module.relative_to(ROOT).with_suffix("").parts).removeprefix("lab.")
        yield from (
            _text(compiled_pattern.pattern)
            for compiled_pattern in vars(import_module(name)).values()
            if isinstance(compiled_pattern, re.Pattern)
        )


def _text(pattern: str | bytes) -> str:
    return pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern


@functools.cache
def read() -> list[tuple[str, str]]:
    modules = [
        path for folder in ("bot", "handlers", "lab/nightjar_formats") for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    named_modules = [(str(path.relative_to(ROOT)), path) for path in modules]
    return [(name, pattern) for name, path in named_modules if name not in OF_OURS for pattern in compiled(path)]


def gives_back(pattern: Any, *, at_end: bool = True) -> bool:
    """Return whether an unbounded repetition may give back what it matched.

    A repetition at the pattern's end never has to.
    """
    for place, (kind, value) in enumerate(pattern):
        last = at_end and place == len(pattern) - 1
        if kind is kinds.MAX_REPEAT and value[1] is kinds.MAXREPEAT and not last:
            return True
        if kind is kinds.MIN_REPEAT and value[1] is kinds.MAXREPEAT:
            return True
        if any(gives_back(inner, at_end=last and kind is not kinds.MAX_REPEAT) for inner in _inside(value)):
            return True
    return False


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, patterns.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _inside(inner)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a*b", True),
        ("a*+b", False),
        ("ba*", False),
        ("ba*?", True),
        ("(?:ab)++c", False),
        ("(?:a*b)++c", True),
        ("(?:a+)+", True),
        ("a{3,}b", True),
        ("a{3}b?c", False),
        ("x|a*b", True),
        ("(?P<a>a*)", False),
        ("(?P<a>a*)b", True),
        ("a(?!b*c)", True),
    ],
)
def test_a_pattern_that_backtracks_is_detected(pattern: str, expected: bool) -> None:
    assert gives_back(patterns.parse(pattern)) is expected


def test_no_pattern_for_text_from_outside_backtracks() -> None:
    backtracking = [f"{module}: {pattern}" for module, pattern in read() if gives_back(patterns.parse(pattern))]
    assert backtracking == [], "make them possessive, or use bot.core.patterns"


def test_all_modules_that_use_re_are_known() -> None:
    assert {module for module, _ in read()} == {
        "handlers/dashboard/run/log_text.py",
        "handlers/docker_update/images.py",
        "lab/nightjar_formats/readers/junit/case_runs.py",
        "lab/nightjar_formats/readers/json/stream.py",
        "lab/nightjar_formats/readers/decoding/utf_8.py",
        "lab/nightjar_formats/readers/junit/document.py",
        "lab/nightjar_formats/readers/xml/text.py",
    }
