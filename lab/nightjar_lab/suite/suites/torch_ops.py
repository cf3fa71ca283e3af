"""The suite `torch-ops`: PyTorch's operators, generated from the samples of PyTorch's own tests (`OpInfo`)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.outcome import SkipCase
from nightjar_lab.suite.suites.torch_values import case_data

DTYPES = {"float32": torch.float32, "int32": torch.int32}
"""The types of the samples: operators on numbers have the first, those on bits and indices the second."""
UNINITIALIZED = ("empty", "new_empty")
"""Beginnings of the names of operators whose outputs are whatever the memory has."""
IS_UNINITIALIZED = "the outputs are uninitialized memory, so there are none to compare with"
FOR_GPUS, NEEDS_GPU = "jiterator", "PyTorch itself runs it on GPUs only"
NO_SAMPLE = "PyTorch's tests have no sample with elements for it"
MOST_SAMPLES = 200
"""The most samples among which to find one; a few operators have thousands."""


@functools.lru_cache(maxsize=1)
def _operators() -> dict[str, Any]:
    # The tests of PyTorch are a part of its package, but their module is not for others: releases may change it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return {operator.formatted_name: operator for operator in op_db}


class SampledOperator(torch.nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """An operator with the arguments of a sample, of which the tensors are the inputs."""

    def __init__(self, operator: Callable[..., Any], leaves: Sequence[Any], spec: pytree.TreeSpec) -> None:
        super().__init__()
        self._operator = operator
        self._spec = spec
        self._leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Call the operator."""
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, inputs):
            leaves[place] = tensor
        arguments, keywords = pytree.tree_unflatten(leaves, self._spec)
        outputs = self._operator(*arguments, **keywords)
        # A named tuple, such as that of `torch.sort`, cannot be a part of an exported program.
        return tuple(outputs) if isinstance(outputs, tuple) else outputs


def _data(operator_name: str, dtype_name: str, seed: int) -> CaseData:
    if operator_name.startswith(UNINITIALIZED):
        raise SkipCase(IS_UNINITIALIZED)
    if operator_name.startswith(FOR_GPUS):
        raise SkipCase(NEEDS_GPU)
    operator = _operators()[operator_name]
    torch.manual_seed(seed)
    samples = operator.sample_inputs("cpu", DTYPES[dtype_name], requires_grad=False)
    for _, sample in zip(range(MOST_SAMPLES), samples):
        leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if tensors and all(tensor.numel() and tensor.layout is torch.strided for tensor in tensors):
            return case_data(SampledOperator(operator.op, leaves, spec), tensors)
    raise SkipCase(NO_SAMPLE)


def _names() -> list[str]:
    return [
        f"{name}-{dtype_name}"
        for name, operator in _operators().items()
        for dtype_name, dtype in DTYPES.items()
        if dtype in operator.dtypes
    ]


def _case(name: str) -> SuiteCase:
    operator_name, _, dtype_name = name.rpartition("-")
    return SuiteCase(name, functools.partial(_data, operator_name, dtype_name), {"dtype": dtype_name})


SUITE = TestSuite(
    "torch-ops",
    _names,
    _case,
    version=f"torch {torch.__version__}",
    description="PyTorch's operators with samples of its own tests, compared with PyTorch itself",
    model_format="torch",
)
