"""`--forks`: what runs together, and what people learn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FORKED = ("-p", "tests.forks", "--forks", "2", "-p", "no:cacheprovider", "-v", "-rP")
TESTS = """
import os
import pytest

@pytest.fixture(scope="module")
def shared():
    print("made")

@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("number", range(8))
def test_grouped(number, tmp_path):
    print("grouped in", os.environ["PYTEST_XDIST_WORKER"])

@pytest.mark.parametrize("number", range(8))
def test_ungrouped(number, shared):
    print("ungrouped in", os.environ["PYTEST_XDIST_WORKER"])

def test_failing():
    assert os.environ["PYTEST_XDIST_WORKER"] == "another"
"""
DYING = """
import os
import signal
import pytest

@pytest.mark.timeout(0.1, func_only=True)
def test_hanging():
    signal.pause()

def test_dying():
    os._exit(3)

def test_next():
    pass
"""


def test_every_test_runs_once_in_the_process_of_its_group_or_file(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nmarkers = xdist_group")
    pytester.makepyfile(test_one=TESTS, test_other=TESTS)
    result = pytester.runpytest_subprocess(*FORKED)
    output = result.stdout.str()
    result.assert_outcomes(passed=32, failed=2)
    assert "AssertionError: assert 'fork" in output
    grouped = re.findall(r"^grouped in (\w+)", output, re.MULTILINE)
    assert (len(grouped), len(set(grouped))) == (16, 1)
    ungrouped = re.findall(r"^ungrouped in (\w+)", output, re.MULTILINE)
    assert (len(ungrouped), output.count("made\n")) == (16, 2)


def test_a_test_that_hangs_or_ends_its_process_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_one=DYING, test_other="def test_other(): pass")
    result = pytester.runpytest_subprocess(*FORKED)
    result.assert_outcomes(passed=1, failed=2)
    assert "Failed: Timeout" in result.stdout.str()
    assert "the process that ran this test ended with status 3" in result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED, "not all tests ran, so `make tests` runs nothing again"
