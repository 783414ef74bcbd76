"""The network that knows what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import as_matrix, as_queries, integer
from ahop._queries import Queries
from ahop.memories.base import AssociativeMemory
from ahop.memories.binary import driven, require_signs
from ahop.memories.moments import differentiable_on_demand, of_one_moment
from ahop.separation import Separation
from ahop.similarity import Similarity

if TYPE_CHECKING:
    from typing_extensions import Self

# By how much what comes next outweighs what is there, once it has been there for long.
_TRANSITION_WEIGHT = 2.5


class SequenceHopfield(AssociativeMemory):
    r"""Recalls what comes next, and so replays whole sequences from a hint of where they are.

    .. math:: x \leftarrow \mathrm{sign}\Big(\sum_\mu \xi_{\mu+1} \, f(\xi_\mu^\top x)\Big), \qquad
        f(s) = s^k \quad\text{or}\quad e^s

    This is the DenseNet of Chaudhry et al. ("Long sequence Hopfield memory", 2023); with :math:`f(s) = s`, that of
    Amari (1972). Overlaps are those of the whole state, while the paper leaves out the unit that is moved. How many
    transitions are learned by heart: :func:`ahop.theory.sequence_capacity`.

    No energy falls along a replay: a sequence that returns to its beginning would have to end lower than it began.
    :meth:`energy` says how close a state is to one that is stored. ``retrieve`` with several steps first goes to such a
    state and then to the one behind it; ``recall`` says where in the sequence a state is.

    Args:
        patterns: ``(N, d)``, one sequence in its order; :meth:`add` stores another.
        values: What comes after each pattern, ``(N, d)``. When None it is the next pattern, and the last one stays. For
            a cycle, ``patterns.roll(-1, 0)``.
        similarity: How alike a pattern and a state are, or the name of a similarity.
        separation: f, or its name: ``"exponential"``, ``ahop.separation.Power(k)``, ...
        binary: Whether states are -1 and +1, and go through the sign. Real-valued ones are read out as they are; for
            them take ``similarity="distance"``, as long patterns would win every dot product.

    Example:
        >>> tune = torch.randn(20, 64, generator=torch.Generator().manual_seed(0)).sign()
        >>> memory = SequenceHopfield(tune)
        >>> hint = tune[0].clone()
        >>> hint[:20] = 1.0
        >>> bool((memory.replay(hint, 19) == tune[1:]).all())
        True
    """

    name = "q-hop"
    values: Tensor

    def __init__(
        self,
        patterns: Any,
        *,
        values: Any = None,
        similarity: Similarity | str = "dot",
        separation: Separation | str = "exponential",
        binary: bool = True,
    ) -> None:
        patterns, values = _with_next(patterns, values)
        super().__init__(patterns, similarity, separation, values=values)
        self.binary = binary
        self._check(patterns, self.values)

    def add(self, patterns: Any, *, values: Any = None, prior: Any = None) -> Self:
        """Store another sequence, whose last pattern stays, or further patterns with what comes after each."""
        patterns, values = _with_next(patterns, values)
        self._check(patterns, values)
        return super().add(patterns, values=values, prior=prior)

    def _check(self, patterns: Tensor, values: Tensor) -> None:
        if values.shape[1] != self.query_dim:
            wanted = f"{self.query_dim} numbers each, as the next states"
            raise ValueError(f"values must have {wanted}; got shape {tuple(values.shape)}")
        if self.binary:
            require_signs(patterns, "patterns", self)
            require_signs(values, "values", self)

    @differentiable_on_demand
    @of_one_moment
    def replay(self, queries: Any, steps: int, *, dwell: int | None = None) -> Tensor:
        r"""The states that follow, one after another.

        With ``dwell``, states stay for a while before they move on (the paper's MixedNet): stored patterns attract the
        state, and what comes next is driven by the mean of the last states,

        .. math:: x \leftarrow \mathrm{sign}\Big(\sum_\mu \xi_\mu f(\xi_\mu^\top x)
            + \lambda \sum_\mu \xi_{\mu+1} f(\xi_\mu^\top \bar x)\Big), \qquad \lambda = 2.5

        Args:
            queries: Where to begin, ``(..., d)``.
            steps: How many states.
            dwell: Over how many states the mean is, which is how many steps a state stays with the exponential; less
                with a power. None moves at every step. For binary states alone.

        Shape:
            ``(..., steps, d)``; the queries are not among them.

        Example:
            >>> tune = torch.randn(3, 64, generator=torch.Generator().manual_seed(0)).sign()
            >>> memory = SequenceHopfield(tune)
            >>> memory.recall(memory.replay(tune[0], 4)).indices.squeeze(1)
            tensor([1, 2, 2, 2])
            >>> memory.recall(memory.replay(tune[0], 6, dwell=3)).indices.squeeze(1)
            tensor([0, 0, 1, 1, 1, 2])
        """
        steps = integer(steps, "steps", 1)
        dwell = None if dwell is None else integer(dwell, "dwell", 1)
        if dwell is not None and not self.binary:
            raise ValueError(f"dwell must be None where states are real-valued, got {dwell}")
        asked = as_queries(queries, self.patterns, None, self.query_dim).rows
        flat = asked.reshape(-1, asked.shape[-1])
        parts = split(len(flat), 2 * len(self) * flat.element_size())
        states = [self._replay(flat[part], steps, dwell) for part in parts] or [flat[:, None].expand(-1, steps, -1)]
        return torch.cat(states).reshape(*asked.shape[:-1], steps, asked.shape[-1])

    def _replay(self, state: Tensor, steps: int, dwell: int | None) -> Tensor:
        states = [state]
        for _ in range(steps):
            if dwell is None:
                states.append(self._read(states[-1], None))
            else:
                states.append(self._pulled(states[-1], torch.stack(states[-dwell:]).sum(0) / dwell))
        return torch.stack(states[1:], 1)

    def _pulled(self, state: Tensor, mean: Tensor) -> Tensor:
        """The next state, between what is there and what comes after what has been there."""
        # Side by side, so that the separation scales both alike.
        scores = torch.cat([self._scores(Queries(state)), self._scores(Queries(mean))], -1)
        here, over = self.separation(scores).to(state.dtype).chunk(2, -1)
        return driven(here @ self.patterns + _TRANSITION_WEIGHT * over @ self.values, state)

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        return self._as_units(super()._step(state, observed), state)

    def _read(self, state: Tensor, observed: Tensor | None) -> Tensor:
        return self._as_units(super()._read(state, observed), state)

    def _as_units(self, drive: Tensor, state: Tensor) -> Tensor:
        return driven(drive, state) if self.binary else drive


def _with_next(patterns: Any, values: Any) -> tuple[Tensor, Tensor]:
    """Patterns, and what comes after each."""
    patterns = as_matrix(patterns, "patterns")
    return patterns, torch.cat([patterns[1:], patterns[-1:]]) if values is None else as_matrix(values, "values")
