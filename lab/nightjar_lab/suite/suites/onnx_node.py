"""The suite `onnx-node`: the cases of ONNX's own backend test, one or a few nodes each, from the `onnx` package."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.outcome import SkipCase
from nightjar_lab.suite.suites.onnx_values import flat, value_of
from nightjar_lab.suite.tolerances import FLOAT16

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose outputs are random, so that no backend can be expected to give those of the case."""
IS_RANDOM = "the outputs of {operator} are random, so there are none to compare with"
COARSE = frozenset(
    number for name, number in onnx.TensorProto.DataType.items() if name.startswith(("FLOAT16", "BFLOAT16", "FLOAT8"))
)
"""Types of outputs that have fewer significant bits than float32's tolerance asks for."""
RANDOM_CASES = frozenset(
    {
        "test_training_dropout",
        "test_training_dropout_mask",
        "test_training_dropout_default",
        "test_training_dropout_default_mask",
    }
)
"""Cases with Dropout in training mode, which drops other values with each generator of random numbers."""
CASE_SECONDS = 60.0


@functools.lru_cache(maxsize=1)
def _loaded() -> dict[str, Any]:
    # Cases compute infinities, overflows and deprecated things on purpose, and NumPy warns of each.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


def _data(name: str, seed: int) -> CaseData:
    del seed  # The values come with the case.
    case = _loaded()[name]
    operators = [node.op_type for node in case.model.graph.node]
    random = (
        operators[0] if name in RANDOM_CASES else next((operator for operator in operators if operator in RANDOM), None)
    )
    if random:
        raise SkipCase(IS_RANDOM.format(operator=random))
    inputs, outputs = case.data_sets[0]
    return CaseData(case.model, [value_of(value) for value in inputs], flat(value_of(output) for output in outputs))


def _case(name: str) -> SuiteCase:
    outputs = _loaded()[name].model.graph.output
    # The type itself has about half of float32's precision, so no flow can meet float32's tolerance.
    coarse = any(output.type.tensor_type.elem_type in COARSE for output in outputs)
    return SuiteCase(name, functools.partial(_data, name), tolerance=FLOAT16 if coarse else None)


SUITE = TestSuite(
    "onnx-node",
    lambda: list(_loaded()),
    _case,
    version=f"onnx {onnx.__version__}",
    timeout=CASE_SECONDS,
    description="ONNX's own node cases: each tests one operator",
    model_format="onnx",
)
