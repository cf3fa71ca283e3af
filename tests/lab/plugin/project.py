"""Run pytest on a small project, and return the outcome of each test."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

LAB = Path(__file__).parents[3] / "lab"
RECORDER = """
    import json, pathlib, warnings

    OUTCOMES, WARNINGS = {}, []

    def pytest_runtest_logreport(report):
        if report.when == "call" or not report.passed:
            xfail = hasattr(report, "wasxfail")
            outcome = {"skipped": "xfailed", "passed": "xpassed"}[report.outcome] if xfail else report.outcome
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            OUTCOMES[report.nodeid.partition("::")[2]] = [outcome, report.wasxfail if xfail else why]

    def pytest_warning_recorded(warning_message):
        WARNINGS.append(str(warning_message.message))

    def pytest_sessionfinish(session):
        if not hasattr(session.config, "workerinput"):
            pathlib.Path(__file__).with_name("outcomes.json").write_text(json.dumps([OUTCOMES, WARNINGS]))
"""
NOTHING: Mapping[str, str] = {}
PYTHON = os.environ.get("NIGHTJAR_PLUGIN_PYTHON", sys.executable)
"""Another Python to test with, which has another pytest: lab/README.md."""
TARGETS = ("NIGHTJAR_TEST_TARGETS", "TVM_TEST_TARGETS", "NIGHTJAR_TEST_DISABLE_CACHE", "TVM_TEST_DISABLE_CACHE")


@dataclass(frozen=True)
class ProjectRun:
    """The result of pytest on a project: the outcome and the reason of each test, by its ID without the file."""

    status: int
    outcomes: dict[str, tuple[str, str]]
    warnings: list[str]
    text: str

    def short(self) -> dict[str, str]:
        return {test: outcome for test, (outcome, _) in self.outcomes.items()}

    def with_outcome(self, outcome: str) -> set[str]:
        return {test for test, (outcome_of_test, _) in self.outcomes.items() if outcome_of_test == outcome}


@dataclass(frozen=True)
class Project:
    """A project in its own folder, without our plugins."""

    pytester: pytest.Pytester
    monkeypatch: pytest.MonkeyPatch

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.pytester.path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")

    def run(
        self, *args: str, workers: int = 0, plugin: bool = True, environ: Mapping[str, str] = NOTHING
    ) -> ProjectRun:
        self.write(recorder=RECORDER)
        outcomes_file = self.pytester.path / "outcomes.json"
        outcomes_file.unlink(missing_ok=True)
        with self.monkeypatch.context() as patch:
            for name in TARGETS:
                patch.delenv(name, raising=False)
            for name, value in {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environ}.items():
                patch.setenv(name, value)
            patch.setenv("PYTHONPATH", f"{self.pytester.path}:{LAB}")
            chosen = [*(["-p", "nightjar_lab.pytest"] if plugin else []), "-p", "recorder"]
            spread = ["-p", "xdist.plugin", "-n", str(workers), "--dist", "loadfile"] if workers else []
            command = [PYTHON, "-m", "pytest", *chosen, *spread, "-p", "no:cacheprovider", *args]
            result = self.pytester.run(*command)
        outcomes, warnings = json.loads(outcomes_file.read_text()) if outcomes_file.exists() else ({}, [])
        pairs = {test: (outcome, reason) for test, (outcome, reason) in outcomes.items()}
        return ProjectRun(int(result.ret), pairs, warnings, result.stdout.str() + result.stderr.str())
