"""Modulation: where the stored patterns are compared, a learned space in which they lie further apart."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ahop._component import Component


class Modulation(Component):
    """Maps patterns and queries ``(..., d)`` into the space where their similarity is taken."""


class Kernel(Modulation):
    r"""A linear map into a space with its own inner product.

    .. math:: \mathrm{sim}(\Phi \xi, \Phi x) = \xi^\top \Phi^\top \Phi x

    It starts as the identity (padded or cut when ``features`` differs from ``dim``).

    Args:
        dim: Number of dimensions of a pattern.
        features: Number of dimensions of the kernel space; ``dim`` when None.

    Shape:
        ``(..., dim)`` to ``(..., features)``.

    Example:
        >>> Kernel(dim=2)(torch.tensor([1.0, 2.0]))
        tensor([1., 2.], grad_fn=<SqueezeBackward4>)
    """

    def __init__(self, dim: int, features: int | None = None) -> None:
        super().__init__()
        self.dim, self.features = dim, features
        if features is not None and features < 1:
            raise ValueError(f"features must be at least 1, got {features}")
        self.phi = nn.Parameter(torch.eye(features or dim, dim))

    def reset_parameters(self) -> None:
        nn.init.eye_(self.phi)

    def forward(self, x: Tensor) -> Tensor:
        # Patterns in half precision are lifted to the precision of what was learned.
        wide = torch.promote_types(x.dtype, self.phi.dtype)
        return x.to(wide) @ self.phi.mT.to(wide)

    def separation_loss(self, patterns: Tensor, most: int = 2048, generator: torch.Generator | None = None) -> Tensor:
        r"""How close the stored patterns lie to each other on the unit sphere of the kernel space.

        .. math:: \log \operatorname*{mean}_{i<j} \exp\left(-2 \lVert n(\Phi\xi_i) - n(\Phi\xi_j) \rVert^2\right),
            \qquad n(v) = v / \lVert v \rVert

        Args:
            patterns: ``(N, d)``, at least two.
            most: Of more patterns than this, so many are drawn at random, and their pairs taken.
            generator: Where that draw comes from.
        """
        if len(patterns) < 2:
            raise ValueError(f"patterns must be at least two for the separation loss, got {len(patterns)}")
        if len(patterns) > most:
            patterns = patterns[torch.randperm(len(patterns), generator=generator)[:most].to(patterns.device)]
        unit = nn.functional.normalize(self(patterns), dim=-1)
        # On the unit sphere the squared distance is 2 - 2 cos.
        first, second = torch.triu_indices(len(unit), len(unit), offset=1, device=unit.device)
        exponents = 4 * ((unit @ unit.mT)[first, second] - 1)
        return torch.logsumexp(exponents, dim=0) - math.log(len(exponents))
