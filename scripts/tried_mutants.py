"""Try small changes to pure modules: give one function the changed code in a fork and run the tests that call it.

The forked process has imported and collected all tests, so a change costs only its tests. No file is changed. What no
quick test detects, conversations try, and last a copy of the tree, if other processes or imports run the function.
"""

from __future__ import annotations

import ast
import importlib
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import libcst
import pytest
from mutmut.mutation.file_mutation import Mutation, create_mutations

from scripts.copied_tree import NOT_STARTED, failure_in_copy, process_tests
from scripts.forked_tests import caches, ended_tests, start_tests
from scripts.imports import ROOT, dotted
from scripts.recorded_calls import PROCESSES, Callers, load_calls, replace_functions

OUT_OF_LIMITS = "the limits of a process"
SOME = 5
"""The most quick tests of a function that run in a copy of the tree for another function of its module."""


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


class Stage(StrEnum):
    """Which tests detect a change."""

    QUICK = "quick tests"
    CONVERSATIONS = "conversations"
    COPY = "tests in a copy of the tree"


class MutantTrials:
    """A plugin of pytest that tries changes with the collected tests instead of running these.

    It counts the changes and those that were detected in each stage, and prints each with the test that detects it.
    """

    def __init__(self, modules: list[str], changes: Sequence[tuple[str, int]], calls_file: Path) -> None:
        self.modules, self.changes, self.calls_file = modules, changes, calls_file
        self.total = 0
        self.detected = Counter[Stage]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the changes. Raise `RuntimeError` if one of the tests fails without a change, too."""
        if session.testsfailed:
            raise RuntimeError("pytest could not import all tests")
        for module in self.modules:
            importlib.import_module(dotted(module))
        _state.callers = load_calls(session, self.modules, self.calls_file)
        _state.session, _state.items = session, {item.nodeid: item for item in session.items}
        detecting: dict[Stage, set[str]] = {stage: set() for stage in Stage}
        with ProcessPoolExecutor(PROCESSES, get_context("fork")) as processes:
            for change, stage, failure in processes.map(_try_change, *zip(*self.changes, strict=True)):
                self.total += 1
                if failure:
                    self.detected[stage] += 1
                    detecting[stage].add(failure)
                sys.stdout.write(f"{change}\n  {failure or 'survived'}\n")
                sys.stdout.flush()
        in_copy = sorted(detecting.pop(Stage.COPY) - {NOT_STARTED})
        in_process = sorted(set().union(*detecting.values()) - {OUT_OF_LIMITS})
        if failure := first_failure(in_process) or failure_in_copy(in_copy):
            raise RuntimeError(f"{failure} fails without a change, too")
        return True


class _State:
    """What the forked processes need and cannot be sent."""

    session: pytest.Session
    items: dict[str, pytest.Item]
    callers: Callers


_state = _State()


def all_changes(modules: list[str]) -> list[tuple[str, int]]:
    """Return every change of the modules: the module and the place of the change among its changes."""
    return [(module, place) for module in modules for place in range(len(_mutations(module)[1]))]


def first_failure(tests: Sequence[str], module: str = "", tree: ast.Module | None = None) -> str:
    """Run tests in a fork, with another tree of a module if there is one; return the first that fails, or nothing."""
    items = [_state.items[test] for test in tests if test in _state.items]
    if not items:
        return ""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        child = start_tests(_state.session, items, Path(folder), FirstFailure(_state.session, module, tree))
        failure = ended_tests(child, Path(folder))
    return OUT_OF_LIMITS if failure is None else str(failure)


def _function_name(module: str, place: int) -> str:
    function = _mutations(module)[1][place].contained_by_top_level_function
    assert function is not None
    return function.name.value


def _try_change(module: str, place: int) -> tuple[str, Stage, str]:
    """Return what a change of a module changes, the last stage that was tried, and the test that detects it there.

    That is an empty text if none does.
    """
    original, mutations = _mutations(module)
    text = original.deep_replace(mutations[place].original_node, mutations[place].mutated_node).code
    lines = _lines_of_change(module, original.code, text)
    before = _cpu_seconds()
    function, tree = f"{module}:{_function_name(module, place)}", ast.parse(text)
    quick, conversations = (stage.get(function, []) for stage in _state.callers)
    stage, failure = Stage.QUICK, first_failure(quick, module, tree)
    if not failure and conversations:
        stage, failure = Stage.CONVERSATIONS, first_failure(conversations, module, tree)
    elsewhere = process_tests(module) or ([] if quick or conversations else _tests_of_module(module))
    if not failure and elsewhere:
        stage, failure = Stage.COPY, failure_in_copy(elsewhere, module, text)
    counts = f"{len(quick)} quick tests, {len(conversations)} conversations"
    return f"{lines}\n  {counts}; {stage}; {_cpu_seconds() - before:.1f} s", stage, failure


def _tests_of_module(module: str) -> list[str]:
    """Return quick tests that call a function of a module: some of each of its functions."""
    some = [tests[:SOME] for name, tests in _state.callers.quick.items() if name.startswith(f"{module}:")]
    return list(dict.fromkeys(chain.from_iterable(some)))


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
