"""Tests of one group run in one worker: with some versions of pytest they silently do not."""

from __future__ import annotations

import re

import pytest

pytest_plugins = ["pytester"]

GROUPED = """
import pytest

@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("number", range(8))
def test_grouped(number, worker_id):
    print("grouped in", worker_id)
"""


def test_a_group_of_tests_runs_in_one_worker(pytester: pytest.Pytester) -> None:
    """As `--dist loadgroup` promises: https://pytest-xdist.readthedocs.io/en/stable/distribution.html."""
    pytester.makepyfile(GROUPED)
    result = pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup", "-rP", "-p", "no:cacheprovider")
    workers = re.findall(r"grouped in (\w+)", result.stdout.str())
    assert len(workers) == 8
    assert len(set(workers)) == 1
