"""The flow `executorch-xnnpack`: ExecuTorch with XNNPACK. It takes modules of PyTorch: the suite `torch-modules`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.flow import Flow, LoweringReport
from nightjar_lab.suite.outcome import InvalidCase, SkipCase
from nightjar_lab.suite.tolerances import FLOAT32

NOT_A_MODULE = "ExecuTorch needs a PyTorch module, not a {kind}"
NOT_EXPORTED = "PyTorch cannot export the module: {error}"


class ExecuTorchProgram:
    """A program as ExecuTorch stores it, and what was delegated."""

    def __init__(self, bytes_: bytes, report: LoweringReport) -> None:
        self.bytes = bytes_
        self.report = report


def tensors_of(arrays: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Return arrays as tensors."""
    return tuple(torch.from_numpy(np.array(array, order="C")) for array in arrays)


def _lower(model: Any, data: CaseData) -> ExecuTorchProgram:
    if not isinstance(model, torch.nn.Module):
        raise SkipCase(NOT_A_MODULE.format(kind=type(model).__name__))
    try:
        exported = torch.export.export(model, tensors_of(data.inputs))
    except Exception as error:
        raise InvalidCase(NOT_EXPORTED.format(error=error)) from error
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    delegated: Counter[str] = Counter()
    undelegated: Counter[str] = Counter()
    for name, counts in get_delegation_info(edge.exported_program().graph_module).delegation_by_operator.items():
        delegated[name] += counts.delegated
        undelegated[name] += counts.non_delegated
    program = edge.to_executorch().buffer
    return ExecuTorchProgram(program, LoweringReport(+delegated, +undelegated, size_bytes=len(program)))


def _load(program: ExecuTorchProgram) -> Any:
    return Runtime.get().load_program(program.bytes).load_method("forward")


def _run(method: Any, inputs: Sequence[Any]) -> list[Any]:
    return [output.detach().numpy() for output in method.execute(tensors_of(inputs))]


def _report(program: ExecuTorchProgram) -> LoweringReport:
    return program.report


FLOW = Flow(
    "executorch-xnnpack",
    "executorch",
    lower=_lower,
    load=_load,
    run=_run,
    report=_report,
    tolerance=FLOAT32,
    version=metadata.version("executorch"),
    description="ExecuTorch, XNNPACK delegate, float32",
)
