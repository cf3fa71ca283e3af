"""The suite `onnx-models`: the same bytes in every process, and models that the reference evaluates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nightjar_lab.suite.case import CaseData
from nightjar_lab.suite.discovery import load_flow, load_suite
from nightjar_lab.suite.outcome import SkipCase

onnx = pytest.importorskip("onnx", reason="the suite needs nightjar-lab[onnx]")

NAMES = [
    "mlp",
    "cnn",
    "inverted-residual",
    "unet",
    "autoencoder",
    "text-cnn",
    "lstm",
    "gru",
    "transformer-block",
    "embedding-bag",
    "recommender",
    "quantized-mlp",
    "dynamically-quantized-mlp",
]


def made(name: str) -> CaseData:
    case = load_suite("onnx-models").case(name)
    return case.make(case.seed)


def test_the_suite_has_these_models() -> None:
    assert list(load_suite("onnx-models").names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_reproducible_and_its_outputs_are_as_declared(name: str) -> None:
    data, repeated = made(name), made(name)
    assert data.model.SerializeToString(deterministic=True) == repeated.model.SerializeToString(deterministic=True)
    assert [value.tobytes() for value in data.inputs] == [value.tobytes() for value in repeated.inputs]
    assert callable(data.expected)
    expected = data.expected()
    flow = load_flow("onnx-reference")
    outputs = flow.run(flow.lower(data.model, data), data.inputs)
    for declared, expected_output, output in zip(data.model.graph.output, expected, outputs, strict=True):
        shape = tuple(dimension.dim_value for dimension in declared.type.tensor_type.shape.dim)
        assert expected_output.shape == output.shape == shape
        assert onnx.helper.np_dtype_to_tensor_dtype(expected_output.dtype) == declared.type.tensor_type.elem_type
        assert np.isfinite(expected_output).all()
        assert np.std(expected_output) > 0.01, "a constant output tests nothing"
        np.testing.assert_array_equal(output, expected_output)


def test_the_seed_of_a_case_decides_its_weights_and_inputs() -> None:
    case = load_suite("onnx-models").case("mlp")
    first, second = case.make(1), case.make(2)
    assert first.inputs[0].tobytes() != second.inputs[0].tobytes()
    assert first.model.graph.initializer[0].raw_data != second.model.graph.initializer[0].raw_data


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("FLOAT", [0.5, -1.0]),
        ("BFLOAT16", [0.5, -1.0]),
        ("FLOAT8E4M3FN", [0.5, -1.0]),
        ("INT4", [7, -8, 1]),
        ("UINT2", [3, 0, 1]),
        ("STRING", ["a", "ü"]),
    ],
)
def test_tensors_of_every_type_become_arrays(kind: str, numbers: list[Any]) -> None:
    tensor = onnx.helper.make_tensor("x", onnx.TensorProto.DataType.Value(kind), [len(numbers)], numbers)
    from nightjar_lab.suite.suites.onnx_values import value_of

    array = value_of(tensor)
    assert [value.decode() if isinstance(value, bytes) else value for value in array.tolist()] == numbers


def test_sequences_are_lists_of_arrays_and_flat_as_outputs() -> None:
    from nightjar_lab.suite.suites.onnx_values import flat, value_of

    sequence = value_of([np.float32(1), np.zeros((2, 2))])
    assert [array.shape for array in sequence] == [(), (2, 2)]
    assert [array.shape for array in flat([np.ones(3), sequence])] == [(3,), (), (2, 2)]


def test_texts_of_any_length_become_objects() -> None:
    from nightjar_lab.suite.suites.onnx_values import flat, value_of

    assert value_of(["a", "longer"][1]).dtype == object
    assert [array.dtype for array in flat([np.array(["a", "longer"])])] == [object]


def test_an_optional_without_a_value_is_skipped_and_blames_nobody() -> None:
    from nightjar_lab.suite.suites.onnx_values import flat, value_of

    with pytest.raises(SkipCase, match="no array for an absent optional value"):
        value_of(None)
    with pytest.raises(SkipCase, match="no array for an absent optional value"):
        flat([None])


def test_feeds_leave_out_initializers() -> None:
    from nightjar_lab.suite.suites.onnx_values import feeds_of

    data = made("mlp")
    assert list(feeds_of(data.model, data.inputs)) == ["input_0"]
    data.model.graph.input.insert(0, onnx.helper.make_tensor_value_info("weight_0", 1, [16, 32]))
    assert list(feeds_of(data.model, data.inputs)) == ["input_0"]
