"""The suite `torch-models`: small networks of known architectures with random weights, with PyTorch as oracle."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.suites.torch_values import case_data

CASE_SECONDS = 1200.0
"""The time limit of ExecuTorch's suite for a model; recurrent networks of many steps take minutes to lower."""
TOKENS = 60
"""The size of the vocabulary of models that take tokens."""


class Residual(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Layers whose output is added to their input, or to a projection of it."""

    def __init__(self, *layers: nn.Module, projection: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.projection = projection or nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum."""
        return self.layers(x) + self.projection(x)


class Concatenated(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Layers whose output is appended to the channels of their input, as in a DenseNet and a U-Net."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return both."""
        return torch.cat([x, self.layers(x)], dim=1)


class SqueezeExcite(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Weights of channels that their means decide."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, channels // 4, 1),
            nn.ReLU(),
            nn.Conv2d(channels // 4, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the weighted channels."""
        return x * self.weights(x)


class CausalAttention(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Attention of several heads over the steps before, as in GPT-2."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the attended values."""
        batch, steps, size = x.shape
        parts = self.inputs(x).view(batch, steps, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind()
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(attended.transpose(1, 2).reshape(batch, steps, size))


class WithPositions(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Learned positions that are added to the steps of a sequence."""

    def __init__(self, steps: int, size: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(steps, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum."""
        return x + self.positions


class VisionTransformer(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """A transformer over the patches of an image and a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, 32))
        self.encoder = nn.Sequential(WithPositions(17, 32), *(encoder_layer(32) for _ in range(2)))
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of classes."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.encoder(torch.cat([self.token, patches], dim=1))[:, 0])


class Seq2Seq(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """An encoder and a decoder, both transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(TOKENS, 16)
        self.transformer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the scores of the tokens that follow."""
        return self.transformer(self.table(source), self.table(target)) @ self.table.weight.T


class Tagger(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """A recurrent network in both directions that labels each token."""

    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__()
        self.table = nn.Embedding(TOKENS, 12)
        self.layer = layer(12, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, 7)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of the labels."""
        return self.head(self.layer(self.table(tokens))[0])


class GatedConvolution(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """A dilated convolution over the steps before, with a gate, as in WaveNet."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.convolution = nn.Conv1d(channels, 2 * channels, 2, dilation=dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the gated values, added to the input."""
        values, gates = self.convolution(functional.pad(x, (self.dilation, 0))).chunk(2, dim=1)
        return x + torch.tanh(values) * torch.sigmoid(gates)


class Recommender(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Dense features and bags of tokens whose vectors interact, as in DLRM."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom, self.bags = (
            nn.Linear(5, 8),
            nn.ModuleList(nn.EmbeddingBag(TOKENS, 8, mode="sum") for _ in range(2)),
        )
        self.top = nn.Linear(8 + 9, 1)

    def forward(self, dense: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Return a probability for each row."""
        base = functional.relu(self.bottom(dense))
        vectors = torch.stack([base, *(bag(tokens[:, place]) for place, bag in enumerate(self.bags))], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.top(torch.cat([base, products], dim=1)))


class PointNet(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Classes of a set of points, whatever their order."""

    def __init__(self) -> None:
        super().__init__()
        self.points = nn.Sequential(convolution(3, 16, 1, kind=1), convolution(16, 32, 1, kind=1))
        self.head = nn.Linear(32, 5)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Return the scores of classes."""
        return self.head(self.points(points).amax(dim=2)).log_softmax(dim=-1)


class MixerBlock(nn.Module):  # type: ignore[misc]  # torch has no types where it is not installed
    """Dense layers over the steps, then over the channels, as in MLP-Mixer."""

    def __init__(self, steps: int, size: int) -> None:
        super().__init__()
        self.normal, self.steps = nn.LayerNorm(size), nn.Sequential(nn.Linear(steps, 8), nn.GELU(), nn.Linear(8, steps))
        self.channels = Residual(nn.LayerNorm(size), nn.Linear(size, 32), nn.GELU(), nn.Linear(32, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mixed steps."""
        return self.channels(x + self.steps(self.normal(x).transpose(1, 2)).transpose(1, 2))


def convolution(inputs: int, outputs: int, size: int = 3, *, kind: int = 2, **options: int) -> nn.Sequential:
    """Return a convolution of 1 or 2 dimensions that keeps the size, batch normalization and ReLU."""
    layer, normal = (nn.Conv1d, nn.BatchNorm1d) if kind == 1 else (nn.Conv2d, nn.BatchNorm2d)
    return nn.Sequential(layer(inputs, outputs, size, padding=size // 2, **options), normal(outputs), nn.ReLU())


def encoder_layer(size: int) -> nn.Module:
    """Return a layer of a transformer's encoder."""
    return nn.TransformerEncoderLayer(size, 4, 2 * size, batch_first=True, norm_first=True, activation="gelu")


def classifier(channels: int) -> list[nn.Module]:
    """Return the layers from a feature map to the scores of classes."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


def resnet() -> nn.Module:
    """Return a ResNet of three basic blocks."""

    def block(inputs: int, outputs: int, stride: int) -> nn.Module:
        layers = convolution(inputs, outputs, stride=stride), nn.Conv2d(outputs, outputs, 3, padding=1)
        projection = nn.Conv2d(inputs, outputs, 1, stride=stride) if inputs != outputs else None
        return nn.Sequential(Residual(*layers, nn.BatchNorm2d(outputs), projection=projection), nn.ReLU())

    blocks = block(8, 8, 1), block(8, 16, 2), block(16, 32, 2)
    return nn.Sequential(convolution(3, 8), nn.MaxPool2d(2), *blocks, *classifier(32))


def mobilenet() -> nn.Module:
    """Return a MobileNetV3 of two inverted residuals."""

    def block(channels: int) -> nn.Module:
        wide = 4 * channels
        expand = [nn.Conv2d(channels, wide, 1), nn.BatchNorm2d(wide), nn.Hardswish()]
        depthwise = [nn.Conv2d(wide, wide, 3, padding=1, groups=wide), nn.BatchNorm2d(wide), nn.Hardswish()]
        return Residual(
            *expand, *depthwise, SqueezeExcite(wide), nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels)
        )

    return nn.Sequential(
        convolution(3, 8, stride=2), block(8), convolution(8, 16, stride=2), block(16), *classifier(16)
    )


def densenet() -> nn.Module:
    """Return a DenseNet of one block and its transition."""
    dense = [Concatenated(convolution(channels, 4)) for channels in (8, 12, 16)]
    return nn.Sequential(convolution(3, 8), *dense, nn.Conv2d(20, 10, 1), nn.AvgPool2d(2), *classifier(10))


def unet() -> nn.Module:
    """Return a U-Net of two levels."""
    lower = nn.Sequential(nn.MaxPool2d(2), convolution(16, 32), nn.ConvTranspose2d(32, 16, 2, stride=2))
    middle = nn.Sequential(convolution(8, 16), Concatenated(lower), convolution(32, 16))
    upper = nn.Sequential(nn.MaxPool2d(2), middle, nn.ConvTranspose2d(16, 8, 2, stride=2))
    return nn.Sequential(convolution(3, 8), Concatenated(upper), nn.Conv2d(16, 2, 1))


def autoencoder() -> nn.Module:
    """Return a convolutional autoencoder."""
    encoder = convolution(3, 8, stride=2), convolution(8, 16, stride=2)
    decoder = nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.LeakyReLU(0.1), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Sigmoid()
    return nn.Sequential(*encoder, *decoder)


def bert() -> nn.Module:
    """Return an encoder of tokens with two layers."""
    layers = [encoder_layer(16) for _ in range(2)]
    return nn.Sequential(nn.Embedding(TOKENS, 16), WithPositions(9, 16), nn.LayerNorm(16), *layers, nn.Linear(16, 16))


def gpt() -> nn.Module:
    """Return a decoder of tokens with two layers."""
    blocks = [
        nn.Sequential(
            Residual(nn.LayerNorm(16), CausalAttention(16, 4)),
            Residual(nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 16)),
        )
        for _ in range(2)
    ]
    return nn.Sequential(
        nn.Embedding(TOKENS, 16), WithPositions(9, 16), *blocks, nn.LayerNorm(16), nn.Linear(16, TOKENS)
    )


def wavenet() -> nn.Module:
    """Return four dilated, gated convolutions."""
    return nn.Sequential(nn.Conv1d(1, 8, 1), *(GatedConvolution(8, 2**power) for power in range(4)), nn.Conv1d(8, 4, 1))


def mixer() -> nn.Module:
    """Return two blocks over twelve steps."""
    return nn.Sequential(MixerBlock(12, 16), MixerBlock(12, 16), nn.LayerNorm(16), nn.Flatten(), nn.Linear(12 * 16, 10))


IMAGE, SENTENCE = (1, 3, 32, 32), (2, 9)
MODELS: dict[str, tuple[Callable[[], nn.Module], Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]]] = {
    "resnet": (resnet, [IMAGE], []),
    "mobilenet": (mobilenet, [IMAGE], []),
    "densenet": (densenet, [IMAGE], []),
    "unet": (unet, [IMAGE], []),
    "autoencoder": (autoencoder, [IMAGE], []),
    "vision-transformer": (VisionTransformer, [IMAGE], []),
    "mlp-mixer": (mixer, [(2, 12, 16)], []),
    "wavenet": (wavenet, [(1, 1, 40)], []),
    "pointnet": (PointNet, [(2, 3, 25)], []),
    "bert": (bert, [], [SENTENCE]),
    "gpt": (gpt, [], [SENTENCE]),
    "seq2seq": (Seq2Seq, [], [(2, 7), (2, 5)]),
    "lstm-tagger": (functools.partial(Tagger, nn.LSTM), [], [SENTENCE]),
    "gru-tagger": (functools.partial(Tagger, nn.GRU), [], [SENTENCE]),
    "recommender": (Recommender, [(4, 5)], [(4, 2, 3)]),
}
"""Each model, the shapes of its inputs with normally distributed numbers, and of those with tokens, which come last."""


def _data(name: str, seed: int) -> CaseData:
    torch.manual_seed(seed)
    make, numbers, tokens = MODELS[name]
    module = make().eval()
    inputs = [torch.randn(shape) for shape in numbers] + [torch.randint(0, TOKENS, shape) for shape in tokens]
    return case_data(module, inputs)


SUITE = TestSuite.of(
    "torch-models",
    [SuiteCase(name, functools.partial(_data, name)) for name in MODELS],
    version=f"torch {torch.__version__}",
    timeout=CASE_SECONDS,
    description="Small networks of known architectures with random weights, compared with PyTorch itself",
    model_format="torch",
)
