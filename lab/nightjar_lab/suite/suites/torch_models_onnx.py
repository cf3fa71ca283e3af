"""The suite `torch-models-onnx`: the networks of `torch-models` as PyTorch exports them to ONNX, for flows of ONNX."""

from __future__ import annotations

import functools
import io
import warnings

import onnx
import torch

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.suites import torch_models


def _data(name: str, seed: int) -> CaseData:
    data = torch_models.SUITE.case(name).make(seed)
    return CaseData(exported(data), data.inputs, data.expected)


def exported(data: CaseData) -> onnx.ModelProto:
    """Return the ONNX model of a case of PyTorch, with the weights in it."""
    inputs = tuple(torch.from_numpy(array) for array in data.inputs)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # The newer exporter needs another package, and the older one says that it is the older one.
        warnings.simplefilter("ignore")
        torch.onnx.export(data.model, inputs, stream, dynamo=False)
    return onnx.load_from_string(stream.getvalue())


SUITE = TestSuite.of(
    "torch-models-onnx",
    [SuiteCase(name, functools.partial(_data, name)) for name in torch_models.MODELS],
    version=f"torch {torch.__version__}",
    timeout=torch_models.CASE_SECONDS,
    description="The networks of torch-models, exported to ONNX and compared with PyTorch itself",
    model_format="onnx",
)
