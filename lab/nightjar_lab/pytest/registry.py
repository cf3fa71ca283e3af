"""Collect what one run of pytest knows about targets: declarations, the environment, and which targets can run."""

from __future__ import annotations

import os
import types
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import pytest

from nightjar_lab.pytest import texts
from nightjar_lab.pytest.probes import ProbeAnswers
from nightjar_lab.pytest.targets import (
    DECLARATION,
    NO_OWN_MARK,
    NOTHING_DECLARED,
    Target,
    TargetDeclaration,
    TargetUseError,
    call_with_name,
    function_name,
    named_targets,
    read_declaration,
    takes_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ANSWERS = "nightjar_answers"
"""The key under which a worker of pytest-xdist finds the folder of the probes' answers in its input."""
CAPABILITIES = "nightjar_capabilities"
"""The key under which a worker of pytest-xdist writes the targets that it can test into its output."""
FIXTURES = "nightjar-device"
"""The name under which the fixture `dev` is registered, in projects that use targets."""


class TargetWarning(pytest.PytestWarning):
    """Tests run on other targets than the configured ones."""


@dataclass(frozen=True)
class ConfiguredTarget:
    """A target that tests are parametrised over, and why it cannot run, or an empty text."""

    name: str
    reason: str = ""


class TargetRegistry:
    """The targets of a run of pytest."""

    def __init__(self, config: pytest.Config, environ: Mapping[str, str], folder: Path | None) -> None:
        self.config = config
        self.variable, self.named = named_targets(environ)
        self._answers = ProbeAnswers(folder)
        self._declarations: dict[Path | None, TargetDeclaration] = {}
        self._of_folder: dict[Path, TargetDeclaration] = {}
        self._configured: dict[str, tuple[ConfiguredTarget, ...]] = {}
        self.capabilities: dict[str, str] = {}
        """The targets that tests asked for, and why each cannot run, or an empty text."""
        self.in_use = False
        self.answers_of_workers: Path | None = None

    def use(self) -> None:
        """Register the fixture `dev`. Projects that use no targets do not get it, as they may have their own `dev`."""
        if not self.in_use:
            self.in_use = True
            self.config.pluginmanager.register(DeviceFixture(self), FIXTURES)

    def read(self, plugin: object) -> None:
        """Read what a plugin declares, if it is a module that does: a conftest.py above all."""
        if not isinstance(plugin, types.ModuleType) or not hasattr(plugin, DECLARATION):
            return
        try:
            declaration = read_declaration(getattr(plugin, DECLARATION), plugin.__file__ or plugin.__name__)
        except TargetUseError as error:
            raise pytest.UsageError(str(error)) from None
        if self._declarations.get(declaration.folder) == declaration:
            return
        self._declarations[declaration.folder] = declaration
        self._of_folder.clear()
        for kind in sorted({one.kind for one in declaration.targets} - NO_OWN_MARK):
            self.config.addinivalue_line("markers", f"{kind}: the test runs on a target of the kind {kind}")
        self.use()

    def declared_for(self, file: Path) -> TargetDeclaration:
        """Return the declaration of the nearest folder above a file; without one, that of a plugin."""
        folder = file.parent
        if folder not in self._of_folder:
            known = self._declarations
            nearest = (known[one] for one in [folder, *folder.parents, None] if one in known)
            self._of_folder[folder] = next(nearest, NOTHING_DECLARED)
        return self._of_folder[folder]

    def configured(self, declaration: TargetDeclaration) -> tuple[ConfiguredTarget, ...]:
        """Return the targets that tests of this declaration run on, those that cannot run included.

        If none can, the first declared one that can is added, with a warning. Raise `TargetUseError` if there is none.
        """
        if declaration.where not in self._configured:
            names = self.named or [one.name for one in declaration.targets if one.parametrized]
            found = [ConfiguredTarget(name, self.why_not(declaration, name)) for name in names]
            if found and all(one.reason for one in found):
                found.append(self._fallback(declaration, found))
            self._configured[declaration.where] = tuple(found)
        return self._configured[declaration.where]

    def why_not(self, declaration: TargetDeclaration, name: str, *, compile_only: bool = False) -> str:
        """Return why tests cannot run on a target, empty if they can. A target without a declaration can run."""
        reason = self._why_not(declaration, name, compile_only=compile_only)
        if not compile_only:
            self.capabilities[name] = reason
        return reason

    def _why_not(self, declaration: TargetDeclaration, name: str, *, compile_only: bool) -> str:
        target = declaration.find(name)
        if target is None and declaration.targets:
            values = {"variable": self.variable, "where": declaration.where, "names": declaration.names()}
            return texts.UNKNOWN_TARGET.format(name=name, **values)
        if target is None:
            return ""
        for one in declaration.parents_first(target):
            reason = self._fault(declaration, one, name if one is target else one.name, compile_only=compile_only)
            if reason:
                return (
                    reason if one is target else texts.PARENT_CANNOT.format(name=name, parent=one.name, reason=reason)
                )
        return ""

    def other_targets(self, declaration: TargetDeclaration, name: str) -> str:
        """Return why a target that a test lists itself is not tested now: the variable names other kinds."""
        if not self.named or declaration.kind(name) in {declaration.kind(o.name) for o in self.configured(declaration)}:
            return ""
        return texts.OTHER_TARGETS.format(name=name, variable=self.variable)

    def marks(self, declaration: TargetDeclaration, target: Target) -> Iterable[pytest.MarkDecorator | str]:
        """Yield the marks of tests on a target: those of its parents first, and of each its own last."""
        for one in declaration.parents_first(target):
            yield from one.marks
            if one.kind not in NO_OWN_MARK:
                yield getattr(pytest.mark, one.kind)

    def enabled(self, file: Path) -> list[tuple[str, object]]:
        """Return the configured targets that can run, each with its device."""
        declaration = self.declared_for(file)
        runnable = [one.name for one in self.configured(declaration) if not one.reason]
        return [(name, make_device(declaration, name)) for name in runnable]

    def _fallback(self, declaration: TargetDeclaration, found: list[ConfiguredTarget]) -> ConfiguredTarget:
        reasons = " ".join(f"{one.reason.rstrip('.')}." for one in found)
        names = [one.name for one in declaration.targets if one.parametrized]
        fallback = next((name for name in names if not self.why_not(declaration, name)), None)
        if fallback is None:
            raise TargetUseError(texts.NO_FALLBACK.format(where=declaration.where, reasons=reasons))
        if self._answers.first(f"fallback of {declaration.where}"):
            wanted = ", ".join(one.name for one in found)
            text = texts.FALLBACK.format(names=wanted, fallback=fallback, reasons=reasons)
            file, _, line = declaration.where.rpartition(":")
            warnings.warn_explicit(TargetWarning(text), None, file, int(line))
        return ConfiguredTarget(fallback)

    def _fault(self, declaration: TargetDeclaration, target: Target, name: str, *, compile_only: bool) -> str:
        for text, key in [(texts.NOT_ENABLED, "enabled"), (texts.NO_DEVICE, "available")][: 1 if compile_only else 2]:
            probe = getattr(target, key)
            if isinstance(probe, bool):
                if not probe:
                    return text.format(name=name, probe=texts.SAYS_FALSE)
                continue
            answer = self._answers.ask(
                _probe_key(declaration, probe, name),
                partial(call_with_name, probe, name),
                isolated=target.isolated,
                seconds=target.probe_seconds,
            )
            if not answer.passed:
                said = texts.PROBE_FAILED if answer.fault else texts.RETURNED_FALSE
                return text.format(name=name, probe=said.format(function=function_name(probe), fault=answer.fault))
        return ""


class DeviceFixture:
    """A plugin with the fixture `dev`, which a registry registers for a project that uses targets."""

    def __init__(self, registry: TargetRegistry) -> None:
        self._registry = registry

    @pytest.fixture
    def dev(self, request: pytest.FixtureRequest, target: str) -> object:
        """Make a device for the target of this test, as the project's conftest.py declares."""
        return make_device(self._registry.declared_for(request.node.path), target)


def make_device(declaration: TargetDeclaration, name: str) -> object:
    """Return a new device for a target; None if the project declares no function that makes one."""
    target = declaration.find(name)
    return None if target is None or target.device is None else call_with_name(target.device, name)


ACTIVE: list[TargetRegistry] = []
"""The registries of the runs in this process, the innermost last: pytest can run inside a test."""


def start_registry(config: pytest.Config) -> TargetRegistry:
    """Begin a run. Workers of pytest-xdist find the folder of its answers in what the controller gave them."""
    given = getattr(config, "workerinput", {}).get(ANSWERS)
    registry = TargetRegistry(config, os.environ, Path(given) if given and Path(given).is_dir() else None)
    ACTIVE.append(registry)
    for plugin in config.pluginmanager.get_plugins():
        registry.read(plugin)
    return registry


def _probe_key(declaration: TargetDeclaration, probe: Callable[..., object], name: str) -> str:
    """Return the same key in every worker: where in the declaration the function stands first, and the target's name.

    The name counts only for a function that gets it, so that one probe for several targets is asked once.
    """
    for number, target in enumerate(declaration.targets):
        for key in ("enabled", "available"):
            if getattr(target, key) is probe:
                return f"{declaration.where}|{number}|{key}|{name if takes_name(probe) else ''}"
    return f"{declaration.where}|{function_name(probe)}|{name}"
