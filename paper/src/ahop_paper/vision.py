"""Networks for photographs whose attention is a Hopfield layer, and how images are varied while they train."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ahop.modulation import Kernel
from ahop.nn import Hopfield
from ahop.nn.association import Association
from ahop.similarity import Adaptive

MODELS = ("m-hop", "s-hop", "k-hop", "a-hop", "a-hop-1")
# What pages call one, where that is not its name.
TITLES = {"a-hop-1": "a-hop, one base"}


def layer(model: str, width: int, heads: int) -> Hopfield:
    """A Hopfield layer by the short name of its network; ``a-hop-1`` has one base, the dot product, instead of two."""
    options: dict[str, dict[str, Any]] = {
        "m-hop": {},
        "s-hop": {"separation": "sparsemax"},
        "k-hop": {"modulation": Kernel(width // heads)},
        "a-hop": {"similarity": "adaptive"},
        "a-hop-1": {"similarity": [Adaptive(width // heads, ["dot"]) for _ in range(heads)]},
    }
    return Hopfield(width, num_heads=heads, **options[model])


class Network(nn.Module, ABC):
    """A classifier of images with Hopfield layers."""

    @abstractmethod
    def separation_loss(self, images: Tensor) -> Tensor:
        """How close the stored patterns of a k-hop lie to each other in its kernel's space, the mean over layers."""

    def kernels(self) -> list[nn.Parameter]:
        """What the layers of a k-hop learn apart from all else; nothing in other networks."""
        return [module.phi for module in self.modules() if isinstance(module, Kernel)]

    def inner_matrices(self) -> list[nn.Parameter]:
        """The matrices of linear maps within blocks, which Muon is for; nothing in a network without blocks."""
        return []


class PublishedNetwork(Network):
    """The network of the paper's protocol: a learned state looks at the patches of an image, and a linear map decides.

    With patches of 32 x 32 an image of CIFAR is one patch. One stored pattern has all the weight whatever the
    similarity, the separation and the state, so that nothing of the Hopfield layer is left but its projections.

    Args:
        model: The layer's name.
        size: The height and width of an image.
        classes: The number of classes.
        patch: The height and width of a patch.
        width: The width of a token.
    """

    def __init__(self, model: str, size: int, classes: int, patch: int = 32, width: int = 512) -> None:
        super().__init__()
        self.patch, self.tokens = patch, (size // patch) ** 2
        self.embedding = nn.Linear(3 * patch * patch, width)
        self.state = nn.Parameter(torch.randn(1, 1, width))
        self.hopfield = layer(model, width, heads=1)
        self.head = nn.Sequential(nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.embedding(patches(images, self.patch))
        return self.head(self.hopfield((tokens, self.state, tokens)).squeeze(1))

    def separation_loss(self, images: Tensor) -> Tensor:
        return _separation(self.hopfield, self.embedding(patches(images, self.patch)))


class ImageTransformer(Network):
    """A small vision transformer: patches of 4 x 4, learned positions, blocks of Hopfield attention and an MLP.

    The classifier reads the mean of all tokens. About 2.25 million parameters.

    Args:
        model: The layer's name.
        size: The height and width of an image.
        classes: The number of classes.
        patch: The height and width of a patch.
        width: The width of a token.
        depth: The number of blocks.
        heads: The number of heads.
        ratio: How many times as wide as a token the perceptron is.
    """

    def __init__(
        self,
        model: str,
        size: int,
        classes: int,
        patch: int = 4,
        width: int = 192,
        depth: int = 6,
        heads: int = 6,
        ratio: int = 3,
    ) -> None:
        super().__init__()
        self.patch, self.tokens = patch, (size // patch) ** 2
        self.embedding = nn.Linear(3 * patch * patch, width)
        self.positions = nn.Parameter(0.02 * torch.randn(self.tokens, width))
        self.blocks = nn.ModuleList(_Block(layer(model, width, heads), width, ratio) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, classes))

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.embedding(patches(images, self.patch)) + self.positions
        for block in self.blocks:
            tokens = block(tokens)
        return self.head[1](self.head[0](tokens).mean(1))

    def separation_loss(self, images: Tensor) -> Tensor:
        tokens, losses = self.embedding(patches(images, self.patch)) + self.positions, []
        for block in self.blocks:
            assert isinstance(block, _Block)
            losses.append(_separation(block.attention, block.before_attention(tokens)))
            tokens = block(tokens)
        return torch.stack(losses).mean()

    def inner_matrices(self) -> list[nn.Parameter]:
        associations = [module for module in self.blocks.modules() if isinstance(module, Association)]
        # A similarity or a kernel learns there: that is no linear map of tokens.
        excluded = {id(value) for one in associations for value in one.parameters()}
        return [value for value in self.blocks.parameters() if value.ndim == 2 and id(value) not in excluded]


class _Block(nn.Module):
    def __init__(self, attention: Hopfield, width: int, ratio: int) -> None:
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), attention
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, ratio * width), nn.GELU(), nn.Linear(ratio * width, width)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attention(self.before_attention(tokens))
        return tokens + self.perceptron(tokens)


def _separation(hopfield: Hopfield, tokens: Tensor) -> Tensor:
    kernel = hopfield.association.modulation
    assert isinstance(kernel, Kernel)
    return kernel.separation_loss(hopfield.stored(tokens).flatten(0, 2))


def patches(images: Tensor, size: int) -> Tensor:
    """Images ``(B, 3, height, width)`` as rows of pixels, ``(B, patches, 3 * size * size)``."""
    grid = images.unfold(2, size, size).unfold(3, size, size)
    return grid.permute(0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2)


# --- varying images -------------------------------------------------------------------------------------------


def prepare(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Images as standardised numbers.

    Args:
        images: Bytes, ``(B, height, width, 3)``.
        mean, std: Those of each channel, ``(3,)``.

    Returns:
        ``(B, 3, height, width)``.
    """
    return ((images.float() / 255 - mean) / std).permute(0, 3, 1, 2)


def vary(images: Tensor) -> Tensor:
    """Each image turned, sheared, scaled, shifted, perhaps mirrored, and in other light; all at once on its device."""
    count = len(images)

    def draw(low: float, high: float) -> Tensor:
        return torch.empty(count, device=images.device).uniform_(low, high)

    angle, shear = draw(-1, 1) * math.radians(15), draw(-0.2, 0.2)
    scale, mirror = draw(-0.2, 0.2).exp(), torch.where(draw(0, 1) < 0.5, -1.0, 1.0)
    cos, sin = angle.cos() * scale, angle.sin() * scale
    rows = [torch.stack([mirror * cos, shear - sin, draw(-0.25, 0.25)], -1)]
    rows.append(torch.stack([mirror * sin, cos, draw(-0.25, 0.25)], -1))
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    images = functional.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)

    def wide(values: Tensor) -> Tensor:
        return values[:, None, None, None]

    grey = images.mean(1, keepdim=True)
    images = torch.lerp(grey.expand_as(images), images, wide(draw(0.6, 1.4)))
    centre = images.mean((1, 2, 3), keepdim=True)
    return torch.lerp(centre.expand_as(images), images, wide(draw(0.6, 1.4))) + wide(draw(-0.4, 0.4))


def blend(images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of images, and their targets ``(B, classes)``: half of the time mixed, half of the time pasted together.

    The choice is made on the device for the whole batch, with no word to the processor, so that a step can be replayed.
    """
    device, (height, width) = images.device, images.shape[2:]
    share, paste = torch.rand((), device=device), torch.rand((), device=device) < 0.5
    side = (1 - share).sqrt()
    top, left = torch.rand((), device=device) * (1 - side), torch.rand((), device=device) * (1 - side)
    down = (torch.arange(height, device=device) + 0.5) / height
    across = (torch.arange(width, device=device) + 0.5) / width
    inside = ((down >= top) & (down < top + side))[:, None] & ((across >= left) & (across < left + side))
    keep = torch.where(paste, 1 - inside.float(), share)
    share = keep.mean()
    return torch.lerp(images.flip(0), images, keep), torch.lerp(targets.flip(0), targets, share)
