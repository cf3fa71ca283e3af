"""Small networks of the kinds that people deploy: each function adds one to a builder, its inputs and outputs too."""

from __future__ import annotations

import numpy as np

from nightjar_lab.suite.suites.model_builder import Array, ModelBuilder

F = np.float32


def mlp(b: ModelBuilder) -> None:
    """Add two dense layers and a softmax."""
    x = b.input(_normal(b, 4, 16))
    hidden = b.node("Relu", b.node("Gemm", x, b.weight(16, 32), b.weight(32)))
    b.output(b.node("Softmax", b.node("Gemm", hidden, b.weight(32, 10), b.weight(10)), axis=-1), F, (4, 10))


def cnn(b: ModelBuilder) -> None:
    """Add two convolutions with batch normalization and pooling, then a dense layer."""
    x = b.input(_normal(b, 1, 3, 16, 16))
    x = b.node("Conv", x, b.weight(8, 3, 3, 3), b.weight(8), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = b.node("Relu", _batch_norm(b, x, 8))
    x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.node("Conv", x, b.weight(16, 8, 3, 3), b.weight(16), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    x = b.node("GlobalAveragePool", b.node("Relu", x))
    b.output(b.node("Gemm", b.node("Flatten", x), b.weight(16, 10), b.weight(10)), F, (1, 10))


def inverted_residual(b: ModelBuilder) -> None:
    """Add a block as mobile networks have it: expand, depthwise convolution, project, sum."""
    x = b.input(_normal(b, 1, 8, 12, 12))
    zero, six = b.constant(0.0, F), b.constant(6.0, F)
    wide = b.node("Clip", _batch_norm(b, b.node("Conv", x, b.weight(24, 8, 1, 1)), 24), zero, six)
    deep = b.node("Conv", wide, b.weight(24, 1, 3, 3), group=24, pads=[1, 1, 1, 1])
    deep = b.node("Clip", _batch_norm(b, deep, 24), zero, six)
    narrow = _batch_norm(b, b.node("Conv", deep, b.weight(8, 24, 1, 1)), 8)
    b.output(b.node("Add", x, narrow), F, (1, 8, 12, 12))


def unet(b: ModelBuilder) -> None:
    """Add an encoder, a decoder that resizes, and a connection that skips both."""
    x = b.input(_normal(b, 1, 3, 16, 16))
    top = b.node("Relu", b.node("Conv", x, b.weight(6, 3, 3, 3), pads=[1, 1, 1, 1]))
    low = b.node("AveragePool", top, kernel_shape=[2, 2], strides=[2, 2])
    low = b.node("Relu", b.node("Conv", low, b.weight(12, 6, 3, 3), pads=[1, 1, 1, 1]))
    scales = b.constant([1.0, 1.0, 2.0, 2.0], F)
    resized = b.node(
        "Resize", low, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )
    x = b.node("Conv", b.node("Concat", top, resized, axis=1), b.weight(2, 18, 1, 1))
    b.output(b.node("Sigmoid", x), F, (1, 2, 16, 16))


def autoencoder(b: ModelBuilder) -> None:
    """Add strided convolutions down and transposed convolutions up."""
    x = b.input(_normal(b, 1, 1, 16, 16))
    x = b.node("LeakyRelu", b.node("Conv", x, b.weight(4, 1, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]), alpha=0.1)
    x = b.node("LeakyRelu", b.node("Conv", x, b.weight(8, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]), alpha=0.1)
    x = b.node("Relu", b.node("ConvTranspose", x, b.weight(8, 4, 2, 2), strides=[2, 2]))
    x = b.node("ConvTranspose", x, b.weight(4, 1, 2, 2), strides=[2, 2])
    b.output(b.node("Tanh", x), F, (1, 1, 16, 16))


def text_cnn(b: ModelBuilder) -> None:
    """Add embeddings, a convolution over time, the greatest value of each channel."""
    tokens = b.input(b.random.integers(0, 50, (2, 12)))
    x = b.node("Transpose", b.node("Gather", b.weight(50, 8), tokens), perm=[0, 2, 1])
    x = b.node("Relu", b.node("Conv", x, b.weight(16, 8, 3), b.weight(16), pads=[1, 1]))
    x = b.node("ReduceMax", x, b.constant([2], np.int64), keepdims=0)
    b.output(b.node("Gemm", x, b.weight(16, 4), b.weight(4)), F, (2, 4))


def lstm(b: ModelBuilder) -> None:
    """Add a bidirectional LSTM over a sequence and a dense layer on its last state."""
    time, batch, size, hidden = 7, 2, 6, 8
    x = b.input(_normal(b, time, batch, size))
    gates = b.weight(2, 4 * hidden, size), b.weight(2, 4 * hidden, hidden), b.weight(2, 8 * hidden)
    _, last, _ = b.nodes("LSTM", x, *gates, outputs=3, hidden_size=hidden, direction="bidirectional")
    last_states = b.node(
        "Reshape", b.node("Transpose", last, perm=[1, 0, 2]), b.constant([batch, 2 * hidden], np.int64)
    )
    b.output(b.node("Gemm", last_states, b.weight(2 * hidden, 3), b.weight(3)), F, (batch, 3))


def gru(b: ModelBuilder) -> None:
    """Add a GRU over a sequence. All its states are an output, and its last one is another."""
    time, batch, size, hidden = 6, 2, 5, 7
    x = b.input(_normal(b, time, batch, size))
    gates = b.weight(1, 3 * hidden, size), b.weight(1, 3 * hidden, hidden), b.weight(1, 6 * hidden)
    states, last = b.nodes("GRU", x, *gates, outputs=2, hidden_size=hidden, linear_before_reset=1)
    b.output(b.node("Squeeze", states, b.constant([1], np.int64)), F, (time, batch, hidden))
    b.output(b.node("Squeeze", last, b.constant([0], np.int64)), F, (batch, hidden))


def transformer_block(b: ModelBuilder) -> None:
    """Add attention with several heads, layer normalization, and a dense part with GELU."""
    batch, time, size, heads = 1, 6, 16, 4
    x = b.input(_normal(b, batch, time, size))
    normal = _layer_norm(b, x, size)
    query, key, value = (_heads(b, normal, batch, time, size, heads) for _ in range(3))
    scores = b.node("MatMul", query, b.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = b.node("Mul", scores, b.constant((size / heads) ** -0.5, F))
    scores = b.node("Add", scores, b.constant(np.triu(np.full((time, time), -1e4), 1), F))
    mixed = b.node("Transpose", b.node("MatMul", b.node("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
    mixed = b.node("Reshape", mixed, b.constant([batch, time, size], np.int64))
    x = b.node("Add", x, b.node("MatMul", mixed, b.weight(size, size)))
    wide = b.node("Add", b.node("MatMul", _layer_norm(b, x, size), b.weight(size, 4 * size)), b.weight(4 * size))
    error = b.node("Erf", b.node("Mul", wide, b.constant(0.5**0.5, F)))
    gelu = b.node("Mul", b.node("Mul", wide, b.node("Add", error, b.constant(1.0, F))), b.constant(0.5, F))
    b.output(b.node("Add", x, b.node("MatMul", gelu, b.weight(4 * size, size))), F, (batch, time, size))


def embedding_bag(b: ModelBuilder) -> None:
    """Add the mean of the embeddings of each bag, where a mask says which entries count."""
    tokens = b.input(b.random.integers(0, 100, (3, 5)))
    counts = b.random.integers(1, 6, (3, 1))
    mask = b.input((np.arange(5)[None, :] < counts).astype(F))
    chosen = b.node(
        "Mul", b.node("Gather", b.weight(100, 12), tokens), b.node("Unsqueeze", mask, b.constant([2], np.int64))
    )
    axis = b.constant([1], np.int64)
    total, count = b.node("ReduceSum", chosen, axis, keepdims=0), b.node("ReduceSum", mask, axis, keepdims=1)
    b.output(b.node("Div", total, count), F, (3, 12))


def recommender(b: ModelBuilder) -> None:
    """Add scores of users and items by their vectors, and the best five with their numbers."""
    users = b.input(b.random.integers(0, 20, (2,)))
    scores = b.node("MatMul", b.node("Gather", b.weight(20, 8), users), b.weight(8, 40))
    best, items = b.nodes("TopK", scores, b.constant([5], np.int64), outputs=2, axis=-1)
    b.output(best, F, (2, 5))
    b.output(items, np.int64, (2, 5))


def quantized_mlp(b: ModelBuilder) -> None:
    """Add dense layers that were quantized statically, with QuantizeLinear and DequantizeLinear around each."""
    x = _fake_quantized(b, b.input(_normal(b, 4, 16)), 0.03)
    for inputs, outputs, scale in ((16, 24, 0.05), (24, 6, 0.08)):
        weights = b.constant(b.random.integers(-127, 128, (inputs, outputs)), np.int8)
        weights = b.node("DequantizeLinear", weights, b.constant(0.004, F), b.constant(0, np.int8))
        x = _fake_quantized(b, b.node("Relu", b.node("MatMul", x, weights)), scale)
    b.output(x, F, (4, 6))


def dynamically_quantized_mlp(b: ModelBuilder) -> None:
    """Add a dense layer on integers whose input is quantized by its own range."""
    x = b.input(_normal(b, 4, 16))
    quantized, scale, zero = b.nodes("DynamicQuantizeLinear", x, outputs=3)
    weights = b.constant(b.random.integers(-127, 128, (16, 8)), np.int8)
    total = b.node("Cast", b.node("MatMulInteger", quantized, weights, zero, b.constant(0, np.int8)), to=1)
    y = b.node("Mul", total, b.node("Mul", scale, b.constant(0.004, F)))
    b.output(b.node("Relu", b.node("Add", y, b.weight(8))), F, (4, 8))


NETWORKS = {
    "mlp": mlp,
    "cnn": cnn,
    "inverted-residual": inverted_residual,
    "unet": unet,
    "autoencoder": autoencoder,
    "text-cnn": text_cnn,
    "lstm": lstm,
    "gru": gru,
    "transformer-block": transformer_block,
    "embedding-bag": embedding_bag,
    "recommender": recommender,
    "quantized-mlp": quantized_mlp,
    "dynamically-quantized-mlp": dynamically_quantized_mlp,
}


def _normal(b: ModelBuilder, *shape: int) -> Array:
    return b.random.normal(0.0, 1.0, shape).astype(F)


def _batch_norm(b: ModelBuilder, x: str, channels: int) -> str:
    variance = b.constant(b.random.uniform(0.5, 1.5, channels), F)
    return b.node("BatchNormalization", x, b.weight(channels), b.weight(channels), b.weight(channels), variance)


def _layer_norm(b: ModelBuilder, x: str, size: int) -> str:
    return b.node("LayerNormalization", x, b.constant(np.ones(size), F), b.weight(size), axis=-1)


def _heads(b: ModelBuilder, x: str, batch: int, time: int, size: int, heads: int) -> str:
    projected = b.node("Add", b.node("MatMul", x, b.weight(size, size)), b.weight(size))
    split = b.node("Reshape", projected, b.constant([batch, time, heads, size // heads], np.int64))
    return b.node("Transpose", split, perm=[0, 2, 1, 3])


def _fake_quantized(b: ModelBuilder, x: str, scale: float) -> str:
    scale_and_zero = b.constant(scale, F), b.constant(0, np.int8)
    return b.node("DequantizeLinear", b.node("QuantizeLinear", x, *scale_and_zero), *scale_and_zero)
