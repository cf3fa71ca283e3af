"""Values of ONNX cases as NumPy arrays: tensors of any type, and sequences of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from nightjar_lab.suite.outcome import SkipCase

NO_VALUE = "the harness has no array for an absent optional value"


def value_of(case_value: Any) -> Any:
    """Return a value of a case as an array, or as a list of arrays for a sequence.

    Types that NumPy lacks, such as bfloat16, are those of ml_dtypes. Raises SkipCase for an optional without a value.
    """
    if case_value is None:
        raise SkipCase(NO_VALUE)
    if isinstance(case_value, onnx.TensorProto):
        return numpy_helper.to_array(case_value)
    if isinstance(case_value, (list, tuple)):
        return [value_of(element) for element in case_value]
    return _text_as_objects(np.asarray(case_value))


def flat(values: Iterable[Any]) -> list[Any]:
    """Return outputs with the tensors of each sequence in its place, so that every output is an array."""
    arrays: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            arrays += flat(value)
        elif value is None:
            raise SkipCase(NO_VALUE)
        else:
            arrays.append(_text_as_objects(value))
    return arrays


def _text_as_objects(array: Any) -> Any:
    """Return texts of any length as objects, as ONNX's own cases have them; NumPy's fixed lengths are other types."""
    return array.astype(object) if array.dtype.kind in "US" else array


def feeds_of(model: onnx.ModelProto, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return inputs by the names that the model has for them."""
    initializers = {weight.name for weight in model.graph.initializer}
    return dict(
        zip((model_input.name for model_input in model.graph.input if model_input.name not in initializers), inputs)
    )
