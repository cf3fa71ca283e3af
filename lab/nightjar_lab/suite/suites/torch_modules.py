"""The suite `torch-modules`: small modules of PyTorch made in code, with PyTorch's own result as oracle."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.suites.torch_values import case_data


class Attention(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Self-attention with an output projection and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.projections = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend over the second dimension."""
        query, key, value = (layer(x) for layer in list(self.projections)[:3])
        return x + self.projections[3](nn.functional.scaled_dot_product_attention(query, key, value))


class LastState(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """A recurrent layer of which the last output counts."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output at the last step."""
        return self.layer(x)[0][:, -1]


class BagMean(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """The mean of the embeddings of a bag."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return a vector for each bag."""
        return self.table(tokens).mean(dim=1)


Made = tuple[Callable[[], nn.Module], tuple[int, ...]]

MODULES: dict[str, Made] = {
    "linear-relu": (lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), (2, 16)),
    "conv-batch-norm": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (1, 3, 12, 12)),
    "depthwise-conv": (lambda: nn.Sequential(nn.Conv2d(8, 8, 3, groups=8), nn.Hardswish()), (1, 8, 12, 12)),
    "conv-transpose": (lambda: nn.ConvTranspose2d(4, 2, 2, stride=2), (1, 4, 6, 6)),
    "pooling": (lambda: nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (1, 4, 8, 8)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), (1, 2, 5, 5)),
    "layer-norm-gelu": (lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU()), (2, 5, 16)),
    "attention": (Attention, (1, 6, 16)),
    "lstm": (lambda: LastState(nn.LSTM(6, 8, batch_first=True)), (2, 7, 6)),
    "gru": (lambda: LastState(nn.GRU(6, 8, batch_first=True)), (2, 7, 6)),
    "softmax": (lambda: nn.Softmax(dim=-1), (3, 9)),
    "embedding-bag": (BagMean, (3, 5)),
}
"""Each module, and the shape of its input: integers for the embeddings, else normally distributed."""
WITH_TOKENS = frozenset({"embedding-bag"})


def _data(name: str, seed: int) -> CaseData:
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    make, shape = MODULES[name]
    module = make().eval()
    numbers = random.integers(0, 50, shape) if name in WITH_TOKENS else random.normal(size=shape).astype(np.float32)
    return case_data(module, [torch.from_numpy(numbers)])


SUITE = TestSuite.of(
    "torch-modules",
    [SuiteCase(name, functools.partial(_data, name)) for name in MODULES],
    version=f"torch {torch.__version__}",
    description="Small modules of PyTorch made in code, compared with PyTorch itself",
    model_format="torch",
)
