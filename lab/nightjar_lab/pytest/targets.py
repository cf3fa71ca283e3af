"""Define what a project declares in its conftest.py: targets, and how to find out which of them can run."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Union

from nightjar_formats.items import first_of
from nightjar_lab.pytest import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pytest

Probe = Union[bool, Callable[..., object]]
"""Whether a target can be used: a constant, or a function. A function with a parameter gets the target's name."""
VARIABLES = ("NIGHTJAR_TEST_TARGETS", "TVM_TEST_TARGETS")
"""The environment variables that name the targets to test. The first one that names any wins."""
DECLARATION = "nightjar_targets"
PROBE_SECONDS = 60.0
NO_OWN_MARK = frozenset({"parametrize", "skip", "skipif", "xfail", "usefixtures", "filterwarnings", "slow"})
"""Marks that mean something else: a target of that kind gets no mark of its kind."""


class TargetUseError(TypeError):
    """A declaration or a decorator is wrong. The text names the line and the fix."""


class Target:
    """A target that a project's tests can run on.

    `name` is what tests get as `target`: `cuda`, or `cuda -arch=sm_80`. `kind` is the first word of the name unless
    given. `enabled` says if the project was built with it, `available` if this machine has a device, `device` makes the
    `dev` of a test. Each test on the target gets `marks` and those of its `parents`, which are names of other targets.
    A target with `parametrized=False` is for `requires` and `parents` only: no test runs on it unless the environment
    or a decorator names it. Probes run once; one that takes longer than `probe_seconds` counts as failed, and one that
    may crash the interpreter runs in a child process with `isolated=True`.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: str | None = None,
        enabled: Probe = True,
        available: Probe = True,
        device: Callable[..., object] | None = None,
        marks: Iterable[pytest.MarkDecorator | str] = (),
        parents: Iterable[str] = (),
        parametrized: bool = True,
        isolated: bool = False,
        probe_seconds: float | None = PROBE_SECONDS,
    ) -> None:
        location = calling_line()
        if not isinstance(name, str) or not name.strip():
            raise TargetUseError(texts.TARGET_NAME.format(where=location, name=name))
        for key, probe in (("enabled", enabled), ("available", available)):
            if not isinstance(probe, bool) and not callable(probe):
                raise TargetUseError(texts.TARGET_PROBE.format(where=location, name=name, key=key, value=probe))
        if device is not None and not callable(device):
            raise TargetUseError(texts.TARGET_DEVICE.format(where=location, name=name, value=device))
        for key, values in (("marks", marks), ("parents", parents)):
            if not isinstance(values, (list, tuple)):
                raise TargetUseError(texts.TARGET_LIST.format(where=location, name=name, key=key, value=values))
        self.name = name.strip()
        self.kind = kind or kind_of(name)
        self.enabled = enabled
        self.available = available
        self.device = device
        self.marks = list(marks)
        self.parents = list(parents)
        self.parametrized = parametrized
        self.isolated = isolated
        self.probe_seconds = probe_seconds

    def __repr__(self) -> str:
        return f"Target({self.name!r})"


@dataclass(frozen=True)
class TargetDeclaration:
    """The targets of one conftest.py. They are for the tests in its folder; for all tests if it is another plugin."""

    location: str
    folder: Path | None
    targets: tuple[Target, ...]

    def find(self, name: str) -> Target | None:
        """Return the target that is declared for this name: the one of that name, else the first one of its kind."""
        exact = [target for target in self.targets if target.name == name]
        kind = kind_of(name)
        return next(iter(exact + [target for target in self.targets if target.kind == kind]), None)

    def kind(self, name: str) -> str:
        """Return the kind of a target as declared; its first word if it is not."""
        target = self.find(name)
        return kind_of(name) if target is None else target.kind

    def names(self) -> str:
        """Return the declared names, for messages."""
        return ", ".join(target.name for target in self.targets)

    def parents_first(self, target: Target) -> Iterator[Target]:
        """Yield the target's parents, their parents before them, then the target itself."""
        for parent in target.parents:
            yield from self.parents_first(first_of(candidate for candidate in self.targets if candidate.name == parent))
        yield target

    def family(self, target: Target) -> list[Target]:
        """Return the target and those below it that tests run on, or nothing if it is a property, such as a tool.

        The target itself is among them if a variable may name it.
        """
        below = [child for child in self.targets if child.parametrized and target in self.parents_first(child)]
        return [target, *below] if below else []


NOTHING_DECLARED = TargetDeclaration("", None, ())


def kind_of(name: str) -> str:
    """Return the kind of a target: the first word of its name."""
    return next(iter(name.split()), "")


def named_targets(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the variable that names targets, and the names: trimmed, in order, each once. Without one, both are empty.

    Nightjar's own variable wins over TVM's, which a project's older scripts may still set. An empty one names nothing.
    """
    for variable in VARIABLES:
        names = [" ".join(entry.split()) for entry in environ.get(variable, "").split(";")]
        if any(names):
            return variable, tuple(dict.fromkeys(name for name in names if name))
    return "", ()


def read_declaration(declared: object, file: str) -> TargetDeclaration:
    """Return what `nightjar_targets` of a file declares. Raise `TargetUseError` if that is no list of targets."""
    location = f"{file}:{_line_of_declaration(file)}"
    if not isinstance(declared, list) or not declared or not all(isinstance(target, Target) for target in declared):
        invalid = (
            declared
            if not isinstance(declared, list)
            else [entry for entry in declared if not isinstance(entry, Target)]
        )
        raise TargetUseError(texts.DECLARATION.format(where=location, kind=type(declared).__name__, value=invalid))
    names = [target.name for target in declared]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TargetUseError(texts.DECLARED_TWICE.format(where=location, names=", ".join(twice)))
    declared_names: set[str] = set()
    for target in declared:  # parents must be declared before the target, so that there are no cycles
        if unknown := [parent for parent in target.parents if parent not in declared_names]:
            raise TargetUseError(texts.UNKNOWN_PARENT.format(where=location, name=target.name, parent=unknown[0]))
        declared_names.add(target.name)
    path = Path(file)
    return TargetDeclaration(location, path.parent if path.name == "conftest.py" else None, tuple(declared))


def call_with_name(function: Callable[..., object], name: str) -> object:
    """Call a project's function: with the target's name if it has a parameter, else without arguments."""
    return function(name) if takes_name(function) else function()


def takes_name(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with one positional argument."""
    try:
        inspect.signature(function).bind("")
    except (TypeError, ValueError):
        return False
    return True


def calling_line(depth: int = 2) -> str:
    """Return `file:line` of whoever called the caller, `depth` frames up."""
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def function_name(function: Callable[..., object]) -> str:
    """Return the name of a project's function, for messages."""
    return getattr(function, "__name__", None) or repr(function)


def _line_of_declaration(file: str) -> int:
    try:
        lines: Sequence[str] = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 1
    return next((number for number, line in enumerate(lines, 1) if line.startswith(DECLARATION)), 1)
