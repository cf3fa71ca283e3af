"""Mistakes in declarations and decorators are errors that name the line and the remedy, and never skip a test."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from nightjar_lab.pytest import Target, exclude_targets, known_failing_targets, parametrize_targets, requires
from nightjar_lab.pytest.targets import TargetUseError, kind_of, named_targets, read_declaration

from tests.lab.plugin.project import Project

EXAMPLE = '@{}("llvm", "cuda")'


@pytest.mark.parametrize(
    ("decorator", "names", "message"),
    [
        (parametrize_targets, [("llvm", "cuda")], "takes each target name as an argument of its own, not ('llvm'"),
        (parametrize_targets, [["llvm"]], "not ['llvm']"),
        (parametrize_targets, ["llvm;cuda"], "has several targets in one string, 'llvm;cuda'"),
        (parametrize_targets, ["llvm", " "], "not ' '"),
        (exclude_targets, [("llvm",)], "not ('llvm',)"),
        (exclude_targets, [], "needs at least one name"),
        (known_failing_targets, [1], "not 1"),
        (known_failing_targets, [lambda: None], "not <function"),
        (requires, [], "needs at least one name"),
        (requires, [["cuda"]], "not ['cuda']"),
    ],
)  # fmt: skip
def test_a_decorator_only_takes_names(decorator: Callable[..., Any], names: list[object], message: str) -> None:
    with pytest.raises(TargetUseError) as raised:
        decorator(*names)
    text = str(raised.value)
    assert re.match(rf".*test_mistakes\.py:\d+: {decorator.__name__} ", text)
    assert message in text
    assert text.endswith(f"Write: {EXAMPLE.format(decorator.__name__)}")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            (Target("llvm"),),
            "nightjar_targets must be a list of one or more targets, but is the tuple (Target('llvm'),)",
        ),
        ("llvm;cuda", "nightjar_targets must be a list of one or more targets, but is the str 'llvm;cuda'"),
        (Target("llvm"), "nightjar_targets must be a list of one or more targets, but is the Target Target('llvm')"),
        ([Target("llvm"), "cuda"], "nightjar_targets must be a list of one or more targets, but is the list ['cuda']"),
        ([], "nightjar_targets must be a list of one or more targets, but is the list []"),
        ([Target("llvm"), Target(" llvm ")], "has several targets with one name: llvm"),
        ([Target("cuda", parents=["gpu"]), Target("gpu")], 'the target "cuda" has the parent "gpu"'),
    ],
)
def test_a_declaration_must_be_a_list_of_targets(declared: object, message: str) -> None:
    with pytest.raises(TargetUseError, match=re.escape(message)):
        read_declaration(declared, "/nowhere/conftest.py")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: Target(("cuda",)), "the name of a target must be a string, not ('cuda',)"),  # type: ignore[arg-type]
        (lambda: Target(""), "not ''"),
        (lambda: Target("cuda", enabled="yes"), """enabled of the target "cuda" must be true, false or"""),  # type: ignore[arg-type]
        (lambda: Target("cuda", device=1), 'device of the target "cuda" must be a function that returns a device'),  # type: ignore[arg-type]
        (lambda: Target("cuda", parents="gpu"), """parents of the target "cuda" must be a list, not 'gpu'"""),
        (lambda: Target("cuda", marks=pytest.mark.no_cover), 'marks of the target "cuda" must be a list'),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_target_must_have_usable_values(mistake: Callable[[], Target], message: str) -> None:
    with pytest.raises(TargetUseError, match=rf"test_mistakes\.py:\d+: .*{re.escape(message)}"):
        mistake()


def test_pytest_stops_at_once_after_a_wrong_declaration(project: Project) -> None:
    project.write(conftest='import os\n\nnightjar_targets = "llvm"\n', test_one="def test_it(): pass")
    run = project.run()
    assert run.status == 4
    line = f"{project.pytester.path}/conftest.py:3"
    assert f"ERROR: {line}: nightjar_targets must be a list of one or more targets, but is the str 'llvm'." in run.text


@pytest.mark.parametrize("workers", [0, 2])
def test_a_decorator_with_an_undeclared_target_is_an_error_of_its_file(project: Project, workers: int) -> None:
    project.write(
        conftest='from nightjar_lab.pytest import Target\nnightjar_targets = [Target("llvm"), Target("cuda -x")]',
        test_one="from nightjar_lab.pytest import *\n\n@exclude_targets('lvm')\ndef test_it(target): pass",
        test_two="from nightjar_lab.pytest import *\n\n@requires('coda')\nclass TestIt:\n    def test_it(self): pass",
        test_three="from nightjar_lab.pytest import *\n\n@parametrize_targets('cuda')\ndef test_it(target): pass",
    )
    run = project.run(workers=workers)
    assert run.status == 2 if not workers else run.status in (1, 2)
    path = project.pytester.path
    declared = f"{path}/conftest.py:2 does not declare; available: llvm, cuda -x. Correct the name, or declare it."
    for file, decorator, name in [("test_one", "exclude_targets", "lvm"), ("test_two", "requires", "coda")]:
        assert f'{path}/{file}.py:3: {decorator} names the target "{name}", which {declared}' in run.text
    assert "test_three" not in run.text.partition("short test summary")[2]


def test_a_bare_decorator_without_a_configured_target_is_an_error(project: Project) -> None:
    project.write(test_one="from nightjar_lab.pytest import *\n\n@parametrize_targets\ndef test_it(target): pass")
    run = project.run()
    assert run.status == 2
    assert (
        f"{project.pytester.path}/test_one.py:3: the test needs all configured targets, but there are none." in run.text
    )


@pytest.mark.parametrize(
    ("environ", "variable", "names"),
    [
        ({}, "", ()),
        ({"NIGHTJAR_TEST_TARGETS": " ; ;"}, "", ()),
        (
            {"NIGHTJAR_TEST_TARGETS": " llvm ;cuda  -a\n;; llvm; rocm"},
            "NIGHTJAR_TEST_TARGETS",
            ("llvm", "cuda -a", "rocm"),
        ),
        ({"TVM_TEST_TARGETS": "llvm"}, "TVM_TEST_TARGETS", ("llvm",)),
        ({"TVM_TEST_TARGETS": "llvm", "NIGHTJAR_TEST_TARGETS": "cuda"}, "NIGHTJAR_TEST_TARGETS", ("cuda",)),
        ({"TVM_TEST_TARGETS": "llvm", "NIGHTJAR_TEST_TARGETS": ""}, "TVM_TEST_TARGETS", ("llvm",)),
    ],
)
def test_the_variables_name_targets(environ: dict[str, str], variable: str, names: tuple[str, ...]) -> None:
    assert named_targets(environ) == (variable, names)


def test_the_kind_of_a_target_is_its_first_word_unless_declared() -> None:
    assert kind_of("opencl -device=mali") == "opencl"
    assert Target("opencl -device=mali").kind == "opencl"
    assert Target("mali", kind="opencl").kind == "opencl"
