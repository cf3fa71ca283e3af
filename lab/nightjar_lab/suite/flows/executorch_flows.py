"""The flows of ExecuTorch, under the names of its own backend suite. They take modules of PyTorch.

This module imports neither ExecuTorch nor PyTorch, so that each flow has a backend also where they are missing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from nightjar_lab.suite.discovery import NotAvailable
from nightjar_lab.suite.flow import Flow

NO_SDK = "{variable} is not set, and {delegate} needs the SDK that it names"


@dataclass(frozen=True)
class ExecutorchFlow:
    """A flow of ExecuTorch's suite. A call without arguments returns the flow here.

    `recipe` is MODULE:NAME in `executorch.backends.test.suite.flows`; `delegate` is the backend's name in the runtime.
    `variable` is an environment variable that names the backend's SDK, without which its programs do not run.
    """

    name: str
    backend: str
    recipe: str
    delegate: str
    quantization: str = ""
    variable: str = ""

    def __call__(self) -> Flow:
        """Return the flow. Raises NotAvailable if this machine cannot run it, or ImportError."""
        if self.variable and not os.environ.get(self.variable):
            raise NotAvailable(NO_SDK.format(variable=self.variable, delegate=self.delegate))
        from nightjar_lab.suite.flows.executorch_stages import flow_of

        return flow_of(self.name, self.backend, self.recipe, self.delegate, self.quantization)


XNNPACK = ExecutorchFlow("xnnpack", "xnnpack", "xnnpack:XNNPACK_TEST_FLOW", "XnnpackBackend")
XNNPACK_STATIC_INT8_PER_CHANNEL = ExecutorchFlow(
    "xnnpack_static_int8_per_channel",
    "xnnpack",
    "xnnpack:XNNPACK_STATIC_INT8_PER_CHANNEL_TEST_FLOW",
    "XnnpackBackend",
    "static int8 per channel",
)
XNNPACK_STATIC_INT8_PER_TENSOR = ExecutorchFlow(
    "xnnpack_static_int8_per_tensor",
    "xnnpack",
    "xnnpack:XNNPACK_STATIC_INT8_PER_TENSOR_TEST_FLOW",
    "XnnpackBackend",
    "static int8 per tensor",
)
XNNPACK_DYNAMIC_INT8_PER_CHANNEL = ExecutorchFlow(
    "xnnpack_dynamic_int8_per_channel",
    "xnnpack",
    "xnnpack:XNNPACK_DYNAMIC_INT8_PER_CHANNEL_TEST_FLOW",
    "XnnpackBackend",
    "dynamic int8 per channel",
)
COREML = ExecutorchFlow("coreml", "coreml", "coreml:COREML_TEST_FLOW", "CoreMLBackend")
COREML_STATIC_INT8 = ExecutorchFlow(
    "coreml_static_int8", "coreml", "coreml:COREML_STATIC_INT8_TEST_FLOW", "CoreMLBackend", "static int8"
)
VULKAN = ExecutorchFlow("vulkan", "vulkan", "vulkan:VULKAN_TEST_FLOW", "VulkanBackend")
VULKAN_STATIC_INT8_PER_CHANNEL = ExecutorchFlow(
    "vulkan_static_int8_per_channel",
    "vulkan",
    "vulkan:VULKAN_STATIC_INT8_PER_CHANNEL_TEST_FLOW",
    "VulkanBackend",
    "static int8 per channel",
)
QNN = ExecutorchFlow("qnn", "qualcomm", "qualcomm:QNN_TEST_FLOW", "QnnBackend", "", "QNN_SDK_ROOT")
QNN_16A16W = ExecutorchFlow(
    "qnn_16a16w", "qualcomm", "qualcomm:QNN_16A16W_TEST_FLOW", "QnnBackend", "16a16w", "QNN_SDK_ROOT"
)
QNN_16A8W = ExecutorchFlow(
    "qnn_16a8w", "qualcomm", "qualcomm:QNN_16A8W_TEST_FLOW", "QnnBackend", "16a8w", "QNN_SDK_ROOT"
)
QNN_16A4W = ExecutorchFlow(
    "qnn_16a4w", "qualcomm", "qualcomm:QNN_16A4W_TEST_FLOW", "QnnBackend", "16a4w", "QNN_SDK_ROOT"
)
QNN_16A4W_BLOCK = ExecutorchFlow(
    "qnn_16a4w_block", "qualcomm", "qualcomm:QNN_16A4W_BLOCK_TEST_FLOW", "QnnBackend", "16a4w block", "QNN_SDK_ROOT"
)
QNN_8A8W = ExecutorchFlow("qnn_8a8w", "qualcomm", "qualcomm:QNN_8A8W_TEST_FLOW", "QnnBackend", "8a8w", "QNN_SDK_ROOT")
FLOW = ExecutorchFlow("executorch-xnnpack", "executorch", "xnnpack:XNNPACK_TEST_FLOW", "XnnpackBackend")
"""The earlier name of `xnnpack`, for targets that have results under it."""
