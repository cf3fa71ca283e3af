"""Values of ONNX cases as NumPy arrays: tensors of any type, and sequences of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from nightjar_lab.suite.outcome import SkipCase

NO_VALUE = "the harness has no array for an absent optional value"


def value_of(given: Any) -> Any:
    """Return a value of a case as an array, or as a list of arrays for a sequence.

    Types that NumPy lacks, such as bfloat16, are those of ml_dtypes. Raises SkipCase for an optional without a value.
    """
    if given is None:
        raise SkipCase(NO_VALUE)
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    if isinstance(given, (list, tuple)):
        return [value_of(one) for one in given]
    return _text_as_objects(np.asarray(given))


def flat(values: Iterable[Any]) -> list[Any]:
    """Return outputs with the tensors of each sequence in its place, so that every output is an array."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += flat(value)
        elif value is None:
            raise SkipCase(NO_VALUE)
        else:
            found.append(_text_as_objects(value))
    return found


def _text_as_objects(array: Any) -> Any:
    """Return texts of any length as objects, as ONNX's own cases have them; NumPy's fixed lengths are other types."""
    return array.astype(object) if array.dtype.kind in "US" else array


def feeds_of(model: onnx.ModelProto, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return inputs by the names that the model has for them."""
    initializers = {weight.name for weight in model.graph.initializer}
    return dict(zip((one.name for one in model.graph.input if one.name not in initializers), inputs))
