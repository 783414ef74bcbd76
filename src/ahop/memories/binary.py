"""Networks of units that are -1 or +1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from ahop._checks import as_matrix, choice, integer
from ahop._queries import Queries
from ahop.memories.base import AssociativeMemory
from ahop.separation import Exponential, Identity, Power, Separation
from ahop.similarity import Dot

if TYPE_CHECKING:
    from typing_extensions import Self


def require_signs(rows: Any, name: str, owner: object) -> Tensor:
    """A matrix of -1 and +1, or an error that says of whom.

    Args:
        rows: What came.
        name: The argument's name, for errors.
        owner: What needs the signs; errors name its class.
    """
    signs = as_matrix(rows, name)
    if not bool((signs.abs() == 1).all()):
        raise ValueError(f"{name} of a {type(owner).__name__} must be -1 or +1, got other values")
    return signs


def driven(drive: Tensor, state: Tensor) -> Tensor:
    """A unit that is not driven either way stays as it is or, if nobody has observed it either, is up."""
    moved = torch.where(drive == 0, state, drive.sign())
    return torch.where(moved == 0, 1.0, moved)


class _Binary(AssociativeMemory, abstract=True):
    """A network of units that are -1 or +1: the readout goes through the sign."""

    def __init__(self, patterns: Any, separation: Separation, values: Any) -> None:
        super().__init__(require_signs(patterns, "patterns", self), Dot(), separation, values=values)
        if self.values is not None:
            require_signs(self.values, "values", self)

    def add(self, patterns: Any, *, values: Any = None, prior: Any = None) -> Self:
        """Store further patterns of -1 and +1."""
        require_signs(patterns, "patterns", self)
        if values is not None:
            require_signs(values, "values", self)
        return super().add(patterns, values=values, prior=prior)

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        return driven(super()._step(state, observed), state)

    def _read(self, state: Tensor, observed: Tensor | None) -> Tensor:
        return self._step(state, observed) if self.values is None else super()._read(state, observed).sign()


class ClassicalHopfield(_Binary):
    r"""The original network of binary units.

    .. math:: x \leftarrow \mathrm{sign}(\Xi^\top \Xi x), \qquad E(x) = -\tfrac12 x^\top \Xi^\top \Xi x

    It stores about 0.14 d random patterns.

    Args:
        patterns: ``(N, d)`` of -1 and +1.
        update: ``"synchronous"`` moves all units at once. ``"asynchronous"`` moves one after the other, each
            driven by all the others, in a random order; the energy then never rises.
        seed: For that order.
        values: Read out instead of the patterns, through the sign.

    Example:
        >>> memory = ClassicalHopfield(torch.tensor([[1, 1, -1, -1], [1, -1, 1, -1]]))
        >>> memory.retrieve(torch.tensor([1, 1, 1, -1]), steps=None)
        tensor([ 1.,  1.,  1., -1.])
    """

    name = "hop"

    def __init__(
        self,
        patterns: Any,
        *,
        update: Literal["synchronous", "asynchronous"] = "synchronous",
        seed: int = 0,
        values: Any = None,
    ) -> None:
        super().__init__(patterns, Identity(), values)
        self.update, self.seed = choice(update, "update", ("synchronous", "asynchronous")), integer(seed, "seed", 0)

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        if self.update == "synchronous":
            return super()._step(state, observed)
        state = Queries(state, observed).masked(state).clone()
        overlaps = state @ self.patterns.mT
        order = torch.randperm(state.shape[1], generator=torch.Generator().manual_seed(self.seed)).tolist()
        for unit in order:
            column = self.patterns[:, unit]
            drive = overlaps @ column - len(self) * state[:, unit]
            moved = driven(drive, state[:, unit])
            overlaps += (moved - state[:, unit])[:, None] * column
            state[:, unit] = moved
        return state


class DenseHopfield(_Binary):
    r"""Binary units that store far more by raising overlaps to a power.

    .. math:: x \leftarrow \mathrm{sign}(\Xi^\top (\Xi x)^k), \qquad E(x) = -\sum_i (\xi_i^\top x)^{k+1}

    Args:
        patterns: ``(N, d)`` of -1 and +1.
        k: The power; 1 is the classical network.
        values: Read out instead of the patterns, through the sign.
    """

    name = "d-hop"

    def __init__(self, patterns: Any, *, k: int = 3, values: Any = None) -> None:
        super().__init__(patterns, Power(k), values)
        self.k = integer(k, "k", 1)


class ExponentialHopfield(_Binary):
    r"""Binary units that store exponentially many patterns.

    .. math:: x \leftarrow \mathrm{sign}(\Xi^\top \exp(\Xi x)), \qquad E(x) = -\log \sum_i \exp(\xi_i^\top x)

    The textbook energy is :math:`-\sum_i \exp(\xi_i^\top x)`; its logarithm falls and rises with it and does not
    overflow.

    Args:
        patterns: ``(N, d)`` of -1 and +1.
        values: Read out instead of the patterns, through the sign.
    """

    name = "e-hop"

    def __init__(self, patterns: Any, *, values: Any = None) -> None:
        super().__init__(patterns, Exponential(), values)
