"""The plugin's cost for a project that does not use it, in function calls: seconds depend on the machine."""

from __future__ import annotations

import os

import pytest

from tests.lab.plugin.project import LAB, PYTHON

MOST_SHARE = 0.01
FEW, MANY = 20, 220
COUNTER = """
import sys

import pytest

calls = 0

def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")

sys.setprofile(count)
status = pytest.main(sys.argv[1:])
sys.setprofile(None)
print("calls", calls, int(status))
"""


def calls_of(pytester: pytest.Pytester, tests: int, *options: str) -> int:
    """Return how many functions a run of this many trivial tests calls, including C functions."""
    pytester.makepyfile(
        test_many="".join(f"def test_{number}(): pass\n" for number in range(tests)), count_calls=COUNTER
    )
    words = ("-q", "-p", "no:cacheprovider", *options, "test_many.py")
    done = pytester.run(PYTHON, "count_calls.py", *words)
    name, count, status = done.outlines[-1].split()
    assert (name, status) == ("calls", "0"), done.outlines
    return int(count)


def test_a_test_costs_at_most_one_percent_more_calls(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{LAB}{os.pathsep}{pytester.path}")

    def per_test(*options: str) -> int:
        # The difference leaves out the fixed cost of a run, which hardly matters at 20,000 tests.
        return calls_of(pytester, MANY, *options) - calls_of(pytester, FEW, *options)

    without, with_it = per_test(), per_test("-p", "nightjar_lab.pytest")
    assert without > MANY
    assert with_it / without - 1 <= MOST_SHARE, f"{without:,} calls without the plugin, {with_it:,} with it"
