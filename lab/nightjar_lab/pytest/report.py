"""Write the report of a run: the tests that began, the outcome of each attempt, and the workers that died."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from nightjar_formats.items import counted
from nightjar_lab.pytest import run_texts as texts
from nightjar_lab.pytest.printable import printable
from nightjar_lab.pytest.registry import ACTIVE
from nightjar_lab.pytest.report_file import ReportFile, ReportNotOpened, open_report, open_report_in
from nightjar_lab.pytest.report_lines import line_of, poor_line, report_line

REPORT = "nightjar-report"
"""The plugin's name, under which other parts of the plugin find it."""
FOLDER = "NIGHTJAR_RESULTS"
"""The folder whose files become results; `nightjar-lab run` and `nightjar-lab agent` set it."""
WITHIN = "NIGHTJAR_PYTEST_RUNS"
"""Set while a run writes into that folder, so that a pytest that a test starts adds no results of its own."""
ATTEMPT = ("NIGHTJAR_ATTEMPT", "GITHUB_RUN_ATTEMPT")
TARGETS = ("NIGHTJAR_TEST_TARGETS", "TVM_TEST_TARGETS")


def has_report(config: pytest.Config, environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether this process, which may be a worker, runs tests of a run with a report."""
    return bool(config.getoption("nightjar_report") or environment.get(FOLDER))


def opened_report(config: pytest.Config, environment: Mapping[str, str] = os.environ) -> Report | None:
    """Return the report that the run asks for; None if it asks for none."""
    file_name, folder = config.getoption("nightjar_report"), environment.get(FOLDER)
    if not file_name and (not folder or WITHIN in environment):
        return None
    path = Path(config.invocation_params.dir, file_name or folder or "")
    try:
        return Report(config, path, open_report(path) if file_name else open_report_in(path))
    except ReportNotOpened as error:
        return Report(config, path, None, printable(str(error)))


class Report:
    """Writes the report. If it cannot be written, says so at the start and the end, but leaves the exit status alone.

    The exit status reports the outcome of the tests, and a full disk must not change it. A missing or cut report is
    noticed anyway: it has no SessionFinish, so Nightjar reads it as a run that died.
    """

    def __init__(self, config: pytest.Config, path: Path, file: ReportFile | None, refused: str = "") -> None:
        self.session: dict[str, Any] = {}
        """Members that other parts of the plugin add to the end of the report."""
        self._config = config
        self._path = path
        self._file = file
        self._refused = refused
        self._faults = 0
        self._fault = ""
        self._begin = time.monotonic()
        self._ended = False
        self._capabilities: dict[str, str] = {}
        self._marks = False

    def pytest_report_header(self) -> str:
        """Return the name of the report's file, for pytest's header."""
        return self._opened_or_not()

    def _opened_or_not(self) -> str:
        path = printable(str(self._file.path if self._file else self._path))
        if self._file:
            return texts.REPORT_WRITES.format(path=path)
        return texts.REPORT_NOT_OPENED.format(path=path, reason=self._refused)

    def start(self, shard: object) -> None:
        """Write the first line: what is run, and where."""
        if not self._file:
            return
        if FOLDER in os.environ and WITHIN not in os.environ:
            os.environ[WITHIN] = str(os.getpid())
            self._marks = True
        run: dict[str, Any] = {
            "version": 1,
            "started_at": datetime.now(timezone.utc).isoformat(),
            "python": platform.python_version(),
            "platform": platform.platform(),
        }
        for name, variables in (("attempt", ATTEMPT), ("targets", TARGETS)):
            value = next((os.environ[variable] for variable in variables if os.environ.get(variable)), None)
            if value is not None:
                run[name] = value
        if shard is not None:
            run["shard"] = str(shard)
        self._file.write(line_of("SessionStart", pytest_version=pytest.__version__, nightjar=run))

    def pytest_collection_finish(self) -> None:
        """Write which targets can be tested, once all tests are collected."""
        self._write_capabilities()

    def _write_capabilities(self) -> None:
        registry = next((registry for registry in ACTIVE if registry.config is self._config), None)
        capabilities = dict(registry.capabilities) if registry else {}
        if self._file and capabilities != self._capabilities:
            self._capabilities = capabilities
            self._write(lambda: line_of("NightjarCapabilities", targets=capabilities))

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Write that a test begins."""
        if self._file:
            self._write(lambda: line_of("NightjarStart", nodeid=nodeid, location=location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a phase of a test; first the call that another plugin held back, if there is one."""
        held_back = getattr(report, "nightjar_held_back", None)
        if self._file and isinstance(held_back, dict):
            if held_back["outcome"] != "rerun":
                return  # a successful attempt, which another attempt follows
            self._write(lambda: line_of("TestReport", nodeid=report.nodeid, when="call", **held_back))
        self._report(report, "TestReport")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write a failure to collect; a successful collection adds nothing to what its tests report."""
        if report.outcome != "passed":
            self._report(report, "CollectReport")

    def _report(self, report: pytest.TestReport | pytest.CollectReport, kind: str) -> None:
        if self._file:
            self._write(
                lambda: report_line(self._config, report, kind),
                lambda reason: poor_line(report, kind, reason),
            )

    def _write(self, line: Callable[[], bytes], instead: Callable[[str], bytes] | None = None) -> None:
        assert self._file is not None
        try:
            self._file.write(line())
        except Exception as error:  # a project's own report or properties may raise anything; the tests go on
            self._faults += 1
            self._fault = type(error).__name__
            if instead is not None:
                self._file.write(instead(self._fault))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Write that a worker died, which no test may show."""
        if error and self._file:
            worker = str(getattr(getattr(node, "gateway", None), "id", ""))
            message = texts.WORKER_DIED.format(worker=worker, error=printable(str(error), 500))
            self._file.write(line_of("NightjarWorkerDied", worker_id=worker, message=message))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write how the run ended."""
        if self._file and not self._ended:
            self._ended = True
            self._write_capabilities()
            status = int(getattr(session, "exitstatus", exitstatus))
            summary = {"seconds": round(time.monotonic() - self._begin, 3), **self.session}
            self._file.write(line_of("SessionFinish", exitstatus=status, nightjar=summary))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say at the end what the report lacks."""
        if not self._file:
            terminalreporter.write_line(self._opened_or_not(), red=True, bold=True)
            return
        if self._file.missing:
            notice = texts.REPORT_NOT_WHOLE.format(
                lost=self._file.missing,
                lines=counted(self._file.lines, "line"),
                path=printable(str(self._path)),
                reason=self._file.reason,
            )
            terminalreporter.write_line(notice, red=True, bold=True)
        if self._faults:
            notice = texts.REPORT_FAULTS.format(count=self._faults, reason=self._fault)
            terminalreporter.write_line(notice, yellow=True)

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
        if self._marks:
            os.environ.pop(WITHIN, None)


class HeldBackCalls:
    """Finds calls of tests that another plugin does not report: `flaky` drops those that it repeats.

    Without these calls, a test would seem to have died between its setup and its teardown. It is registered in the
    process that runs the tests. pytest-rerunfailures reports each attempt itself, with the outcome `rerun`.
    """

    def __init__(self) -> None:
        self._calls: dict[str, pytest.TestReport] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Note a call."""
        outcome = yield
        if call.when == "call" and outcome.excinfo is None:  # type: ignore[attr-defined]
            report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
            self._calls[report.nodeid] = report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a call that was not reported to the report of the teardown after it."""
        if report.when == "call":
            self._calls.pop(report.nodeid, None)
        elif report.when == "teardown":
            call = self._calls.pop(report.nodeid, None)
            if call is not None:
                failed = call.outcome == "failed"
                report.nightjar_held_back = {  # type: ignore[attr-defined]
                    "outcome": "rerun" if failed else call.outcome,
                    "duration": call.duration,
                    "longrepr": str(call.longrepr) if failed else None,
                }
