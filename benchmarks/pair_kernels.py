"""Run kernels for `benchmarks.pairs`: reads lines `KERNEL ROUNDS`, and prints the median processor time of each.

It runs in the environment of the backend suite, if that is installed, and imports nothing of this project. The first
line that it prints has the names of the kernels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

REPEATS = 5
"""How often each kernel runs for one median, as `measure.timer` does."""

Kernel = Callable[[], object]


def onnx_models() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return small models of one operator each, with values for their inputs: 0.01 to 0.2 ms a call."""
    import numpy
    from onnx import TensorProto, helper

    values = numpy.random.default_rng(0)

    def model(operator: str, *shapes: list[int], **attributes: Any) -> tuple[Any, dict[str, Any]]:
        inputs = {f"input{number}": shape for number, shape in enumerate(shapes)}
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
        output = helper.make_tensor_value_info("output", TensorProto.FLOAT, None)
        node = helper.make_node(operator, list(inputs), ["output"], **attributes)
        made = helper.make_model(
            helper.make_graph([node], operator, infos, [output]),
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=9,
        )
        return made, {name: values.random(shape, dtype=numpy.float32) for name, shape in inputs.items()}

    return {
        "conv": model("Conv", [1, 8, 28, 28], [8, 8, 3, 3]),
        "matmul": model("MatMul", [64, 64], [64, 64]),
        "softmax": model("Softmax", [64, 512], axis=-1),
    }


def onnxruntime_kernels() -> dict[str, Kernel]:
    """Return the models on ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1

    def kernel(model: Any, inputs: dict[str, Any]) -> Kernel:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, inputs)

    return {f"onnxruntime {name}": kernel(*model) for name, model in onnx_models().items()}


def tvm_kernels() -> dict[str, Kernel]:
    """Return the models on Apache TVM, compiled for this processor."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    def kernel(model: Any, inputs: dict[str, Any]) -> Kernel:
        module = relax.transform.LegalizeOps()(from_onnx(model, keep_params_in_input=False))
        main = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
        tensors = [tvm.runtime.tensor(value) for value in inputs.values()]
        return lambda: main(*tensors)

    return {f"tvm {name}": kernel(*model) for name, model in onnx_models().items()}


def numpy_kernels() -> dict[str, Kernel]:
    """Return kernels of NumPy, about 0.1 ms each."""
    import numpy

    values = numpy.random.default_rng(0)
    square, long = values.random((96, 96), dtype=numpy.float32), values.random(20_000, dtype=numpy.float32)
    return {
        "numpy matmul": lambda: square @ square,
        "numpy exp": lambda: numpy.exp(long),
        "numpy sort": lambda: numpy.sort(long[:4_000]),
    }


def seconds_of(kernel: Kernel, rounds: int) -> float:
    """Return the processor time of so many calls: other programs run beside them."""
    began = time.process_time()
    for _ in range(rounds):
        kernel()
    return time.process_time() - began


def main() -> None:
    """Answer lines until the input ends."""
    try:
        kernels = {**onnxruntime_kernels(), **tvm_kernels()}
    except ImportError:
        kernels = numpy_kernels()
    print(*kernels, sep="\t", flush=True)
    for line in sys.stdin:
        name, _, rounds = line.rstrip("\n").partition("\t")
        print(median(seconds_of(kernels[name], int(rounds)) for _ in range(REPEATS)), flush=True)


if __name__ == "__main__":
    main()
