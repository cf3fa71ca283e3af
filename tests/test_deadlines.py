"""How long a test waits for what must come: `tests.waiting.DEADLINE`. A busy machine reaches any shorter limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.running import ROOT

PLACES = {"timeout": 0, "wait_for": 1, "communicate": 1, "run": 9, "until": 9, "wait": 9}
"""Functions of asyncio, subprocess and `tests.waiting` that wait, and where their limit is if it has no name."""
NAMES = {"timeout", "deadline"}
MUST_NOT_COME = 1.0
"""Seconds: a shorter limit is for what must not come."""


def limits(source: str) -> Iterator[tuple[int, float]]:
    """Yield the line and the seconds of each limit that is a number."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in PLACES:
            continue
        place = PLACES[name]
        for limit in [*node.args[place : place + 1], *(value.value for value in node.keywords if value.arg in NAMES)]:
            if isinstance(limit, ast.Constant) and isinstance(limit.value, int | float):
                yield node.lineno, limit.value


@pytest.mark.parametrize(
    "wait",
    [
        "asyncio.timeout({})",
        "asyncio.wait_for(end(), {})",
        "asyncio.wait([end], timeout={})",
        "subprocess.run([], timeout={})",
        "until(condition, deadline={})",
    ],
)
def test_a_limit_of_its_own_is_found(wait: str) -> None:
    assert list(limits(wait.format(30))) == [(1, 30)]
    assert list(limits(wait.format("DEADLINE"))) == []


def test_no_test_has_a_limit_of_its_own() -> None:
    numbers = [
        f"{path.relative_to(ROOT)}:{line}: {seconds:g} s"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, seconds in limits(path.read_text())
        if seconds > MUST_NOT_COME
    ]
    assert not numbers, "wait for DEADLINE of tests.waiting, since a busy machine takes longer:\n" + "\n".join(numbers)
