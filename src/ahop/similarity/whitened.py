"""Codes of likelihoods that are distances in other coordinates, in as many digits as they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from ahop._checks import as_tensor
from ahop.similarity.codes import Asked, Codes, NoCodesError, refuse_masks

Kind = TypeVar("Kind", bound=Codes)

# Squares, in units of the noise, that leave dot products right to a few hundredths.
_LARGEST_SQUARES = {torch.float32: 2**18, torch.float64: 2**47}


class Whitening(Protocol):
    """What is asked of one that is a distance in other coordinates, as :class:`ahop.similarity.Correlated` has it."""

    dim: int
    bias: nn.Parameter
    gain: nn.Parameter
    log_beta: nn.Parameter

    def whiten(self, rows: Tensor) -> tuple[Tensor, Tensor]: ...

    def density(self, squares: Tensor, log_determinant: Tensor, count: Tensor | int) -> Tensor: ...


class Whitened(Codes):
    r"""Dot products that order patterns as a :class:`Correlated` likelihood does.

    .. math:: \phi(\xi) = (L^{-1} a (\xi - c),\, -\tfrac12\lVert L^{-1} a (\xi - c) \rVert^2), \qquad
        \psi(x) = (L^{-1}(x - b - a c),\, 1), \qquad L L^\top = W W^\top + \mathrm{diag}(\psi)

    They equal the scores up to a constant of the query when tails are normal; heavy tails keep the order alone.

    Args:
        likelihood: What was learned.
        centre: c, a point amid the patterns ``(d,)``, from which all are counted; None is zero. Codes are of its type.
    """

    dim: int

    centre: Tensor

    def __init__(self, likelihood: Whitening, centre: Tensor | None = None) -> None:
        super().__init__()
        self.likelihood, self.dim = likelihood, likelihood.dim
        zero = torch.zeros_like(likelihood.bias.detach())
        given = zero if centre is None else centre.to(zero.device, torch.promote_types(centre.dtype, zero.dtype))
        self.register_buffer("centre", given)

    @classmethod
    def around(cls, likelihood: Whitening, patterns: Tensor) -> Whitened:
        """Codes for patterns like these: in float64, where they lie so far apart that float32 would lose what tells
        neighbours from each other."""
        return in_digits(lambda centre: cls(likelihood, centre), patterns)

    def covers(self, patterns: Tensor) -> bool:
        return right(self.encode_patterns(patterns), self.centre.dtype)

    def fit_float32(self, patterns: Tensor) -> bool:
        return right(self.encode_patterns(patterns), torch.float32)

    # The coordinates differ with gradients and without: both codes must be of one kind.
    @torch.no_grad()
    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store, ``(N, d + 1)``."""
        patterns = as_tensor(patterns, "patterns").to(self.centre)
        rows, _ = self.likelihood.whiten(self.likelihood.gain * (patterns - self.centre))
        return torch.cat([rows, -0.5 * rows.square().sum(-1, keepdim=True)], -1)

    @torch.no_grad()
    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with, ``(Q, d + 1)``."""
        refuse_masks(observed, self)
        queries = as_tensor(queries, "queries").to(self.centre)
        rows, log_determinant = self.likelihood.whiten(
            queries - self.likelihood.bias - self.likelihood.gain * self.centre
        )
        beta, own = self.likelihood.log_beta.exp(), rows.square().sum(-1, keepdim=True)

        def bend(products: Tensor) -> Tensor:
            squares = (own - 2 / beta * products).clamp_min(0)
            return beta * self.likelihood.density(squares, log_determinant, self.dim)

        return Asked(beta * torch.cat([rows, torch.ones_like(rows[..., :1])], -1), bend=bend)


def right(codes: Tensor, dtype: torch.dtype) -> bool:
    """Whether distances by dot products with codes ``(N, d + 1)`` that end in half a square are right in this type."""
    return not len(codes) or 2 * float(codes[:, -1].detach().abs().max()) < _LARGEST_SQUARES[dtype]


def in_digits(make: Callable[[Tensor], Kind], patterns: Tensor) -> Kind:
    """Codes around the mean of patterns: in float64, where they lie so far apart that float32 would lose what tells
    neighbours from each other."""
    centre = patterns.mean(0)
    for some in (centre, centre.double()):
        if (codes := make(some)).covers(patterns):
            return codes
    raise NoCodesError("patterns lie too far apart, in units of the noise, for dot products to tell neighbours apart")
