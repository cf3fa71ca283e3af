"""Record which tests call which functions of the pure modules.

Imports say too little: a part of a page or of a reader is called by tests that import only the page or the reader.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from scripts.forked_tests import caches, ended_tests, start_tests
from scripts.imports import ROOT, dotted
from scripts.pure_modules import CONVERSATIONS

RECORDER = "_record_call"
"""The name of the function that recorded functions call."""
PROCESSES = 2
MOST_SECONDS = 20.0
"""The CPU time that the quick tests of one function may take together."""
MOST_SECONDS_OF_CONVERSATIONS = 120.0
"""The CPU time that the conversations that call one function may take together."""
FAST = 0.5
"""Seconds of a test that runs before slower ones, however many other functions it calls."""


class CallRecord(NamedTuple):
    """A test: the CPU time it took and the functions it called, as `bot/core/urls.py:name`; none if it failed."""

    test: str
    seconds: float
    functions: list[str]


class CallRecorder:
    """A plugin of pytest that adds a record of each test to a file."""

    def __init__(self, modules: Sequence[str], file: Path) -> None:
        self.modules, self.file = modules, file
        self.called = set[str]()
        self.failed = set[str]()

    def begin(self) -> None:
        """Let the functions of the modules name themselves."""
        for module in self.modules:
            _let_functions_record(module, self)
        self.caches = caches()

    def result(self) -> object:
        """Return nothing more."""
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test that fails: it would fail with each change."""
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record what a test and its fixtures call."""
        for empty in self.caches:
            empty()
        self.called.clear()
        start = time.process_time()
        result = yield
        functions = [] if item.nodeid in self.failed else sorted(self.called)
        _add(CallRecord(item.nodeid, time.process_time() - start, functions), self.file)
        return result


class Callers(NamedTuple):
    """The tests that call functions of each name in a module, in the order in which to run them."""

    quick: dict[str, list[str]]
    conversations: dict[str, list[str]]


def load_calls(session: pytest.Session, modules: list[str], file: Path) -> Callers:
    """Read from a file what tests call; run those that it lacks and add them, quick ones first.

    A record that names a function that the modules no longer have is replaced: its test may call another one instead.
    """
    file.parent.mkdir(exist_ok=True)
    file.touch()
    _remove_outdated(modules, file)
    tests = sorted(session.items, key=lambda test: test.nodeid.startswith(CONVERSATIONS))
    while missing := _missing(tests, file):
        _record(missing, session, modules, file)
    records = _records(file)
    conversations = [record for record in records if record.test.startswith(CONVERSATIONS)]
    quick = [record for record in records if not record.test.startswith(CONVERSATIONS)]
    return Callers(callers(quick, MOST_SECONDS), callers(conversations, MOST_SECONDS_OF_CONVERSATIONS))


def _remove_outdated(modules: Sequence[str], file: Path) -> None:
    functions = {
        f"{module}:{function.name}"
        for module in modules
        for _, function in _functions(ast.parse((ROOT / module).read_text()))
    }
    records = [record for record in _records(file) if functions.issuperset(record.functions)]
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def _missing(tests: Sequence[pytest.Item], file: Path) -> list[pytest.Item]:
    recorded = {record.test for record in _records(file)}
    return [test for test in tests if test.nodeid not in recorded]


def _add(record: CallRecord, file: Path) -> None:
    with file.open("a") as lines:
        lines.write(f"{json.dumps(record)}\n")


def _records(file: Path) -> list[CallRecord]:
    return [CallRecord(*json.loads(line)) for line in file.read_text().splitlines()]


def callers(records: Sequence[CallRecord], most_seconds: float) -> dict[str, list[str]]:
    """Return the tests that call each function: fast ones first, and of those the ones that call the fewest functions.

    Tests beyond so many seconds of CPU time are left out.
    """
    tests: dict[str, list[str]] = {}
    seconds: dict[str, float] = defaultdict(float)
    for record in sorted(records, key=lambda record: (record.seconds > FAST, len(record.functions), record.test)):
        for function in record.functions:
            if seconds[function] < most_seconds:
                seconds[function] += record.seconds
                tests.setdefault(function, []).append(record.test)
    return tests


def _record(tests: Sequence[pytest.Item], session: pytest.Session, modules: list[str], file: Path) -> None:
    """Run tests in some processes at once, all tests of a file in one of them.

    A test at which a signal ends its process counts as one that calls nothing, and those after it are not recorded yet.
    """
    files = list(dict.fromkeys(test.path for test in tests))
    with TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        children = []
        for process in range(min(PROCESSES, len(files))):
            folder = Path(parent) / str(process)
            folder.mkdir(mode=0o755)
            chosen = set(files[process::PROCESSES])
            part = [test for test in tests if test.path in chosen]
            children.append((start_tests(session, part, folder, CallRecorder(modules, file)), folder, part))
        for child, folder, part in children:
            if ended_tests(child, folder) is None:
                for test in _missing(part, file)[:1]:
                    _add(CallRecord(test.nodeid, 0.0, []), file)


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
