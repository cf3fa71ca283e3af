"""The cases of suites as tests. pytest shows them under this file, and collects them with `pytest_plugin`.

For unittest: `NIGHTJAR_FLOWS=tvm-llvm python -m unittest nightjar_lab.suite -k abs`. `NIGHTJAR_FLOWS`,
`NIGHTJAR_BACKENDS` and `NIGHTJAR_SUITES` select, each a list with commas; what is not set selects all.
"""

from __future__ import annotations

import os
import unittest

from nightjar_lab.suite import texts
from nightjar_lab.suite.flow import matches_pattern
from nightjar_lab.suite.listing import ListedFlow
from nightjar_lab.suite.local_cases import LocalCase, LocalMatrix, cases_of, skip_reason
from nightjar_lab.suite.matrix import MatrixSelection

VARIABLES = ("NIGHTJAR_FLOWS", "NIGHTJAR_BACKENDS", "NIGHTJAR_SUITES")


class SuiteUnitTest(unittest.TestCase):
    """A test that is shown by a name of its own."""

    def __init__(self, name: str) -> None:
        super().__init__("run_case")
        self._name = name

    def id(self) -> str:
        """Return the name."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def shortDescription(self) -> None:
        """Return nothing: unittest would show a docstring."""


class CaseTest(SuiteUnitTest):
    """A case on a flow."""

    def __init__(self, case: LocalCase) -> None:
        super().__init__(f"{case.suite.name}.{case.test_id}")
        self._case = case

    def run_case(self) -> None:
        """Run the case. What a stage raises is raised here, with its traceback."""
        result, error = self._case.run()
        if result.outcome.is_failure:
            assert error is not None
            raise error
        if not result.outcome.is_pass:
            self.skipTest(skip_reason(result))


class UnavailableTest(SuiteUnitTest):
    """A flow or a suite that cannot be loaded here: one test that is skipped with the reason."""

    def __init__(self, entry: ListedFlow) -> None:
        super().__init__(entry.name)
        self._entry = entry

    def run_case(self) -> None:
        """Skip it."""
        self.skipTest(texts.NOT_RUN.format(name=self._entry.name, reason=self._entry.reason))


def load_tests(loader: unittest.TestLoader, _tests: unittest.TestSuite, _pattern: str | None) -> unittest.TestSuite:
    """Return the cases that the environment selects and that match one of unittest's `-k` patterns."""
    flows, backends, suites = (tuple(filter(None, os.environ.get(variable, "").split(","))) for variable in VARIABLES)
    matrix = LocalMatrix(MatrixSelection(flows, backends, suites))
    cases = [CaseTest(case) for run in matrix.runs for case in cases_of(*run)]
    patterns = loader.testNamePatterns
    tests = unittest.TestSuite(
        case for case in cases if not patterns or any(matches_pattern(pattern, case.id()) for pattern in patterns)
    )
    tests.addTests(UnavailableTest(entry) for entry in matrix.unavailable)
    return tests
