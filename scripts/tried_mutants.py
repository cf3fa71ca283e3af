"""Try small changes to pure modules: give one function the changed code in a fork and run the tests that call it.

The forked process has imported and collected all quick tests, so a change costs only its tests. No file is changed.
"""

from __future__ import annotations

import ast
import importlib
import resource
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import libcst
import pytest
from mutmut.mutation.file_mutation import Mutation, create_mutations

from scripts.forked_tests import caches, ended_tests, start_tests
from scripts.imports import ROOT, dotted
from scripts.recorded_calls import PROCESSES, load_calls, replace_functions

OUT_OF_LIMITS = "the limits of a process"


class FirstFailure:
    """A plugin of pytest that changes a module and stops at the first test that fails."""

    def __init__(self, session: pytest.Session, module: str = "", tree: ast.Module | None = None) -> None:
        self.session = session
        self.module, self.tree = module, tree
        self.test = ""

    def begin(self) -> None:
        """Change the module."""
        if self.tree:
            replace_functions(self.module, self.tree)
        for empty in caches():
            empty()

    def result(self) -> object:
        """Return the test that failed, or an empty text."""
        return self.test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test that fails."""
        if report.failed:
            self.test = self.test or report.nodeid
            self.session.shouldstop = "a test failed"


class MutantTrials:
    """A plugin of pytest that tries changes with the collected tests instead of running these.

    It counts the changes and those that were detected, and prints each with the test that detects it.
    """

    def __init__(self, modules: list[str], changes: Sequence[tuple[str, int]], calls_file: Path) -> None:
        self.modules, self.changes, self.calls_file = modules, changes, calls_file
        self.detected = self.total = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the changes. Raise `RuntimeError` if one of the tests fails without a change, too."""
        if session.testsfailed:
            raise RuntimeError("pytest could not import all tests")
        for module in self.modules:
            importlib.import_module(dotted(module))
        calls = load_calls(session, self.modules, self.calls_file)
        _state.session, _state.items = session, {item.nodeid: item for item in session.items}
        tests = [calls.get(f"{module}:{_function_name(module, place)}", []) for module, place in self.changes]
        detecting = set()
        with ProcessPoolExecutor(PROCESSES, get_context("fork")) as processes:
            for change, failure in processes.map(_try_change, *zip(*self.changes, strict=True), tests):
                self.total += 1
                self.detected += bool(failure)
                detecting.add(failure)
                sys.stdout.write(f"{change}\n  {failure or 'survived'}\n")
                sys.stdout.flush()
        if failure := first_failure(sorted(detecting - {"", OUT_OF_LIMITS})):
            raise RuntimeError(f"{failure} fails without a change, too")
        return True


class _State:
    """What the forked processes need and cannot be sent."""

    session: pytest.Session
    items: dict[str, pytest.Item]


_state = _State()


def all_changes(modules: list[str]) -> list[tuple[str, int]]:
    """Return every change of the modules: the module and the place of the change among its changes."""
    return [(module, place) for module in modules for place in range(len(_mutations(module)[1]))]


def first_failure(tests: Sequence[str], module: str = "", tree: ast.Module | None = None) -> str:
    """Run tests in a fork, with another tree of a module if there is one; return the first that fails, or nothing."""
    items = [_state.items[test] for test in tests if test in _state.items]
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        child = start_tests(_state.session, items, Path(folder), FirstFailure(_state.session, module, tree))
        failure = ended_tests(child, Path(folder))
    return OUT_OF_LIMITS if failure is None else str(failure)


def _function_name(module: str, place: int) -> str:
    function = _mutations(module)[1][place].contained_by_top_level_function
    assert function is not None
    return function.name.value


def _try_change(module: str, place: int, tests: Sequence[str]) -> tuple[str, str]:
    """Return what a change of a module changes, and the test that detects it or an empty text."""
    original, mutations = _mutations(module)
    text = original.deep_replace(mutations[place].original_node, mutations[place].mutated_node).code
    lines = _lines_of_change(module, original.code, text)
    before = _cpu_seconds()
    failure = first_failure(tests, module, ast.parse(text)) if tests else ""
    return f"{lines}\n  {len(tests)} tests, {_cpu_seconds() - before:.1f} s", failure


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@lru_cache(maxsize=20)
def _mutations(module: str) -> tuple[libcst.Module, list[Mutation]]:
    tree, mutations, *_ = create_mutations(module, (ROOT / module).read_text())
    functions = libcst.FunctionDef
    return tree, [each for each in mutations if isinstance(each.contained_by_top_level_function, functions)]


def _lines_of_change(module: str, original: str, text: str) -> str:
    _, _, place, *lines = unified_diff(original.splitlines(), text.splitlines(), n=0, lineterm="")
    changed = [f"  {line[0]} {line[1:]}" for line in lines]
    return "\n".join([f"{module} {place}", *changed])
