"""The network of fixed size: all patterns are one sum."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import as_matrix, as_queries, integer, stored_as, within
from ahop._settle import settle
from ahop.memories import storage
from ahop.memories.moments import Memory, differentiable_on_demand, of_one_moment
from ahop.separation import COLDEST, HOTTEST

if TYPE_CHECKING:
    from typing_extensions import Self

# How much of a turn the rounding of an angle may come to.
_ROUNDING_TURN = 1e-2
# How often a step that would raise the energy is halved before the state rests.
_HALVINGS = 10
# What memories that keep their patterns can be asked for.
_NEEDS_PATTERNS = ("patterns", "recall", "scores", "weights", "fit", "plot")


class FourierHopfield(Memory):
    r"""Stores any number of patterns in a vector of fixed size, as the sum of their random features.

    .. math:: T = \sum_\mu \varphi(\xi_\mu), \qquad E(x) = -\tfrac1\beta \log\, \langle \varphi(x), T \rangle
        \approx -\tfrac1\beta \log \sum_\mu e^{-\frac\beta2 \lVert x - \xi_\mu \rVert^2}, \qquad
        x \leftarrow x - \nabla E(x)

    with :math:`\varphi(x) = \sqrt{2/m} \, [\cos Wx, \sin Wx]`, m the number of features and rows of W drawn from
    :math:`\mathcal N(0, \beta I)` (Hoover et al., "Dense associative memory through the lens of random features",
    2024). With ever more features, the step becomes that of a network with distances and softmax, which is mean shift.
    Where it would raise the energy it is halved, so that the energy never rises.

    Patterns are not kept. They can be added and subtracted again, but not listed, and nothing can say which of them a
    query came from: there is no ``recall``.

    **What fits.** Errors fall as :math:`1/\sqrt m`: four times the features halve them. Where all patterns lie within
    :math:`1/\sqrt\beta` of a state, the sum is of size N and wrong by no more than :math:`N/\sqrt m`, however many
    they are. Where they lie far apart, it is of size 1 and wrong by :math:`\sqrt{N/m}`. In five clusters of 16
    dimensions, 8,000 features had the sum right to 3 % at ``beta=1``, for 1,000 patterns as for 100,000; to 16 to 19 %
    at ``beta=4``; and from ``beta=16`` on, it was smaller than its error.

    Single patterns are told apart only by about as many features as they have numbers. A state comes to rest
    :math:`\sqrt{d N / \beta m}` beside its pattern, and one that is farther than
    :math:`\sqrt{\ln(m/N) / \beta}` from all of them stays where it is. A larger ``beta`` shrinks both alike, so that
    it takes :math:`m \ln(m/N) > d N` for anything to be restored. Of 100 patterns of 64 values (length 1, queries 0.3
    away, ``beta=30``), states came to rest 0.40, 0.16 and 0.06 away with 4,000, 16,000 and 64,000 features.

    Args:
        dim: Number of values d of a pattern.
        features: The size m of T, even.
        beta: Inverse temperature: patterns are told apart that lie farther than :math:`1/\sqrt\beta` from each other.
        seed: For W.

    Example:
        >>> patterns = torch.eye(3)
        >>> memory = FourierHopfield(3, beta=8.0).add(patterns)
        >>> memory.retrieve([0.8, 0.1, 0.1], steps=None).round(decimals=1)
        tensor([1., 0., 0.])
        >>> len(memory.remove(patterns[:1]))
        2
    """

    name = "f-hop"
    frequencies: Tensor
    total: Tensor
    count: Tensor

    def __init__(self, dim: int, *, features: int = 8192, beta: float = 1.0, seed: int = 0) -> None:
        super().__init__()
        self.dim, self.features, self.seed = integer(dim, "dim", 1), integer(features, "features", 2), seed
        if self.features % 2:
            raise ValueError(f"features must be even, a cosine and a sine each; got {features}")
        self.beta = within(beta, "beta", HOTTEST, COLDEST)
        draw = torch.Generator().manual_seed(integer(seed, "seed", 0))
        frequencies = torch.randn(self.features // 2, self.dim, generator=draw, dtype=torch.float64)
        self.register_buffer("frequencies", (math.sqrt(self.beta) * frequencies).to(torch.get_default_dtype()))
        # In float64 whatever the rest is in: millions of numbers are summed up, and one of them may be taken away.
        self.register_buffer("total", torch.zeros(2, self.features // 2, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.eval()

    def __len__(self) -> int:
        return int(self.count)

    def __getattr__(self, name: str) -> Any:
        if name in _NEEDS_PATTERNS:
            raise AttributeError(
                f"f-hop has no {name}, since it keeps no patterns: retrieve(queries) says where they lead, "
                "energy(queries) how close they are to what is stored, and ahop.plot.energy draws that"
            )
        return super().__getattr__(name)

    def extra_repr(self) -> str:
        return f"patterns={len(self)}, dim={self.dim}, features={self.features}, beta={self.beta:g}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        with self.changing:
            total = self.total
            super()._apply(fn, recurse)
            self.total = total.to(self.frequencies.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # A memory of a file computes in the precision of the one that was saved.
        self.to(state_dict.get(f"{prefix}frequencies", self.frequencies).dtype)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    # --- storing ---------------------------------------------------------------------------------------

    def add(self, patterns: Any) -> Self:
        """Add the features of these patterns, ``(n, d)``."""
        return self._sum(patterns, 1)

    def remove(self, patterns: Any) -> Self:
        """Subtract the features of these patterns, ``(n, d)``, which should have been added: nobody can check that."""
        return self._sum(patterns, -1)

    @torch.no_grad()
    def _sum(self, patterns: Any, sign: int) -> Self:
        rows = stored_as(as_matrix(patterns, "patterns"), self.frequencies, "patterns")
        if rows.shape[1] != self.dim:
            raise ValueError(f"patterns must have {self.dim} values each, got shape {tuple(rows.shape)}")
        more = torch.zeros_like(self.total)
        for part in self._parts(rows):
            angles = self._angles(rows[part], "patterns")
            more += torch.stack([angles.cos(), angles.sin()]).sum(1, dtype=torch.float64)
        with self.changing:
            if len(self) + sign * len(rows) < 0:
                raise ValueError(f"patterns must be at most {len(self)}, as many as are stored; got {len(rows)}")
            self.total, self.count = self.total + sign * more, self.count + sign * len(rows)
        return self

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the memory into ``folder``; :func:`ahop.load` reads it back. See :mod:`ahop.memories.storage`."""
        storage.save(copy.copy(self), folder)

    # --- asking ----------------------------------------------------------------------------------------

    @property
    def noise(self) -> float:
        r"""The standard deviation of :math:`\langle \varphi(x), T \rangle` far from all patterns, where it should be 0.

        About :math:`\sqrt{N/m}` for N patterns that are far from each other. What lies below it is not told apart from
        nothing: the energy is flat there, and a state stays where it is.
        """
        return float(self.total.norm()) / (self.features / math.sqrt(2))

    @differentiable_on_demand
    @of_one_moment
    def energy(self, queries: Any) -> Tensor:
        """The energy of each query, ``(...)``; lower is closer to what is stored."""
        flat, shape = self._asked(queries)
        parts = [self._walk(flat[part])[0] for part in self._parts(flat)]
        return torch.cat([*parts, flat.new_empty(0)]).reshape(shape[:-1])

    @differentiable_on_demand
    @of_one_moment
    def retrieve(
        self, queries: Any, steps: int | None = 1, *, tolerance: float = 1e-5, max_steps: int = 1000
    ) -> Tensor:
        """Go down the energy from these queries.

        Args:
            queries: ``(..., d)``.
            steps: How many; None goes on until the state converges.
            tolerance: A state has converged when no entry moves by more than this.
            max_steps: Where ``steps=None`` gives up, with a warning.

        Shape:
            ``(..., d)``.
        """
        steps = None if steps is None else integer(steps, "steps", 1)
        near = 0.0 if steps is not None else within(tolerance, "tolerance", 0.0, math.inf)
        most = integer(max_steps, "max_steps", 1)
        flat, shape = self._asked(queries)
        parts = [
            settle(self._step, flat[part], steps=steps, tolerance=near, most=most)[0] for part in self._parts(flat)
        ]
        return torch.cat([*parts, flat[:0]]).reshape(shape)

    forward = retrieve

    def _asked(self, queries: Any) -> tuple[Tensor, torch.Size]:
        if not len(self):
            raise ValueError("the memory must store patterns before it is asked, got none; add() them")
        rows = as_queries(queries, self.frequencies[:1].expand(len(self), -1), None).rows
        return rows.reshape(-1, self.dim), rows.shape

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        energy, slope = self._walk(state)
        size = torch.ones_like(energy)[:, None]
        for _ in range(_HALVINGS):
            rises = self._walk(state - size * slope)[0] > energy
            if not bool(rises.any()):
                break
            size = torch.where(rises[:, None], size / 2, size)
        return torch.where(rises[:, None], state, state - size * slope)

    def _walk(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The energy of states ``(n, d)``, ``(n,)``, and its gradient there."""
        angles = self._angles(state, "queries")
        cosine, sine = angles.cos(), angles.sin()
        real, imaginary = self.total.to(state.dtype) * 2 / self.features
        found, least = cosine @ real + sine @ imaginary, self.noise
        heard = found > least
        found = torch.where(heard, found, least)
        slope = ((sine * real - cosine * imaginary) @ self.frequencies) / (self.beta * found[:, None])
        return -found.log() / self.beta, slope * heard[:, None]

    def _angles(self, rows: Tensor, name: str) -> Tensor:
        angles = rows @ self.frequencies.T
        # Asked this way round, what is no number is refused.
        if not bool((angles.abs() * torch.finfo(angles.dtype).eps <= _ROUNDING_TURN).all()):
            raise ValueError(
                f"{name} must be closer to zero, or beta smaller: {angles.dtype} rounds their features away"
            )
        return angles

    def _parts(self, rows: Tensor) -> list[slice]:
        """So many rows at a time that their features keep to the budget."""
        return split(len(rows), 2 * self.features * rows.element_size())
