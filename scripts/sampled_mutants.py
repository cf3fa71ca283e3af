"""Try a random sample of the small changes to all pure modules: `python -m scripts.mutants --sample 150 --seed 1`.

This process imports the tests of the sample and what they test. For each change, a fork of it gives one function the
changed code and runs the quick tests of the module. No file is changed.
"""

from __future__ import annotations

import ast
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile

import libcst
import pytest
from mutmut.mutation.file_mutation import Mutation, create_mutations

from scripts.imports import ROOT
from scripts.pure_modules import quick_tests, recorded_tests
from scripts.recorded_calls import ARGUMENTS, PROCESSES, load_calls, replace_functions, silence

MEMORY, CPU_SECONDS = 8 << 30, 600
"""Limits of one fork: a change can make a loop endless."""
FIRST_CALLERS = 30
"""How many tests that call the changed function run first: those that call the fewest other functions."""
OUT_OF_LIMITS = "the limits of a process"


class FirstFailure:
    """The first test that fails, or the first file of tests that cannot be imported: a plugin of pytest."""

    def __init__(self) -> None:
        self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test that fails."""
        if report.failed:
            self.test = self.test or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember a file that cannot be imported."""
        if report.failed:
            self.test = self.test or report.nodeid


class SelectedTests:
    """The tests to run, or whole files of them: a plugin of pytest."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.tests = frozenset(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the other tests."""
        items[:] = [item for item in items if not self.tests.isdisjoint((item.nodeid, _file_of(item.nodeid)))]


def try_sample(modules: list[str], size: int, seed: int, calls_file: Path) -> Iterator[tuple[str, str]]:
    """Yield for each change of a sample what it changes, and the test that detects it or an empty text.

    Raise `RuntimeError` if one of these tests fails without a change, too.
    """
    population = [(module, place) for module in sorted(modules) for place in range(len(_mutations(module)[1]))]
    sample = sorted(Random(seed).sample(population, size))  # noqa: S311 - not for secrets
    sampled = sorted({module for module, _ in sample})
    sys.stdout.write(f"{size} of {len(population)} changes, in {len(sampled)} of {len(modules)} modules\n")
    if code := pytest.main(["--collect-only", "-qqq", *ARGUMENTS, *recorded_tests()]):
        raise RuntimeError(f"pytest could not import the tests: {code}")
    calls = load_calls(modules, calls_file)
    callers = [calls.get(f"{module}:{_function_name(module, place)}", ()) for module, place in sample]
    detecting = set()
    with ProcessPoolExecutor(PROCESSES, get_context("fork")) as processes:
        for change, failure in processes.map(_try_change, *zip(*sample, strict=True), callers):
            detecting.add(failure)
            yield change, failure
    if failure := first_failure(sorted(detecting - {"", OUT_OF_LIMITS})):
        raise RuntimeError(f"{failure} fails without a change, too")


def _function_name(module: str, place: int) -> str:
    function = _mutations(module)[1][place].contained_by_top_level_function
    assert function is not None
    return function.name.value


def _try_change(module: str, place: int, callers: Sequence[str]) -> tuple[str, str]:
    """Return what a change of a module changes, and the test that detects it or an empty text.

    The tests that call the function come first. If these are few, those that import the module follow: they also see
    what a cached function made of it in an earlier test.
    """
    original, mutations = _mutations(module)
    text = original.deep_replace(mutations[place].original_node, mutations[place].mutated_node).code
    first, others = callers[:FIRST_CALLERS], callers[FIRST_CALLERS:] or quick_tests(module)
    failure = first_failure(first, module, ast.parse(text)) if first else ""
    return _lines_of_change(module, original.code, text), failure or first_failure(others, module, ast.parse(text))


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def first_failure(tests: Sequence[str], module: str = "", tree: ast.Module | None = None) -> str:
    """Run tests, or all of their files, in a fork, with another tree of a module if there is one.

    Return the first that fails, or nothing.
    """
    sys.stdout.flush()
    with NamedTemporaryFile("r+") as result:
        if not (child := os.fork()):
            try:
                if tree:
                    replace_functions(module, tree)
                _run(tests, Path(result.name))
            finally:
                os._exit(1)
        ended_well = os.waitpid(child, 0)[1] == 0
        return result.read() if ended_well else OUT_OF_LIMITS


def _run(tests: Sequence[str], result: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    silence()
    failure = FirstFailure()
    files = sorted(set(map(_file_of, tests)))
    code = pytest.main(["-x", "-q", "--timeout", "180", *ARGUMENTS, *files], plugins=[failure, SelectedTests(tests)])
    is_well = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    result.write_text(failure.test or ("" if is_well else f"pytest: {code}"))
    os._exit(0)


@lru_cache(maxsize=1)
def _mutations(module: str) -> tuple[libcst.Module, list[Mutation]]:
    tree, mutations, *_ = create_mutations(module, (ROOT / module).read_text())
    functions = libcst.FunctionDef
    return tree, [each for each in mutations if isinstance(each.contained_by_top_level_function, functions)]


def _lines_of_change(module: str, original: str, text: str) -> str:
    _, _, place, *lines = unified_diff(original.splitlines(), text.splitlines(), n=0, lineterm="")
    changed = [f"  {line[0]} {line[1:]}" for line in lines]
    return "\n".join([f"{module} {place}", *changed])
