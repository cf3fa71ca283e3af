"""Black-box tests of compilers and backends: flows x suites, each case through the stages of a flow.

A flow is what a user of a backend does: quantize, lower, load, run. A suite is a list of models with inputs and
expected outputs. The result of a case is the stage at which it fails. Write flows and suites with `flow` and `case`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import unittest


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    """Return the cases as tests of unittest: `python -m unittest nightjar_lab.suite`. See `cases`."""
    from nightjar_lab.suite.cases import load_tests as load_cases

    return load_cases(loader, tests, pattern)
