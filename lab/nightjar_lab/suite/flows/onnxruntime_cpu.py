"""The flows of ONNX Runtime on the CPU: `onnxruntime-cpu`, and two that quantize to 8 bits."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.flow import Flow, LoweringReport
from nightjar_lab.suite.flows.onnxruntime_values import CONVERTED_NAMES, OrtValue, array_of, ort_value
from nightjar_lab.suite.suites.onnx_values import feeds_of, flat
from nightjar_lab.suite.tolerances import FLOAT32, INT8

PROVIDER = "CPUExecutionProvider"
FATAL = 4
RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
"""Makes a session say which node went to which provider (`onnxruntime_session_options_config_keys.h`)."""


class OrtProgram:
    """A session, and the model that it was made of."""

    def __init__(self, model: onnx.ModelProto) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = FATAL  # Its errors are exceptions too.
        options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
        self.model = model
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=[PROVIDER])


class CaseInputs(CalibrationDataReader):  # type: ignore[misc]  # it has no types
    """The inputs of a case, which are all that there is to calibrate with."""

    def __init__(self, model: onnx.ModelProto, data: CaseData) -> None:
        self._feeds: Iterator[dict[str, Any]] = iter([feeds_of(model, data.inputs)])

    def get_next(self) -> dict[str, Any] | None:
        """Return the inputs once, and then None."""
        return next(self._feeds, None)


def _quantize_dynamically(model: onnx.ModelProto, data: CaseData) -> onnx.ModelProto:
    return _written(lambda path: quantize_dynamic(model, path))


def _quantize_statically(model: onnx.ModelProto, data: CaseData) -> onnx.ModelProto:
    return _written(lambda path: quantize_static(model, path, CaseInputs(model, data)))


def _written(quantize: Callable[[Path], None]) -> onnx.ModelProto:
    """Return the model that a quantizer writes to a path."""
    with tempfile.TemporaryDirectory(prefix="nightjar-suite-") as folder, _without_warnings():
        path = Path(folder, "quantized.onnx")
        quantize(path)
        return onnx.load(path)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Leave out the quantizers' advice to run another tool before, which they log on each call."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _lower(model: onnx.ModelProto, data: CaseData) -> OrtProgram:
    return OrtProgram(model)


def _run(program: OrtProgram, inputs: Sequence[Any]) -> list[Any]:
    session = program.session
    feeds = {name: ort_value(value) for name, value in feeds_of(program.model, inputs).items()}
    types = [output.type for output in session.get_outputs()]
    if not any(isinstance(feed, OrtValue) for feed in feeds.values()) and all(map(_is_converted, types)):
        return flat(session.run(None, feeds))
    values = {
        name: feed if isinstance(feed, OrtValue) else OrtValue.ortvalue_from_numpy(feed) for name, feed in feeds.items()
    }
    return [array_of(value) for value in session.run_with_ort_values(None, values)]


def _is_converted(kind: str) -> bool:
    """Say whether a session returns an output of this type as an array, or as a list of arrays."""
    return not kind.startswith("tensor(") or kind[len("tensor(") : -1] in CONVERTED_NAMES


def _report(program: OrtProgram) -> LoweringReport:
    delegated: Counter[str] = Counter()
    undelegated: Counter[str] = Counter()
    for part in program.session.get_provider_graph_assignment_info():
        (delegated if part.ep_name == PROVIDER else undelegated).update(node.op_type for node in part.get_nodes())
    return LoweringReport(delegated, undelegated, size_bytes=program.model.ByteSize())


VERSION = onnxruntime.__version__

CPU = Flow(
    "onnxruntime-cpu",
    "onnxruntime",
    lower=_lower,
    run=_run,
    report=_report,
    tolerance=FLOAT32,
    version=VERSION,
    description="ONNX Runtime, CPU provider",
    model_format="onnx",
)
INT8_CPU = Flow(
    "onnxruntime-cpu-int8",
    "onnxruntime",
    quantize=_quantize_dynamically,
    lower=_lower,
    run=_run,
    report=_report,
    tolerance=INT8,
    version=VERSION,
    description="ONNX Runtime, CPU provider, weights quantized dynamically to 8 bits",
    quantization="dynamic int8",
    model_format="onnx",
)
STATIC_INT8_CPU = Flow(
    "onnxruntime-cpu-int8-static",
    "onnxruntime",
    quantize=_quantize_statically,
    lower=_lower,
    run=_run,
    report=_report,
    tolerance=INT8,
    version=VERSION,
    description="ONNX Runtime, CPU provider, quantized statically to 8 bits, calibrated with the inputs of the case",
    quantization="static int8",
    model_format="onnx",
)
