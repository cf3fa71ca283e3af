"""The suite `onnx-models`: small models of the kinds that people deploy, made in code."""

from __future__ import annotations

import functools
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.suites.model_builder import ModelBuilder
from nightjar_lab.suite.suites.networks import NETWORKS
from nightjar_lab.suite.suites.onnx_values import feeds_of


def _expected(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    return list(ReferenceEvaluator(model).run(None, feeds_of(model, inputs)))


def _data(name: str, seed: int) -> CaseData:
    builder = ModelBuilder(name, seed)
    NETWORKS[name](builder)
    model = builder.model()
    return CaseData(model, builder.feeds, functools.partial(_expected, model, builder.feeds))


SUITE = TestSuite.of(
    "onnx-models",
    [SuiteCase(name, functools.partial(_data, name)) for name in NETWORKS],
    version=f"onnx {onnx.__version__}",
    description="Small networks made in code, compared with ONNX's reference evaluator",
    model_format="onnx",
)
