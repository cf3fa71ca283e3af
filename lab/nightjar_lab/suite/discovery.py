"""Find flows and suites by entry point, or as `module:name`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from nightjar_lab.suite import texts
from nightjar_lab.suite.case import TestSuite
from nightjar_lab.suite.flow import Flow

FLOWS, SUITES = "nightjar_lab.flows", "nightjar_lab.suites"
"""Groups of entry points. An entry point is a Flow (a TestSuite), or a function without arguments that returns one."""

_T = TypeVar("_T", Flow, TestSuite)


class NotAvailable(Exception):
    """A flow or a suite cannot be loaded; the text is the reason. `backend` is that of the flow, empty if unknown."""

    backend = ""


class UnknownEntryPoint(NotAvailable):
    """There is no flow or suite of this name; the text says which there are."""


def entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group by name, sorted. Nothing is imported."""
    all_entry_points = metadata.entry_points()
    # Python 3.9 returns a mapping, and 3.12 has `select` alone.
    points: Iterable[metadata.EntryPoint] = (
        all_entry_points.select(group=group) if hasattr(all_entry_points, "select") else all_entry_points.get(group, ())
    )
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


def load_flow(name: str) -> Flow:
    """Load a flow. Raises UnknownEntryPoint, or NotAvailable with the reason."""
    return _load(name, FLOWS, Flow)


def load_suite(name: str) -> TestSuite:
    """Load a suite. Raises UnknownEntryPoint, or NotAvailable with the reason."""
    return _load(name, SUITES, TestSuite)


def _load(name: str, group: str, kind: type[_T]) -> _T:
    kind_name = kind.__name__
    point = _point(name, group, kind_name)
    loaded: Any = None
    try:
        loaded = point.load()
        if not isinstance(loaded, kind) and callable(loaded):
            loaded = loaded()
    except (SystemExit, Exception) as error:
        unavailable = NotAvailable(_reason(error))
        # A function that makes flows may say of which backend they are.
        unavailable.backend = str(getattr(loaded, "backend", ""))
        raise unavailable from error
    if not isinstance(loaded, kind):
        raise NotAvailable(texts.NOT_ONE.format(value=point.value, kind=kind_name, found=type(loaded).__name__))
    return loaded


def _reason(error: BaseException) -> str:
    if isinstance(error, NotAvailable):
        return str(error)
    if isinstance(error, SystemExit):
        return texts.EXITS.format(status=error.code)
    if isinstance(error, ModuleNotFoundError):
        return texts.NEEDS_MODULE.format(module=error.name)
    return f"{type(error).__name__}: {error}"


def check_names(flows: Iterable[str], suites: Iterable[str]) -> None:
    """Raise UnknownEntryPoint if a flow or a suite has no entry point; `MODULE:NAME` needs none."""
    for names, group, kind in ((flows, FLOWS, Flow), (suites, SUITES, TestSuite)):
        for name in names:
            _point(name, group, kind.__name__)


def _point(name: str, group: str, kind_name: str) -> metadata.EntryPoint:
    if ":" in name:
        current_folder = str(Path.cwd())
        if current_folder not in sys.path:
            sys.path.insert(0, current_folder)
        return metadata.EntryPoint(name=name, value=name, group=group)
    points = entry_points(group)
    if name not in points:
        raise UnknownEntryPoint(
            texts.UNKNOWN_NAME.format(name=name, kind=kind_name.lower(), names=", ".join(points) or texts.NONE)
        )
    return points[name]
