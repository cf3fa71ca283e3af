"""How far outputs may be off, by the precision of what computed them."""

from __future__ import annotations

from nightjar_lab.suite.case import Tolerance

FLOAT32 = Tolerance(absolute=1e-5, relative=1e-3)
"""ONNX's own backend test has the same relative one, and 1e-7, which sums of float32 near zero do not keep."""
FLOAT16 = Tolerance(absolute=1e-2, relative=2e-2)
"""A float16 has 11 significant bits, about 1e-3, and errors of several operators add up."""
INT8 = Tolerance()
"""That of ExecuTorch's suite."""
