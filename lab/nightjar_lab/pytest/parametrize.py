"""Parametrise collected tests over targets, and give each test on a target its marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nightjar_lab.pytest import texts
from nightjar_lab.pytest.decorators import EXCLUDE, IDS, KNOWN_FAILING, OURS, PARAMETRIZE, REQUIRES, DecoratorUse
from nightjar_lab.pytest.targets import NOTHING_DECLARED, TargetDeclaration, TargetUseError, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nightjar_lab.pytest.registry import TargetRegistry

DECORATORS = {
    PARAMETRIZE: "parametrize_targets",
    EXCLUDE: "exclude_targets",
    KNOWN_FAILING: "known_failing_targets",
    REQUIRES: "requires",
}
NO_TARGET = "no-target"
"""The ID of a test whose targets are all excluded. The test is skipped, so that reports count it."""


def target_of(item: pytest.Item) -> str | None:
    """Return the target that a test runs on, or none."""
    callspec = getattr(item, "callspec", None)
    target = None if callspec is None else callspec.params.get("target")
    return target if isinstance(target, str) else None


def parametrize_over_targets(metafunc: pytest.Metafunc, registry: TargetRegistry) -> None:
    """Parametrise a test that takes `target`, itself or through a fixture, unless somebody else provides it."""
    if "target" not in metafunc.fixturenames and not DecoratorUse.ever:
        return
    definition = metafunc.definition
    declaration = registry.declared_for(definition.path)
    for mark in _ours(definition):
        _check_declared(declaration, registry, mark)
    if "target" not in metafunc.fixturenames or _is_explicit(definition):
        return
    chosen = definition.get_closest_marker(PARAMETRIZE)
    if chosen is None and _has_fixture(metafunc, "target"):
        return
    if chosen is not None and chosen.args:
        names = list(dict.fromkeys(" ".join(name.split()) for name in chosen.args))
    else:
        names = [target.name for target in registry.configured(declaration)]
        if not names:
            if chosen is None:
                return
            raise TargetUseError(texts.NONE_DECLARED.format(where=chosen.kwargs["where"]))
    excluded = _named(definition, EXCLUDE)
    target_mark = getattr(pytest.mark, OURS)
    remaining = [pytest.param(name, marks=target_mark) for name in names if not _matches(declaration, name, excluded)]
    if not remaining:
        reason = texts.ALL_EXCLUDED.format(names=", ".join(names))
        remaining = [pytest.param(None, id=NO_TARGET, marks=pytest.mark.skip(reason=reason))]
    metafunc.parametrize("target", remaining)


def mark_item(item: pytest.Item, registry: TargetRegistry) -> None:
    """Give a test the marks of its target and of what it requires, and skip it if they cannot run."""
    name = target_of(item)
    if name is None and not DecoratorUse.ever:
        return
    declaration = registry.declared_for(item.path)
    for mark in item.iter_markers(REQUIRES):
        for required in mark.args:
            _require(item, registry, declaration, required, mark)
    is_explicit = item.get_closest_marker(OURS) is None
    if name is not None and (not is_explicit or declaration.find(name) is not None):
        _mark_target(item, registry, declaration, name, is_explicit=is_explicit)
    for mark in item.iter_markers(IDS):
        callspec = getattr(item, "callspec", None)
        if callspec is not None and {callspec.id, f"[{callspec.id}]"} & set(mark.args):
            item.add_marker(getattr(pytest.mark, mark.kwargs["mark"])(reason=mark.kwargs["reason"]))


def _mark_target(
    item: pytest.Item, registry: TargetRegistry, declaration: TargetDeclaration, name: str, *, is_explicit: bool
) -> None:
    target = declaration.find(name)
    if target is not None:
        for mark in registry.marks(declaration, target):
            item.add_marker(mark)
    explicit = is_explicit or bool(getattr(item.get_closest_marker(PARAMETRIZE), "args", ()))
    reason = registry.other_targets(declaration, name) if explicit else ""
    reason = reason or registry.why_not(declaration, name)
    if is_explicit and _matches(declaration, name, _named(item, EXCLUDE)):
        reason = texts.EXCLUDED.format(name=name)
    if reason:
        item.add_marker(pytest.mark.skip(reason=reason))
    if _matches(declaration, name, _named(item, KNOWN_FAILING)):
        item.add_marker(pytest.mark.xfail(reason=texts.KNOWN_FAILING.format(kind=declaration.kind(name))))


def _require(
    item: pytest.Item, registry: TargetRegistry, declaration: TargetDeclaration, name: str, mark: pytest.Mark
) -> None:
    target = declaration.find(name)
    if target is None:
        if declaration.targets:  # in a unittest.TestCase, of which pytest does not ask when it collects
            raise pytest.UsageError(_undeclared(declaration, name, mark))
        return
    for target_mark in registry.marks(declaration, target):
        item.add_marker(target_mark)
    if not mark.kwargs["optional"]:
        reason = registry.why_not_required(declaration, name, compile_only=mark.kwargs["compile_only"])
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _ours(node: pytest.Item) -> Iterator[pytest.Mark]:
    return (mark for mark in node.iter_markers() if mark.name in DECORATORS)


def _check_declared(declaration: TargetDeclaration, registry: TargetRegistry, mark: pytest.Mark) -> None:
    if declaration is NOTHING_DECLARED:
        return
    for name in mark.args:
        if declaration.find(name) is None and name not in registry.named:
            raise TargetUseError(_undeclared(declaration, name, mark))


def _undeclared(declaration: TargetDeclaration, name: str, mark: pytest.Mark) -> str:
    values = {"decorator": DECORATORS[mark.name], "declared": declaration.location, "names": declaration.names()}
    return texts.UNDECLARED.format(where=mark.kwargs["where"], name=name, **values)


def _named(node: pytest.Item, mark: str) -> set[str]:
    return {" ".join(name.split()) for marker in node.iter_markers(mark) for name in marker.args}


def _matches(declaration: TargetDeclaration, name: str, kinds: set[str]) -> bool:
    return bool({name, kind_of(name), declaration.kind(name)} & kinds)


def _is_explicit(node: pytest.Item) -> bool:
    """Say whether a `parametrize` mark sets the target."""
    for mark in node.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", "")
        if "target" in ([name.strip() for name in names.split(",")] if isinstance(names, str) else names):
            return True
    return False


def _has_fixture(metafunc: pytest.Metafunc, name: str) -> bool:
    # Not public, and the same from pytest 7.0 to 9.1.
    return bool(metafunc._arg2fixturedefs.get(name))
