"""Cases are tests of pytest and of unittest: selected, debugged, repeated and distributed like any others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[3]
HERE = "tests.lab.suite"


def run(folder: Path, *words: str, stdin: str = "", **variables: str) -> str:
    """Run Python in a folder, without the plugins of these tests; return what it prints."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "NIGHTJAR_", "QNN_"))
    }
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout


def cases(folder: Path, *words: str, stdin: str = "") -> str:
    return run(folder, "pytest", "-p", "nightjar_lab.pytest", "--pyargs", "nightjar_lab.suite", *words, stdin=stdin)


DEEDS = ("--flow", f"{HERE}.hostile:FLOW", "--suite", f"{HERE}.hostile:SUITE")


def test_each_case_is_a_test_with_its_id_and_its_outcome(tmp_path: Path) -> None:
    output = cases(
        tmp_path, *DEEDS, "--flow", "qnn", "-rs", "--junitxml", "a.xml",
        "-k", "fails or differs or skip or invalid or memory or known or pass_a",
    )  # fmt: skip
    outcomes = {
        case.attrib["name"]: ", ".join(child.tag for child in case) or "passed"
        for case in ET.parse(tmp_path / "a.xml").iter("testcase")
    }
    assert outcomes == {
        "pass_a[hostile]": "passed",
        "run_fails[hostile]": "properties, failure",
        "make_fails[hostile]": "skipped",
        "reference_fails[hostile]": "skipped",
        "quantize_fails[hostile]": "properties, failure",
        "lower_fails[hostile-float32]": "properties, failure",
        "load_fails[hostile]": "properties, failure",
        "run_differs[hostile]": "properties, failure",
        "skip_me[hostile]": "skipped",
        "load_skips[hostile]": "skipped",
        "lower_invalid[hostile-float32]": "skipped",
        "run_memory[hostile]": "skipped",
        "make_memory[hostile]": "skipped",
        "pass_known[hostile]": "passed",
        "qnn": "skipped",
    }
    assert "qnn is not available: QNN_SDK_ROOT is not set" in output, "also where -k selects other cases"
    assert "Case Invalid: the model has no output" in output
    properties = {
        (entry.attrib["name"], entry.attrib["value"]) for entry in ET.parse(tmp_path / "a.xml").iter("property")
    }
    assert {("stage", "load"), ("result", "PTE Load Failed"), ("result", "Output Mismatch")} <= properties
    assert "at stage run: PTE Run Failed" in output
    assert "def act(deed: str)" in output
    assert "stages.py" not in output, "the traceback begins in the flow"
    # --lf takes those that failed; --pdb stops where the first one raised.
    again = cases(tmp_path, *DEEDS, "--lf", "-x", "--pdb", stdin="p 'deed is ' + deed\nq\n")
    assert "run-last-failure: rerun previous 5 failures" in again
    assert "deed is fails" in again


@pytest.mark.exhaustive
def test_a_crash_ends_only_its_worker_of_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    output = cases(tmp_path, *DEEDS, "-p", "xdist.plugin", "-n", "1", "-k", "pass_a or lower_segfault or pass_b")
    assert "1 failed, 2 passed" in output
    assert "crashed while running 'cases.py::deeds::lower_segfault[hostile-float32]'" in output


def test_a_name_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    output = cases(tmp_path, "--flow", "qnn-v1")
    assert "there is no flow named qnn-v1; available: coreml" in output
    assert "1 error" in output


def test_the_options_exist_only_where_the_suite_is_named(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--backend')\n")
    (tmp_path / "test_suite.py").write_text("def test_backend(request): assert request.config.option.backend == 'a'\n")
    output = run(tmp_path, "pytest", "-p", "nightjar_lab.pytest", "--backend", "a", "test_suite.py")
    assert "1 passed" in output


def test_unittest_finds_the_cases_too(tmp_path: Path) -> None:
    selection = {"NIGHTJAR_FLOWS": f"{HERE}.hostile:FLOW,qnn", "NIGHTJAR_SUITES": f"{HERE}.hostile:SUITE"}
    output = run(tmp_path, "unittest", "nightjar_lab.suite", "-v", "-k", "run_fails", "-k", "pass_a[", **selection)
    assert "deeds.pass_a[hostile] ... ok" in output
    assert "deeds.run_fails[hostile] ... ERROR" in output
    assert "qnn ... skipped 'qnn is not available: QNN_SDK_ROOT is not set" in output
