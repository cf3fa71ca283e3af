"""The stages of ExecuTorch's flows. Each quantizes and lowers with ExecuTorch's own recipe of that flow.

So a flow here and a flow of the same name in `executorch.backends.test.suite.flows` do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any

import numpy as np
import torch
from executorch.backends.test.suite.reporting import count_ops
from executorch.runtime import Runtime

from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.discovery import NotAvailable
from nightjar_lab.suite.flow import Flow, LoweringReport
from nightjar_lab.suite.outcome import InvalidCase, SkipCase
from nightjar_lab.suite.tolerances import FLOAT32, INT8

RECIPES = "executorch.backends.test.suite.flows"
NO_DELEGATE = "this installation of ExecuTorch cannot run {delegate}: its runtime has only {delegates}"
NOT_A_MODULE = "ExecuTorch needs a PyTorch module, not a {kind}"
OPERATOR_MISSING = "error: 0x:14"
"""How the runtime says that there is no kernel for an operator (`Error::OperatorMissing`)."""
NO_KERNEL = "ExecuTorch's portable kernels lack an operator that the backend does not take; the output names it"
NOT_EXPORTED = "PyTorch cannot export the module: {error}"
DESCRIPTION = "ExecuTorch, {delegate}, {quantization}"
SKIPPED_THERE = "ExecuTorch's suite skips these cases for this flow"


class ExecutorchProgram:
    """A program as ExecuTorch stores it, and what was delegated."""

    def __init__(self, program: bytes, report: LoweringReport) -> None:
        self.bytes = program
        self.report = report


class ExecutorchRecipe:
    """The stages before a program runs, as a flow of ExecuTorch's suite has them (`TestFlow` there)."""

    def __init__(self, recipe: Any) -> None:
        self._recipe = recipe

    def quantize(self, model: Any, data: CaseData) -> Any:
        """Quantize a module, calibrated with the inputs of the case; return the tester that holds the result."""
        stage = self._recipe.quantize_stage_factory
        return self._tester(model, data).quantize(stage() if stage else None)

    def lower(self, model: Any, data: CaseData) -> ExecutorchProgram:
        """Lower a module, or what `quantize` returned."""
        tester = model if self._recipe.quantize else self._tester(model, data)
        try:
            tester.export()
        except Exception as error:
            raise InvalidCase(NOT_EXPORTED.format(error=error)) from error
        # The counts are those of ExecuTorch's own report (`run_test` there).
        tester.to_edge_transform_and_lower(generate_etrecord=True)
        edge = tester.get_artifact()
        undelegated = count_ops(edge._edge_programs)
        delegated = count_ops({"forward": edge._etrecord.edge_dialect_program}) - undelegated
        program = tester.to_executorch().serialize().get_artifact()
        return ExecutorchProgram(program, LoweringReport(delegated, undelegated, size_bytes=len(program)))

    def _tester(self, model: Any, data: CaseData) -> Any:
        if not isinstance(model, torch.nn.Module):
            raise SkipCase(NOT_A_MODULE.format(kind=type(model).__name__))
        return self._recipe.tester_factory(model, tensors_of(data.inputs))


def flow_of(name: str, backend: str, recipe_name: str, delegate: str, quantization: str) -> Flow:
    """Return a flow. Raises NotAvailable if the runtime lacks the backend, or the import error of its recipe."""
    delegates = Runtime.get().backend_registry.registered_backend_names
    if delegate not in delegates:
        raise NotAvailable(NO_DELEGATE.format(delegate=delegate, delegates=", ".join(sorted(delegates))))
    module, _, attribute = recipe_name.partition(":")
    recipe = getattr(import_module(f"{RECIPES}.{module}"), attribute)
    stages = ExecutorchRecipe(recipe)
    return Flow(
        name,
        backend,
        lower=stages.lower,
        load=_load,
        run=_run,
        quantize=stages.quantize if quantization else None,
        report=_report,
        tolerance=INT8 if quantization else FLOAT32,
        skip={f"*{pattern}*": SKIPPED_THERE for pattern in recipe.skip_patterns},
        version=metadata.version("executorch"),
        description=DESCRIPTION.format(delegate=delegate, quantization=quantization or "float32"),
        quantization=quantization,
        model_format="torch",
    )


def tensors_of(arrays: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Return arrays as tensors."""
    return tuple(torch.from_numpy(np.array(array, order="C")) for array in arrays)


def _load(program: ExecutorchProgram) -> Any:
    try:
        return Runtime.get().load_program(program.bytes).load_method("forward")
    except RuntimeError as error:
        if OPERATOR_MISSING in str(error):
            raise SkipCase(NO_KERNEL) from error
        raise


def _run(method: Any, inputs: Sequence[Any]) -> list[Any]:
    return [output.detach().numpy() for output in method.execute(tensors_of(inputs))]


def _report(program: ExecutorchProgram) -> LoweringReport:
    return program.report
