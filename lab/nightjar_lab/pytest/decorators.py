"""Provide decorators that choose the targets of a test, and `enabled_targets`.

Each decorator is a mark, for functions, classes or `pytestmark`. Its targets are checked when pytest collects the test,
because only then is it known which declaration applies.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, TypeVar, overload

import pytest

from nightjar_lab.pytest import texts
from nightjar_lab.pytest.registry import ACTIVE
from nightjar_lab.pytest.targets import TargetUseError, calling_line

PARAMETRIZE = "nightjar_parametrize_targets"
EXCLUDE = "nightjar_exclude_targets"
KNOWN_FAILING = "nightjar_known_failing_targets"
REQUIRES = "nightjar_requires"
IDS = "nightjar_parametrizations"
OURS = "nightjar_target"
MARKS = {
    OURS: "the plugin gave the test its target",
    PARAMETRIZE: "the test runs on these targets",
    EXCLUDE: "the test runs on no target of these kinds",
    KNOWN_FAILING: "the test is expected to fail on targets of these kinds",
    REQUIRES: "the test needs these targets",
    IDS: "these parametrizations of the test are skipped or expected to fail",
}
Test = TypeVar("Test", bound=Callable[..., Any])


class DecoratorUse:
    """Whether any of the decorators was used in this process; if not, no test can have their marks."""

    ever = False


@overload
def parametrize_targets(target: Test, /) -> Test: ...
@overload
def parametrize_targets(*targets: str) -> pytest.MarkDecorator: ...
def parametrize_targets(*targets: Any) -> Any:
    """Run a test once on each of these targets; as a bare decorator, on all configured ones."""
    if len(targets) == 1 and callable(targets[0]) and not isinstance(targets[0], str):
        code = getattr(targets[0], "__code__", None)
        location = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else calling_line()
        return _mark(PARAMETRIZE, location)(targets[0])
    location = calling_line()
    _check_names("parametrize_targets", targets, location)
    return _mark(PARAMETRIZE, location, *targets)


def exclude_targets(*kinds: str) -> pytest.MarkDecorator:
    """Run a test on no target of these kinds. A whole target string excludes that target alone."""
    location = calling_line()
    _check_names("exclude_targets", kinds, location, least=1)
    return _mark(EXCLUDE, location, *kinds)


def known_failing_targets(*kinds: str) -> pytest.MarkDecorator:
    """Expect a test to fail on targets of these kinds. It runs nevertheless."""
    location = calling_line()
    _check_names("known_failing_targets", kinds, location, least=1)
    return _mark(KNOWN_FAILING, location, *kinds)


def requires(*names: str, compile_only: bool = False, optional: bool = False) -> pytest.MarkDecorator:
    """Skip a test unless all these targets can run; `compile_only`: unless they are compiled in.

    The test gets their marks and those of their parents. With `optional`, that is all: it is never skipped.
    """
    location = calling_line()
    _check_names("requires", names, location, least=1)
    return _mark(REQUIRES, location, *names, compile_only=compile_only, optional=optional)


def skip_parameterizations(*ids: str, reason: str) -> pytest.MarkDecorator:
    """Skip the parametrizations of a test with exactly these IDs: what stands between `[` and `]`."""
    return _mark(IDS, calling_line(), *ids, reason=reason, mark="skip")


def xfail_parameterizations(*ids: str, reason: str) -> pytest.MarkDecorator:
    """Expect the parametrizations of a test with exactly these IDs to fail. They run nevertheless."""
    return _mark(IDS, calling_line(), *ids, reason=reason, mark="xfail")


def enabled_targets() -> list[tuple[str, object]]:
    """Return the configured targets that can run on this machine, each with a new device.

    A loop over them hides which targets were left out, and ends at the first failure. Prefer `target` and `dev`.
    """
    if not ACTIVE:
        return []
    return ACTIVE[-1].enabled(Path(sys._getframe(1).f_code.co_filename))


def _mark(name: str, location: str, *names: str, **values: object) -> pytest.MarkDecorator:
    DecoratorUse.ever = True
    if ACTIVE:
        ACTIVE[-1].use()
    mark: pytest.MarkDecorator = getattr(pytest.mark, name).with_args(*names, where=location, **values)
    return mark


def _check_names(decorator: str, names: tuple[object, ...], location: str, least: int = 0) -> None:
    example = f'@{decorator}("llvm", "cuda")'
    if len(names) < least:
        raise TargetUseError(texts.NO_NAMES.format(where=location, decorator=decorator, example=example))
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise TargetUseError(
                texts.NOT_NAMES.format(where=location, decorator=decorator, value=name, example=example)
            )
        if ";" in name:
            raise TargetUseError(
                texts.SEVERAL_IN_ONE.format(where=location, decorator=decorator, value=name, example=example)
            )
