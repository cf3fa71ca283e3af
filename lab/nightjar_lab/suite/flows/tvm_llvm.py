"""The flows of Apache TVM on the CPU: `tvm-llvm`, and `tvm-llvm-fp16` with mixed precision."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.flow import Flow, LoweringReport
from nightjar_lab.suite.outcome import SkipCase
from nightjar_lab.suite.suites.onnx_values import flat
from nightjar_lab.suite.tolerances import FLOAT16, FLOAT32

TARGET = "llvm"
LEGALIZED = "relax.call_tir"
LESS_THAN_A_BYTE = (
    "the harness cannot pass {dtype} to TVM: its Python interface has no arrays with values of less than a byte"
)


class TvmProgram:
    """A compiled module: a shared library where this machine has a linker, else what the compiler keeps in memory."""

    def __init__(self, executable: Any, report: LoweringReport) -> None:
        self.executable = executable
        self.report = report
        self.path: Path | None = None
        if shutil.which("c++") or shutil.which("g++"):
            # The folder goes with the program, or with the worker's own temporary folder if the worker dies.
            self._folder = tempfile.TemporaryDirectory(prefix="nightjar-suite-")
            self.path = Path(self._folder.name, "program.so")
            executable.export_library(str(self.path))

    def size(self) -> int | None:
        """Return the bytes of the library."""
        return self.path.stat().st_size if self.path else None


def _import(model: onnx.ModelProto) -> Any:
    return from_onnx(model, keep_params_in_input=False)


def _quantize(model: onnx.ModelProto, data: CaseData) -> Any:
    try:
        module = _import(model)
    except Exception:
        # To import is a part of lowering, which tries it again, so that a case fails at one stage in both flows.
        return model
    return relax.transform.ToMixedPrecision(out_dtype="float16")(module)


def _lower(model: Any, data: CaseData) -> TvmProgram:
    module = _import(model) if isinstance(model, onnx.ModelProto) else model
    operators_before = _operators(module)
    module = relax.transform.LegalizeOps()(module)
    operators_after = _operators(module)
    executable = tvm.compile(module, target=TARGET)
    return TvmProgram(executable, LoweringReport(operators_before - operators_after, operators_after))


def _load(program: TvmProgram) -> Any:
    module = tvm.runtime.load_module(str(program.path)) if program.path else program.executable
    return relax.VirtualMachine(module, tvm.cpu())["main"]


def _run(main: Any, inputs: Sequence[Any]) -> list[Any]:
    return flat(_arrays(main(*map(_tensor, inputs))))


def _tensor(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensor(element) for element in value]
    if value.dtype.name.endswith(("int4", "int2")) or value.dtype.name.startswith("float4"):
        raise SkipCase(LESS_THAN_A_BYTE.format(dtype=value.dtype.name))
    return tvm.runtime.tensor(np.array(value, order="C"))


def _arrays(output: Any) -> list[Any]:
    if isinstance(output, tvm.runtime.Tensor):
        return [output.numpy()]
    if isinstance(output, (tvm.ir.Array, list, tuple)):
        return [array for element in output for array in _arrays(element)]
    return [np.asarray(output)]


def _operators(module: Any) -> Counter[str]:
    """Count Relax's operators in a module by name, except calls of compiled functions."""
    operators: Counter[str] = Counter()

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and isinstance(node.op, tvm.ir.Op) and node.op.name != LEGALIZED:
            operators[node.op.name] += 1

    for function in module.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return operators


def _report(program: TvmProgram) -> LoweringReport:
    report = program.report
    return LoweringReport(report.delegated_ops, report.undelegated_ops, size_bytes=program.size())


FP32 = Flow(
    "tvm-llvm",
    "tvm",
    lower=_lower,
    load=_load,
    run=_run,
    report=_report,
    tolerance=FLOAT32,
    version=tvm.__version__,
    description="Apache TVM, Relax ONNX front end, target llvm",
    model_format="onnx",
)
FP16 = Flow(
    "tvm-llvm-fp16",
    "tvm",
    quantize=_quantize,
    lower=_lower,
    load=_load,
    run=_run,
    report=_report,
    tolerance=FLOAT16,
    version=tvm.__version__,
    description="Apache TVM, Relax ONNX front end, target llvm, matrix products and convolutions in float16",
    quantization="float16",
    model_format="onnx",
)
