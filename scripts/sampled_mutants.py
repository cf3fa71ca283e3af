"""Try a random sample of the small changes to all pure modules: `python -m scripts.mutants --sample 150 --seed 1`.

This process imports the tests of the sample and what they test. For each change, a fork of it gives one function the
changed code and runs the quick tests of the module. No file is changed.
"""

from __future__ import annotations

import ast
import inspect
import os
import resource
import sys
from collections.abc import Iterator
from difflib import unified_diff
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType

import libcst
import pytest
from mutmut.mutation.file_mutation import Mutation, create_mutations

from scripts.imports import ROOT, dotted
from scripts.pure_modules import quick_tests

ARGUMENTS = ("-p", "no:xdist", "-p", "no:cov", "-p", "no:cacheprovider", "-p", "scripts.cold_caches", "-W", "default")
MEMORY, CPU_SECONDS = 8 << 30, 600
"""Limits of one fork: a change can make a loop endless."""
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


def try_sample(modules: list[str], size: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield for each change of a sample what it changes, and the test that detects it or an empty text.

    Raise `RuntimeError` if one of these tests fails without a change, too.
    """
    population = [(module, place) for module in sorted(modules) for place in range(len(_mutations(module)[1]))]
    sample = sorted(Random(seed).sample(population, size))  # noqa: S311 - not for secrets
    sampled = sorted({module for module, _ in sample})
    sys.stdout.write(f"{size} of {len(population)} changes, in {len(sampled)} of {len(modules)} modules\n")
    tests = sorted({test for module in sampled for test in quick_tests(module)})
    if code := pytest.main(["--collect-only", "-qqq", *ARGUMENTS, *tests]):
        raise RuntimeError(f"pytest could not import the tests: {code}")
    detecting = set()
    for module, place in sample:
        original, mutations = _mutations(module)
        text = original.deep_replace(mutations[place].original_node, mutations[place].mutated_node).code
        failure = first_failure(quick_tests(module), module, text)
        detecting.add(failure)
        yield _lines_of_change(module, original.code, text), failure
    if failure := first_failure(sorted(detecting - {"", OUT_OF_LIMITS})):
        raise RuntimeError(f"{failure} fails without a change, too")


def first_failure(tests: list[str], module: str = "", text: str = "") -> str:
    """Run tests in a fork, with another text of a module if there is one; return the first that fails, or nothing."""
    sys.stdout.flush()
    with NamedTemporaryFile("r+") as result:
        if not (child := os.fork()):
            try:
                _run(tests, module, text, Path(result.name))
            finally:
                os._exit(1)
        ended_well = os.waitpid(child, 0)[1] == 0
        return result.read() if ended_well else OUT_OF_LIMITS


def _run(tests: list[str], module: str, text: str, result: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    if module:
        _change(module, text)
    failure = FirstFailure()
    code = pytest.main(["-x", "-q", "--timeout", "180", *ARGUMENTS, *tests], plugins=[failure])
    result.write_text(failure.test or ("" if code == pytest.ExitCode.OK else f"pytest: {code}"))
    os._exit(0)


def _change(module: str, text: str) -> None:
    """Give the functions of an imported module the code and the defaults that another text of the module has."""
    loaded = sys.modules[dotted(module)]
    before, after = _functions((ROOT / module).read_text()), _functions(text)
    for name, (code, arguments) in after.items():
        if (code, ast.dump(arguments)) == (before[name][0], ast.dump(before[name][1])):
            continue
        function = loaded
        for part in name.split("."):
            function = vars(function)[part]
        function = inspect.unwrap(getattr(function, "__func__", function))
        assert isinstance(function, FunctionType), name
        function.__code__ = code
        names = vars(loaded)
        function.__defaults__ = tuple(_value(value, names) for value in arguments.defaults) or None
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        function.__kwdefaults__ = {argument.arg: _value(value, names) for argument, value in pairs if value} or None


def _value(expression: ast.expr, names: dict[str, object]) -> object:
    return eval(compile(ast.Expression(expression), "default", "eval"), names)  # noqa: S307 - a default of our own code


def _functions(text: str) -> dict[str, tuple[CodeType, ast.arguments]]:
    """Return the code and the arguments of each function and method, by name: `Ledger.learn`."""
    codes = dict(_codes(compile(text, "module", "exec", dont_inherit=True)))
    return {name: (codes[name], arguments) for name, arguments in _arguments(ast.parse(text), "") if name in codes}


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant.co_qualname, constant
            else:  # the body of a class
                yield from _codes(constant)


def _arguments(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.arguments]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node.args
        elif isinstance(node, ast.ClassDef):
            yield from _arguments(node, f"{prefix}{node.name}.")


@lru_cache(maxsize=1)
def _mutations(module: str) -> tuple[libcst.Module, list[Mutation]]:
    tree, mutations, *_ = create_mutations(module, (ROOT / module).read_text())
    functions = libcst.FunctionDef
    return tree, [each for each in mutations if isinstance(each.contained_by_top_level_function, functions)]


def _lines_of_change(module: str, original: str, text: str) -> str:
    _, _, place, *lines = unified_diff(original.splitlines(), text.splitlines(), n=0, lineterm="")
    changed = [f"  {line[0]} {line[1:]}" for line in lines]
    return "\n".join([f"{module} {place}", *changed])
