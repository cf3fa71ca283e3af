"""Build small ONNX models in code, with random weights that are the same in every process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 19, 9
"""Old enough for every backend: a model tests operators, not how new a backend is."""
SPREAD = 0.4
"""Standard deviation of random weights. Outputs neither vanish nor saturate."""

Array = npt.NDArray[Any]
"""An array of any type."""


class ModelBuilder:
    """A graph that grows node by node. Values are named by number, so that the same code gives the same bytes."""

    def __init__(self, name: str, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self.feeds: list[Array] = []

    def input(self, array: Array) -> str:
        """Declare an input of an array's type and shape, which is fed with the array."""
        name = f"input_{len(self._inputs)}"
        self._inputs.append(_value(name, array.dtype, array.shape))
        self.feeds.append(array)
        return name

    def weight(self, *shape: int) -> str:
        """Add an initializer with normally distributed float32 values."""
        return self.constant(self.random.normal(0.0, SPREAD, shape).astype(np.float32))

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> str:
        """Add an initializer with the given value."""
        name = f"weight_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return the output's name."""
        return self.nodes(operator, *inputs, outputs=1, **attributes)[0]

    def nodes(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs; return their names."""
        number = len(self._nodes)
        names = [f"value_{number}_{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(operator, inputs, names, name=f"{operator}_{number}", **attributes))
        return names

    def output(self, name: str, dtype: npt.DTypeLike, shape: Sequence[int]) -> None:
        """Declare that a value is an output of the model."""
        self._outputs.append(_value(name, np.dtype(dtype), shape))

    def model(self) -> onnx.ModelProto:
        """Return the finished model, checked by ONNX's own checker.

        Raises onnx.checker.ValidationError for a model that is not valid.
        """
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, self._weights)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, producer_name="nightjar-lab", opset_imports=opsets, ir_version=IR_VERSION)
        onnx.checker.check_model(model, full_check=True)
        return model


def _value(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)
