"""Run cases in this process, for pytest and unittest, so that a debugger stops where a stage fails.

The stages are those of `nightjar-lab suite run`, without its worker processes: a crash ends this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightjar_lab.suite.case import TestSuite
from nightjar_lab.suite.compare import load_numpy
from nightjar_lab.suite.discovery import NotAvailable, load_flow, load_suite
from nightjar_lab.suite.flow import Flow, matching
from nightjar_lab.suite.listing import ListedFlow
from nightjar_lab.suite.matrix import MatrixSelection, select_matrix
from nightjar_lab.suite.outcome import SuiteStage
from nightjar_lab.suite.result import SuiteResult, test_id_of, with_known_failure
from nightjar_lab.suite.stages import run_case


@dataclass(frozen=True)
class LocalCase:
    """A case on a flow."""

    flow: Flow
    suite: TestSuite
    name: str

    @property
    def test_id(self) -> str:
        """Return its test ID, which has the case's parameters if the suite can say them."""
        params: Mapping[str, str]
        try:
            params = self.suite.case(self.name).params
        except Exception:
            # The run reports this as an invalid case.
            params = {}
        return test_id_of(self.name, self.flow.name, params)

    def run(self) -> tuple[SuiteResult, BaseException | None]:
        """Run the case; return its result and what a stage raised. Ctrl-C and the end of a debugger are raised."""
        result, error = run_case(self.flow, self.suite, self.name, _ignore_stage)
        if error is not None and not isinstance(error, (Exception, SystemExit)):
            raise error
        return with_known_failure(result, matching(self.flow.known_failing, self.name)), error


class LocalMatrix:
    """The flows and suites of a selection, loaded into this process. `unavailable` are those that cannot be loaded."""

    def __init__(self, selection: MatrixSelection) -> None:
        """Load what is selected. Raises NotAvailable if a name or a backend does not exist, and NumpyMissing."""
        load_numpy()
        self._flows: dict[str, Flow] = {}
        self._suites: dict[str, TestSuite] = {}
        matrix = select_matrix(
            selection,
            lambda names: list(map(self._describe_flow, names)),
            lambda names: list(map(self._describe_suite, names)),
        )
        self.unavailable = matrix.unavailable
        self.runs = [(self._flows[flow.name], self._suites[suite.name]) for flow, suite in matrix.runs]

    def _describe_flow(self, name: str) -> ListedFlow:
        try:
            flow = self._flows[name] = load_flow(name)
        except NotAvailable as error:
            return ListedFlow(name, "flow", error.backend, reason=str(error))
        return ListedFlow(name, "flow", flow.backend, model_format=flow.model_format)

    def _describe_suite(self, name: str) -> ListedFlow:
        try:
            suite = self._suites[name] = load_suite(name)
        except NotAvailable as error:
            return ListedFlow(name, "suite", reason=str(error))
        return ListedFlow(name, "suite", model_format=suite.model_format)


def cases_of(flow: Flow, suite: TestSuite) -> list[LocalCase]:
    """Return the cases of a suite on a flow."""
    return [LocalCase(flow, suite, name) for name in suite.names()]


def skip_reason(result: SuiteResult) -> str:
    """Return why a case that neither passed nor failed was skipped."""
    return ": ".join(part for part in (result.outcome.detail, result.error) if part)


def _ignore_stage(_stage: SuiteStage, _params: Mapping[str, str]) -> Any:
    """Take note of no stage: nobody watches from outside."""
