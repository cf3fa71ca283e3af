"""Select the runs of a matrix: which suites run on which flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nightjar_lab.suite import texts
from nightjar_lab.suite.discovery import FLOWS, SUITES, NotAvailable, check_names, entry_points
from nightjar_lab.suite.listing import ListedFlow


@dataclass(frozen=True)
class MatrixSelection:
    """The flows of these names and backends, and the suites of these names. What is empty selects all."""

    flows: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matrix:
    """The runs of a matrix, each a flow and a suite, and the selected flows and suites that cannot be loaded."""

    runs: tuple[tuple[ListedFlow, ListedFlow], ...]
    unavailable: tuple[ListedFlow, ...]


def select_matrix(
    selection: MatrixSelection,
    describe_flows: Callable[[Iterable[str]], list[ListedFlow]],
    describe_suites: Callable[[Iterable[str]], list[ListedFlow]],
) -> Matrix:
    """Return the runs of a selection: each flow with the suites whose models it takes.

    Raises UnknownEntryPoint for a name that does not exist, NotAvailable if no flow has one of the backends.
    """
    check_names(selection.flows, selection.suites)
    flows = describe_flows(selection.flows or entry_points(FLOWS))
    if selection.backends:
        backends = sorted({flow.backend for flow in flows if flow.backend})
        # The backend of a flow that was named may be unknown, because it cannot be loaded.
        flows = [
            flow
            for flow in flows
            if flow.backend in selection.backends or (flow.name in selection.flows and not flow.backend)
        ]
        if not flows:
            raise NotAvailable(
                texts.NO_BACKEND.format(backends=", ".join(selection.backends), known=", ".join(backends) or texts.NONE)
            )
    suites = describe_suites(selection.suites or entry_points(SUITES))
    runs = [
        (flow, suite)
        for flow in flows
        for suite in suites
        if not flow.reason and not suite.reason and formats_fit(flow.model_format, suite.model_format)
    ]
    unavailable = [flow for flow in flows if flow.reason]
    if selection.suites or not selection.flows:
        # Nobody knows whether a suite that cannot be loaded would have been one for these flows.
        unavailable += [suite for suite in suites if suite.reason]
    return Matrix(tuple(runs), tuple(unavailable))


def formats_fit(flow_format: str, suite_format: str) -> bool:
    """Say whether a flow takes the models of a suite, as far as both say."""
    return not flow_format or not suite_format or flow_format == suite_format
