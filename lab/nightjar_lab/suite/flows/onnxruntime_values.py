"""Tensors of ONNX Runtime from and to NumPy arrays, also of types for which ONNX Runtime has no conversion."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OrtValue = onnxruntime.OrtValue

CONVERTED = {
    TensorProto.FLOAT: "float",
    TensorProto.UINT8: "uint8",
    TensorProto.INT8: "int8",
    TensorProto.UINT16: "uint16",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.STRING: "string",
    TensorProto.BOOL: "bool",
    TensorProto.FLOAT16: "float16",
    TensorProto.DOUBLE: "double",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
}
"""Element types that ONNX Runtime itself converts from and to NumPy, and its names for them."""
CONVERTED_NAMES = frozenset(CONVERTED.values())


def ort_value(array: Any) -> Any:
    """Return an array as what a session takes: itself, or an OrtValue with its bits for a type that NumPy lacks.

    Values of less than a byte are packed: ONNX Runtime has them as ONNX's files do.
    """
    if isinstance(array, list):
        return array
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    if element in CONVERTED:
        return array
    packed = np.frombuffer(numpy_helper.from_array(np.array(array, order="C")).raw_data, np.uint8)
    # The runtime takes the shape from the array, and reads no more of it than the packed values need.
    width = np.uint16 if array.dtype.itemsize == 2 else np.uint8
    memory = np.zeros(array.shape, width)
    memory.reshape(-1).view(np.uint8)[: packed.size] = packed
    return OrtValue.ortvalue_from_numpy_with_onnx_type(memory, element)


def array_of(value: Any) -> Any:
    """Return a tensor as an array."""
    if value.element_type() in CONVERTED:
        return value.numpy()
    size = value.tensor_size_in_bytes()
    bits = ctypes.string_at(value.data_ptr(), size) if size else b""
    return numpy_helper.to_array(TensorProto(data_type=value.element_type(), dims=value.shape(), raw_data=bits))
