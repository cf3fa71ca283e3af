"""Tolerances of outputs, by the precision of the computation."""

from __future__ import annotations

from nightjar_lab.suite.case import Tolerance

FLOAT32 = Tolerance(absolute=1e-5, relative=1e-3)
"""ONNX's own backend test has the same relative tolerance, and 1e-7 absolute, too strict for float32 sums near 0."""
FLOAT16 = Tolerance(absolute=1e-2, relative=2e-2)
"""A float16 has 11 significant bits, a precision of about 1e-3, and errors of several operators add up."""
INT8 = Tolerance()
"""The tolerance of ExecuTorch's suite."""
