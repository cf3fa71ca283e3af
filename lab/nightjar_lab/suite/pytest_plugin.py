"""Collect the cases of suites as tests: `pytest --pyargs nightjar_lab.suite --flow tvm-llvm -k abs`.

The plugin of the lab kit loads this one if the command line names the package; no other run has its options.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nightjar_lab.suite import texts
from nightjar_lab.suite.case import TestSuite
from nightjar_lab.suite.compare import NumpyMissing
from nightjar_lab.suite.discovery import NotAvailable
from nightjar_lab.suite.flow import Flow
from nightjar_lab.suite.listing import ListedFlow
from nightjar_lab.suite.local_cases import LocalCase, LocalMatrix, cases_of, skip_reason
from nightjar_lab.suite.matrix import MatrixSelection
from nightjar_lab.suite.outcome import SuiteOutcome
from nightjar_lab.suite.stages import stage_traceback

FOLDER = Path(__file__).parent
FILE = FOLDER / "cases.py"
"""The file under which pytest shows the cases."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ExecuTorch's driver; its `--filter` is pytest's `-k`."""
    group = parser.getgroup("nightjar suite", "cases of backend suites")
    for name, words in (("flow", texts.FLOW_HELP), ("backend", texts.BACKEND_HELP), ("suite", texts.SUITE_HELP)):
        group.addoption(f"--{name}", action="append", default=[], dest=f"nightjar_suite_{name}", help=words)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Ignore the other files of the package, whatever `python_files` says."""
    is_ours = FOLDER in collection_path.parents and collection_path != FILE
    return True if is_ours else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the cases."""
    return CasesFile.from_parent(parent, path=file_path) if file_path == FILE else None


class CasesFile(pytest.File):
    """All cases of the selected flows and suites."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Return a collector for each suite, and one that is skipped for each flow and suite that cannot be loaded."""
        flows, backends, suites = (
            tuple(self.config.getoption(f"nightjar_suite_{name}")) for name in ("flow", "backend", "suite")
        )
        try:
            matrix = LocalMatrix(MatrixSelection(flows, backends, suites))
        except (NotAvailable, NumpyMissing) as error:
            raise self.CollectError(str(error)) from error
        flows_of: dict[str, list[tuple[Flow, TestSuite]]] = {}
        for flow, suite in matrix.runs:
            flows_of.setdefault(suite.name, []).append((flow, suite))
        yield from (SuiteCollector.from_parent(self, name=name, runs=runs) for name, runs in flows_of.items())
        yield from (
            UnavailableCollector.from_parent(self, name=entry.name, entry=entry) for entry in matrix.unavailable
        )


class SuiteCollector(pytest.Collector):
    """The cases of a suite on each of its flows."""

    def __init__(self, *, runs: Sequence[tuple[Flow, TestSuite]], **options: Any) -> None:
        super().__init__(**options)
        self._runs = runs

    def collect(self) -> Iterable[pytest.Item]:
        """Return a test for each case, named by its test ID."""
        for flow, suite in self._runs:
            for case in cases_of(flow, suite):
                yield CaseItem.from_parent(self, name=case.test_id, case=case)


class UnavailableCollector(pytest.Collector):
    """A flow or a suite that cannot be loaded here."""

    def __init__(self, *, entry: ListedFlow, **options: Any) -> None:
        super().__init__(**options)
        self._entry = entry

    def collect(self) -> Iterable[pytest.Item]:
        """Skip it with the reason."""
        pytest.skip(texts.NOT_RUN.format(name=self._entry.name, reason=self._entry.reason))


class CaseItem(pytest.Item):
    """A case on a flow."""

    def __init__(self, *, case: LocalCase, **options: Any) -> None:
        super().__init__(**options)
        self._case = case
        self._error: BaseException | None = None

    def runtest(self) -> None:
        """Run the case. What a stage raises is raised here, with its traceback."""
        result, self._error = self._case.run()
        if result.outcome is SuiteOutcome.KNOWN_FAILURE:
            pytest.xfail(result.error)
        if result.outcome.is_failure:
            stage = result.stage.value if result.stage else texts.BEFORE
            self.user_properties += [("stage", stage), ("result", result.outcome.detail)]
            self.add_report_section("call", "case", texts.AT_STAGE.format(stage=stage, what=result.outcome.detail))
            assert self._error is not None
            raise self._error
        if not result.outcome.is_pass:
            pytest.skip(skip_reason(result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the report of a failure: of a stage's error, only what the flow and the suite did."""
        error = excinfo.value
        if error is self._error and (traceback := stage_traceback(error)):
            excinfo = pytest.ExceptionInfo.from_exc_info((type(error), error, traceback))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the location that reports show."""
        return self.path, None, self.name
