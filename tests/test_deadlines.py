"""How long a test waits for what must come: `tests.waiting.DEADLINE`. A busy machine reaches any shorter limit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.running import ROOT

PLACES = {"timeout": 0, "wait_for": 1, "communicate": 1, "run": 9, "until": 9, "wait": 0, "join": 0, "Limits": 2}
"""What waits (asyncio, processes, threads, `until`) or gives the product a limit, and where that is without a name."""
NAMES = {"timeout", "deadline", "wall"}
MUST_NOT_COME = 1.0
"""Seconds: a shorter limit is for what must not come."""


STOPWATCHES = {"monotonic", "perf_counter"}
PATIENT = ROOT / "tests/browser/conftest.py"
"""The module that gives Playwright its limit."""


def limits(source: str) -> Iterator[tuple[int, float]]:
    """Yield the line and the seconds of each limit that is a number, or the name of one in the same module."""
    module = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in PLACES:
            continue
        place = PLACES[name]
        for limit in [*node.args[place : place + 1], *(value.value for value in node.keywords if value.arg in NAMES)]:
            seconds = constants.get(limit.id) if isinstance(limit, ast.Name) else getattr(limit, "value", None)
            if isinstance(seconds, int | float):
                yield node.lineno, seconds


def measured(source: str) -> Iterator[int]:
    """Yield the line of each assertion about the time that something took."""
    if not any(name in source for name in STOPWATCHES):
        return  # parsing takes twenty times as long as reading
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            calls = {name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)}
            if calls & STOPWATCHES:
                yield node.lineno


@pytest.mark.parametrize(
    "wait",
    [
        "asyncio.timeout({})",
        "asyncio.wait_for(end(), {})",
        "asyncio.wait([end], timeout={})",
        "subprocess.run([], timeout={})",
        "until(condition, deadline={})",
        "process.wait({})",
        "thread.join({})",
        "Limits(name, 60, {}, 1 << 30)",
    ],
)
def test_a_limit_of_its_own_is_found(wait: str) -> None:
    assert list(limits(wait.format(30))) == [(1, 30)]
    assert list(limits(f"LONGEST = 30\n{wait.format('LONGEST')}")) == [(2, 30)]
    assert list(limits(wait.format("DEADLINE"))) == []


def test_an_assertion_about_a_duration_is_found() -> None:
    assert list(measured("began = time.monotonic()\nassert time.monotonic() - began < 10")) == [2]
    assert list(measured("assert time.time() >= moment")) == []


def test_no_test_has_a_limit_of_its_own() -> None:
    numbers = [
        f"{path.relative_to(ROOT)}:{line}: {seconds:g} s"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, seconds in limits(path.read_text())
        if seconds > MUST_NOT_COME
    ]
    assert not numbers, "wait for DEADLINE of tests.waiting, since a busy machine takes longer:\n" + "\n".join(numbers)


def test_no_test_asserts_how_long_something_takes() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line in measured(path.read_text())
    ]
    assert not lines, "show by what happened that it did not wait, since a busy machine takes longer:\n" + "\n".join(
        lines
    )


def test_each_profile_of_the_browser_waits_as_long_as_the_tests() -> None:
    opening = re.compile(r"browser\.new_context\b")
    modules = [path for path in (ROOT / "tests/browser").glob("*.py") if opening.search(path.read_text())]
    assert modules == [PATIENT], "open a profile with `profile` of tests.browser.conftest"


def test_nobody_waits_in_a_way_that_may_ignore_a_cancellation() -> None:
    """`asyncio.wait_for` may, up to Python 3.11. Ruff bans it in the product, and looks at no bans elsewhere."""
    folders = ("sandbox", "benchmarks", "scripts")
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in modules if "asyncio.wait_for" in path.read_text()] == []
