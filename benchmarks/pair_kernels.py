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


def onnxruntime_kernels() -> dict[str, Kernel]:
    """Return kernels of ONNX Runtime: a convolution, a matrix product and a softmax, about 0.1 ms each."""
    import numpy
    import onnxruntime
    from onnx import TensorProto, helper

    def session(operator: str, shapes: list[list[int]], **attributes: Any) -> Kernel:
        names = [f"input{number}" for number in range(len(shapes))]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(names, shapes, strict=True)
        ]
        outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)]
        node = helper.make_node(operator, names, ["output"], **attributes)
        model = helper.make_model(
            helper.make_graph([node], operator, inputs, outputs),
            opset_imports=[helper.make_opsetid("", 17)],
            ir_version=9,
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        runs = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        values = numpy.random.default_rng(0)
        feeds = {name: values.random(shape, dtype=numpy.float32) for name, shape in zip(names, shapes, strict=True)}
        return lambda: runs.run(None, feeds)

    return {
        "onnxruntime conv": session("Conv", [[1, 8, 28, 28], [8, 8, 3, 3]]),
        "onnxruntime matmul": session("MatMul", [[96, 96], [96, 96]]),
        "onnxruntime softmax": session("Softmax", [[64, 512]], axis=-1),
    }


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
        kernels = onnxruntime_kernels()
    except ImportError:
        kernels = numpy_kernels()
    print(*kernels, sep="\t", flush=True)
    for line in sys.stdin:
        name, _, rounds = line.rstrip("\n").partition("\t")
        print(median(seconds_of(kernels[name], int(rounds)) for _ in range(REPEATS)), flush=True)


if __name__ == "__main__":
    main()
