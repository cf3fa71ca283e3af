"""The flow `onnx-reference`: the reference evaluator of the `onnx` package, which is plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.flow import Flow
from nightjar_lab.suite.suites.onnx_values import feeds_of, flat
from nightjar_lab.suite.tolerances import FLOAT32

SKIP = {"test_image_decoder_decode_*": "the reference of ImageDecoder needs Pillow, which the extra does not have"}
KNOWN_FAILING = {
    "test_scatter_with*_axis": "there is no reference of Scatter, which is deprecated",
    "test_scan_sum": "the reference of Scan gives Add no value for the first state",
    "test_range_*_delta_expanded": "the reference of Loop gives Range's expansion one dimension too many",
}
"""Seen with onnx 1.23.2, in a run of all cases of `onnx-node`."""


def _lower(model: onnx.ModelProto, data: CaseData) -> ReferenceEvaluator:
    return ReferenceEvaluator(model)


def _run(program: ReferenceEvaluator, inputs: Sequence[Any]) -> list[Any]:
    return flat(program.run(None, feeds_of(program.proto_, inputs)))


FLOW = Flow(
    "onnx-reference",
    "onnx",
    lower=_lower,
    run=_run,
    tolerance=FLOAT32,
    skip=SKIP,
    known_failing=KNOWN_FAILING,
    version=onnx.__version__,
    description="ONNX's reference evaluator",
    model_format="onnx",
)
