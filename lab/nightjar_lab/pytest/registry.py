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
OTHER_TARGETS_TOO = "nightjar_requires_other_targets"
"""The key of pytest's configuration with which `requires` ignores which targets the variable names."""
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
        """Read the targets that a plugin declares, if it is a module with a declaration, such as a conftest.py."""
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
        for kind in sorted({target.kind for target in declaration.targets} - NO_OWN_MARK):
            self.config.addinivalue_line("markers", f"{kind}: the test runs on a target of the kind {kind}")
        self.use()

    def declared_for(self, file: Path) -> TargetDeclaration:
        """Return the declaration of the nearest folder above a file; without one, that of a plugin."""
        folder = file.parent
        if folder not in self._of_folder:
            declarations = self._declarations
            nearest = (
                declarations[candidate] for candidate in [folder, *folder.parents, None] if candidate in declarations
            )
            self._of_folder[folder] = next(nearest, NOTHING_DECLARED)
        return self._of_folder[folder]

    def configured(self, declaration: TargetDeclaration) -> tuple[ConfiguredTarget, ...]:
        """Return the targets that tests of this declaration run on, those that cannot run included.

        If none can, the first declared one that can is added, with a warning. Raise `TargetUseError` if there is none.
        """
        if declaration.location not in self._configured:
            names = self.named or [target.name for target in declaration.targets if target.parametrized]
            configured_targets = [ConfiguredTarget(name, self.why_not(declaration, name)) for name in names]
            if configured_targets and all(configured.reason for configured in configured_targets):
                configured_targets.append(self._fallback(declaration, configured_targets))
            self._configured[declaration.location] = tuple(configured_targets)
        return self._configured[declaration.location]

    def why_not(self, declaration: TargetDeclaration, name: str, *, compile_only: bool = False) -> str:
        """Return why tests cannot run on a target, empty if they can. A target without a declaration can run."""
        reason = self._why_not(declaration, name, compile_only=compile_only)
        if not compile_only:
            self.capabilities[name] = reason
        return reason

    def _why_not(self, declaration: TargetDeclaration, name: str, *, compile_only: bool) -> str:
        target = declaration.find(name)
        if target is None and declaration.targets:
            values = {"variable": self.variable, "where": declaration.location, "names": declaration.names()}
            return texts.UNKNOWN_TARGET.format(name=name, **values)
        if target is None:
            return ""
        for required in declaration.parents_first(target):
            reason = self._fault(
                declaration, required, name if required is target else required.name, compile_only=compile_only
            )
            if reason:
                return (
                    reason
                    if required is target
                    else texts.PARENT_CANNOT.format(name=name, parent=required.name, reason=reason)
                )
        return ""

    def other_targets(self, declaration: TargetDeclaration, name: str) -> str:
        """Return why a target that a test lists is not tested if the variable names only other kinds; else ""."""
        if not self.named or declaration.kind(name) in {
            declaration.kind(configured.name) for configured in self.configured(declaration)
        }:
            return ""
        return texts.OTHER_TARGETS.format(name=name, variable=self.variable)

    def why_not_required(self, declaration: TargetDeclaration, name: str, *, compile_only: bool = False) -> str:
        """Return why a test that requires a target is skipped, or "".

        It is skipped if the target cannot run, and if the variable names other targets only, as in `tvm.testing`. A
        target that stands for others, such as `gpu`, counts as named with any of them; so does a mere property, which
        has no parents and is no parent.
        """
        if self.named and not self.config.getini(OTHER_TARGETS_TOO) and (target := declaration.find(name)) is not None:
            kinds = {declaration.kind(named) for named in self.named}
            for required in reversed(list(declaration.parents_first(target))):
                family = declaration.family(required)
                if family and not kinds & {relative.kind for relative in family}:
                    reason = texts.OTHER_TARGETS.format(name=required.name, variable=self.variable)
                    values = {"name": name, "parent": required.name, "reason": reason}
                    return reason if required is target else texts.PARENT_CANNOT.format(**values)
        return self.why_not(declaration, name, compile_only=compile_only)

    def marks(self, declaration: TargetDeclaration, target: Target) -> Iterable[pytest.MarkDecorator | str]:
        """Yield the marks of tests on a target, its parents' marks first; for each, the mark of its kind comes last."""
        for ancestor in declaration.parents_first(target):
            yield from ancestor.marks
            if ancestor.kind not in NO_OWN_MARK:
                yield getattr(pytest.mark, ancestor.kind)

    def enabled(self, file: Path) -> list[tuple[str, object]]:
        """Return the configured targets that can run, each with its device."""
        declaration = self.declared_for(file)
        runnable = [configured.name for configured in self.configured(declaration) if not configured.reason]
        return [(name, make_device(declaration, name)) for name in runnable]

    def _fallback(self, declaration: TargetDeclaration, configured_targets: list[ConfiguredTarget]) -> ConfiguredTarget:
        reasons = " ".join(f"{configured.reason.rstrip('.')}." for configured in configured_targets)
        names = [target.name for target in declaration.targets if target.parametrized]
        fallback = next((name for name in names if not self.why_not(declaration, name)), None)
        if fallback is None:
            raise TargetUseError(texts.NO_FALLBACK.format(where=declaration.location, reasons=reasons))
        if self._answers.first(f"fallback of {declaration.location}"):
            configured_names = ", ".join(configured.name for configured in configured_targets)
            text = texts.FALLBACK.format(names=configured_names, fallback=fallback, reasons=reasons)
            file, _, line = declaration.location.rpartition(":")
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
                template = texts.PROBE_FAILED if answer.fault else texts.RETURNED_FALSE
                return text.format(name=name, probe=template.format(function=function_name(probe), fault=answer.fault))
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
    """Begin a run. A worker of pytest-xdist finds the folder with the answers of probes in its input."""
    folder_name = getattr(config, "workerinput", {}).get(ANSWERS)
    registry = TargetRegistry(
        config, os.environ, Path(folder_name) if folder_name and Path(folder_name).is_dir() else None
    )
    ACTIVE.append(registry)
    for plugin in config.pluginmanager.get_plugins():
        registry.read(plugin)
    return registry


def _probe_key(declaration: TargetDeclaration, probe: Callable[..., object], name: str) -> str:
    """Return a key that is the same in every worker: the function's first position in the declaration, and the target.

    The target's name is part of it only if the function takes it, so that one probe for several targets runs once.
    """
    for number, target in enumerate(declaration.targets):
        for key in ("enabled", "available"):
            if getattr(target, key) is probe:
                return f"{declaration.location}|{number}|{key}|{name if takes_name(probe) else ''}"
    return f"{declaration.location}|{function_name(probe)}|{name}"
