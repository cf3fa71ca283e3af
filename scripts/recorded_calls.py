"""Record which tests call which functions of the pure modules.

Imports say too little: a part of a page or of a reader is called by tests that import only the page or the reader.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import Any

import pytest

from scripts.imports import ROOT, dotted
from scripts.pure_modules import recorded_tests

ARGUMENTS = (
    "-p",
    "no:xdist",
    "-p",
    "no:cov",
    "-p",
    "no:cacheprovider",
    "-p",
    "scripts.cold_caches",
    "-W",
    "default",
    "-m",
    "not alone",
)
RECORDER = "_record_call"
"""The name of the function that recorded functions call."""
PROCESSES = 2
MOST_CALLERS, LONGEST_ID = 200, 300
"""How many tests of a function are recorded, and characters of the ID of one: some repeat the whole input."""


class CallRecorder:
    """A plugin of pytest that remembers the tests that call each function, as `bot/core/urls.py:name`."""

    def __init__(self) -> None:
        self.called = set[str]()
        self.tests: dict[str, list[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Remember what a test and its fixtures call."""
        self.called.clear()
        result = yield
        if len(item.nodeid) <= LONGEST_ID:
            for function in self.called:
                self.tests.setdefault(function, []).append(item.nodeid)
        return result


def load_calls(modules: list[str], file: Path) -> dict[str, list[str]]:
    """Return tests that call functions of each name in a module, those that call the fewest functions first.

    Read them from a file; if there is none, run the tests and write it. The tests must have been imported.
    """
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(_narrowest_first(_record(modules))))
    calls: dict[str, list[str]] = json.loads(file.read_text())
    return calls


def _narrowest_first(calls: Mapping[str, list[str]]) -> dict[str, list[str]]:
    breadth = Counter(test for tests in calls.values() for test in tests)
    return {
        function: sorted(tests, key=lambda test: (breadth[test], test))[:MOST_CALLERS]
        for function, tests in calls.items()
    }


def _record(modules: list[str]) -> dict[str, list[str]]:
    """Run the tests in some processes at once and join what they record."""
    calls: dict[str, list[str]] = {}
    tests = recorded_tests()
    with TemporaryDirectory() as folder:
        files = [Path(folder) / str(process) for process in range(PROCESSES)]
        children = [_forked(modules, tests[place::PROCESSES], file) for place, file in enumerate(files)]
        for child, file in zip(children, files, strict=True):
            if os.waitpid(child, 0)[1]:
                raise RuntimeError("pytest could not run the tests that are recorded")
            for function, names in json.loads(file.read_text()).items():
                calls.setdefault(function, []).extend(names)
    return calls


def _forked(modules: list[str], tests: list[str], file: Path) -> int:
    """Run tests in a fork, which writes to a file what they call; return its ID."""
    sys.stdout.flush()
    if not (child := os.fork()):
        try:
            recorder = CallRecorder()
            for module in modules:
                _let_functions_record(module, recorder)
            silence()
            pytest.main(["-q", "--timeout", "180", *ARGUMENTS, *tests], plugins=[recorder])
            file.write_text(json.dumps(recorder.tests))
            os._exit(0)
        finally:
            os._exit(1)
    return child


def silence() -> None:
    """Let this process print nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _let_functions_record(module: str, recorder: CallRecorder) -> None:
    """Let each function of an imported module that a change can replace name itself whenever it is called."""
    if not (loaded := sys.modules.get(dotted(module))):
        return
    tree = ast.parse((ROOT / module).read_text())
    for _, function in _functions(tree):
        call = ast.parse(f"{RECORDER}({f'{module}:{function.name}'!r})").body[0]
        function.body.insert(0, call)
    setattr(loaded, RECORDER, recorder.called.add)
    replace_functions(module, ast.fix_missing_locations(tree))


def replace_functions(module: str, tree: ast.Module) -> None:
    """Give the functions of an imported module the code and the defaults that another tree of the module has."""
    names = vars(sys.modules[dotted(module)])
    codes, nodes = dict(_codes(compile(tree, module, "exec", dont_inherit=True))), dict(_functions(tree))
    for name in changed_functions(module, tree):
        function: Any = sys.modules[dotted(module)]
        for part in name.split("."):
            function = vars(function)[part]
        function = inspect.unwrap(getattr(function, "__func__", function))
        assert isinstance(function, FunctionType), name
        arguments = nodes[name].args
        function.__code__ = codes[name]
        function.__defaults__ = tuple(_value(value, names) for value in arguments.defaults) or None
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        function.__kwdefaults__ = {argument.arg: _value(value, names) for argument, value in pairs if value} or None


def changed_functions(module: str, tree: ast.Module) -> list[str]:
    """Return the functions and methods that differ from those of the module's file, by name: `Ledger.learn`."""
    before = {name: ast.dump(node) for name, node in _functions(ast.parse((ROOT / module).read_text()))}
    return [name for name, node in _functions(tree) if ast.dump(node) != before[name]]


def _value(expression: ast.expr, names: dict[str, object]) -> object:
    return eval(compile(ast.Expression(expression), "default", "eval"), names)  # noqa: S307 - a default of our own code


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant.co_qualname, constant
            else:  # the body of a class
                yield from _codes(constant)


def _functions(parent: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions and methods of a module that a change can replace: not properties and cached functions."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef) and all(_is_plain(decorator) for decorator in node.decorator_list):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _is_plain(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("classmethod", "staticmethod")
