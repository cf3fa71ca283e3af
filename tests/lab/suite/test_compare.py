"""Outputs are compared as ExecuTorch compares them, and a difference in kind is reported clearly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from nightjar_lab.suite.case import Tolerance
from nightjar_lab.suite.compare import OutputMismatch, compare_outputs

NAN, INF = math.nan, math.inf
TIGHT = Tolerance(1e-3, 0)


def test_the_errors_are_those_of_executorch() -> None:
    output, expected = np.array([3.0, 4.0, 0.0]), np.array([3.0, 4.0, 0.5])
    (error,) = compare_outputs([output], [expected], Tolerance(1, 0))
    assert (error.largest, error.mean) == (0.5, 0.5 / 3)
    assert error.snr == pytest.approx(20 * math.log10(5 / 0.5))
    (equal,) = compare_outputs([expected], [expected], TIGHT)
    assert (equal.largest, equal.mean, equal.snr) == (0, 0, INF)


@pytest.mark.parametrize(
    "values",
    [
        [[NAN, 1.0]],
        [[INF, -INF]],
        [[]],
        [np.array(5)],
        [np.array([2**62 + 1])],
        [np.array(["a"])],
        [None],
        [[np.zeros(2), np.zeros(3)]],
        [np.array([1 + 2j])],
        [np.array([True])],
        [np.array([b"x", None], dtype=object)],
    ],
)
def test_equal_outputs_pass(values: list[Any]) -> None:
    compare_outputs(values, values, TIGHT)


@pytest.mark.parametrize(
    ("outputs", "expected", "words"),
    [
        ([[1.0]], [[1.0], [2.0]], "there are 1 outputs, expected 2"),
        (np.zeros(2), [[0.0]], "run returned ndarray instead of a list"),
        ([[1.0, 2.0]], [[1.0]], "Output 0 has shape (2,), expected (1,)"),
        ([np.array([1.0], "f4")], [np.array([1.0], "f8")], "Output 0 has dtype float32, expected float64"),
        (
            [[1.0], [NAN]],
            [[1.0], [2.0]],
            "Output 1 differs in 1 of 1 elements, by inf at most; the first is at [0]: nan",
        ),
        ([[INF]], [[-INF]], "Output 0 differs in 1 of 1"),
        ([[INF]], [[1.0]], "Output 0 differs in 1 of 1"),
        ([[1.0]], [[INF]], "Output 0 differs in 1 of 1"),
        ([[0.0], [0.0]], [[1.0], [2.0]], "; other outputs that differ: 1"),
        ([["a", "b"]], [["a", "c"]], "Output 0 differs in 1 of 2 elements"),
        ([None], [[1.0]], "Output 0 is None, expected list"),
        ([[np.zeros(2)]], [[np.zeros(2), np.zeros(2)]], "Output 0 has 1 elements, expected 2"),
        ([[np.zeros(2), np.ones(2)]], [[np.zeros(2), np.zeros(2)]], "Output 0[1] differs in 2 of 2"),
        ([[True]], [[False]], "Output 0 differs in 1 of 1"),
    ],
)
def test_a_difference_is_named(outputs: Any, expected: Any, words: str) -> None:
    with pytest.raises(OutputMismatch) as raised:
        compare_outputs(outputs, expected, TIGHT)
    assert words in str(raised.value)


def test_a_mismatch_has_its_error_values() -> None:
    with pytest.raises(OutputMismatch) as raised:
        compare_outputs([[0.0], [1.5]], [[0.0], [1.0]], TIGHT)
    assert [error.largest for error in raised.value.errors] == [0.0, 0.5]


def test_the_tolerance_grows_with_the_expected_value() -> None:
    compare_outputs([[104.0, 0.1]], [[100.0, 0.0]], Tolerance())
    with pytest.raises(OutputMismatch):
        compare_outputs([[104.2]], [[100.0]], Tolerance())
