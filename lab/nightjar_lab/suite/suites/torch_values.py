"""Cases of PyTorch modules: inputs as arrays, and PyTorch's own outputs as the expected ones."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.outcome import InvalidCase, SkipCase

IS_RANDOM = "two runs of PyTorch differ, so there are no outputs to compare with"
NO_TENSOR = "the outputs have no tensor"


def case_data(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> CaseData:
    """Return a case of a module, whose expected outputs are PyTorch's."""
    expected = functools.partial(expected_outputs, module, inputs)
    return CaseData(module, [array_of(tensor) for tensor in inputs], expected)


def expected_outputs(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[Any]:
    """Return the outputs of a module as arrays. Raises SkipCase if they are random, InvalidCase if there are none."""
    outputs, repeated = (_outputs(module, inputs) for _ in range(2))
    if not outputs:
        raise InvalidCase(NO_TENSOR)
    if not all(np.array_equal(*pair, equal_nan=True) for pair in zip(outputs, repeated)):
        raise SkipCase(IS_RANDOM)
    return outputs


def array_of(tensor: torch.Tensor) -> Any:
    """Return a tensor as an array."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().numpy()


def _outputs(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[Any]:
    # Copies, because some operators change their inputs.
    with torch.no_grad():
        outputs = module(*(tensor.clone() for tensor in inputs))
    return [array_of(leaf) for leaf in pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
