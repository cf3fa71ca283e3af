"""List flows and suites. Each is loaded in a process of its own, so that one that crashes does not hide the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

from nightjar_formats.items import counted
from nightjar_lab.suite import texts
from nightjar_lab.suite.discovery import FLOWS, SUITES, entry_points
from nightjar_lab.suite.runner import CannotRun, SuiteRunner


@dataclass(frozen=True)
class ListedFlow:
    """A flow or a suite. `reason` says why it is not available; it is empty where it is."""

    name: str
    kind: str
    backend: str = ""
    version: str = ""
    cases: int | None = None
    description: str = ""
    reason: str = ""
    quantization: str = ""
    model_format: str = ""

    @property
    def line(self) -> str:
        """Describe it in one line."""
        if self.reason:
            return texts.UNAVAILABLE.format(reason=self.reason)
        count = "" if self.cases is None else counted(self.cases, texts.CASE)
        return "; ".join(part for part in (f"{self.backend} {self.version}".strip(), count, self.description) if part)

    def as_json(self) -> dict[str, object]:
        """Return the entry as JSON."""
        return asdict(self)


def list_suites_and_flows(names: Collection[str] = (), *, count: bool = False) -> list[ListedFlow]:
    """Return all suites, then all flows, or those with one of the names; `count` counts the cases of suites."""
    suites, flows = ([name for name in entry_points(group) if not names or name in names] for group in (SUITES, FLOWS))
    return [*list_suites(suites, count=count), *list_flows(flows)]


def list_flows(names: Iterable[str]) -> list[ListedFlow]:
    """Describe flows, as many at a time as there are processors: some take seconds to load."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(list_flow, names))


def list_suites(names: Iterable[str], *, count: bool = False) -> list[ListedFlow]:
    """Describe suites, likewise; `count` counts their cases."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(partial(list_suite, count=count), names))


def list_flow(name: str) -> ListedFlow:
    """Load a flow in a process of its own and describe it."""

    def ask(runner: SuiteRunner) -> ListedFlow:
        info = runner.start()
        return ListedFlow(
            name,
            "flow",
            info.backend,
            info.flow_version,
            description=info.description,
            quantization=info.quantization,
            model_format=info.model_format,
        )

    return _listed(name, "flow", SuiteRunner(name, ""), ask)


def list_suite(name: str, *, count: bool = False) -> ListedFlow:
    """Load a suite in a process of its own and describe it; `count` counts its cases."""

    def ask(runner: SuiteRunner) -> ListedFlow:
        info = runner.start()
        cases = len(runner.names()) if count else None
        return ListedFlow(
            name,
            "suite",
            version=info.suite_version,
            cases=cases,
            description=info.description,
            model_format=info.model_format,
        )

    return _listed(name, "suite", SuiteRunner("", name), ask)


def _listed(name: str, kind: str, runner: SuiteRunner, ask: Callable[[SuiteRunner], ListedFlow]) -> ListedFlow:
    try:
        with runner:
            return ask(runner)
    except CannotRun as error:
        return ListedFlow(name, kind, error.backend, reason=" ".join(str(error).split()))
