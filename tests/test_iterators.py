"""No code takes the next item of something that may have none: StopIteration ends whatever loop or task it passes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from nightjar_formats.items import first_of

ROOT = Path(__file__).parents[1]
MODULES = [path for folder in ("bot", "handlers", "lab") for path in sorted((ROOT / folder).rglob("*.py"))]


def unguarded(source: str) -> Iterator[int]:
    """Yield the lines that call `next` or `anext` without a default, or `__next__`."""
    if "next" not in source:
        return  # parsing takes twenty times as long as reading
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            is_builtin = isinstance(called, ast.Name) and called.id in ("next", "anext")
            if (is_builtin and len(node.args) < 2) or (isinstance(called, ast.Attribute) and called.attr == "__next__"):
                yield node.lineno


def test_no_module_takes_the_next_item_without_a_default() -> None:
    lines = [f"{path.relative_to(ROOT)}:{line}" for path in MODULES for line in unguarded(path.read_text())]
    assert lines == [], "use first_of, or give next a default"


@pytest.mark.parametrize(
    ("source", "lines"),
    [("next(a)", [1]), ("next(a, None)", []), ("a\nanext(b)", [2]), ("a.__next__()", [1]), ("a.next()", [])],
)
def test_each_call_without_a_default_is_seen(source: str, lines: list[int]) -> None:
    assert list(unguarded(source)) == lines


def test_the_first_of_nothing_is_an_error_that_no_loop_swallows() -> None:
    assert first_of(iter([0, 1])) == 0
    with pytest.raises(IndexError):
        [first_of([]) for _ in range(1)]
