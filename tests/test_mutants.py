"""`make mutants` covers every pure module."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from scripts.pure_modules import pure_modules, quick_tests

ROOT = Path(__file__).parents[1]
COVERED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]["include"]
# One worker parses all files, once.
pytestmark = pytest.mark.xdist_group("source")


@cache
def pure() -> list[str]:
    """Return the pure modules: not when tests are collected, which other processes do too."""
    return pure_modules()


def test_the_modules_that_coverage_measures_exist() -> None:
    assert [pattern for pattern in COVERED if not list(ROOT.glob(pattern))] == []


@pytest.mark.parametrize(
    "module",
    [
        "bot/core/patterns.py",
        "bot/engine/retry.py",
        "bot/github/text/mentions.py",
        "bot/results/compare/flaky.py",
        "handlers/regressions/decide.py",
        "handlers/merge/readiness.py",
        "handlers/teams/topics.py",
        "lab/nightjar_formats/runs/identity.py",
    ],
)
def test_a_module_that_decides_without_io_is_pure(module: str) -> None:
    assert module in pure()
    assert quick_tests(module)


@pytest.mark.parametrize(
    "module",
    ["bot/engine/worker/tasks.py", "bot/github/client.py", "handlers/merge/commands.py", "bot/config/load.py"],
)
def test_a_module_that_reads_or_writes_is_not_pure(module: str) -> None:
    assert module not in pure()


def test_every_pure_module_has_quick_tests() -> None:
    assert [module for module in pure() if not quick_tests(module)] == []
