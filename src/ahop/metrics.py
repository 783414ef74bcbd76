"""How well a memory retrieves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import as_origins
from ahop.memories.base import AssociativeMemory
from ahop.variants.base import Samples


class Evaluation(NamedTuple):
    """Retrieval accuracy and error of the soft readout, and how often the first choice of ``recall`` is right."""

    accuracy: float
    error: float
    first_choice: float


def evaluate(memory: AssociativeMemory, samples: Samples, *, steps: int | None = 1) -> Evaluation:
    """:func:`retrieval_accuracy`, :func:`retrieval_error` and :func:`first_choice_accuracy` together.

    Args:
        memory: What is evaluated.
        samples: Queries and their origins.
        steps: As in :meth:`~ahop.memories.base.AssociativeMemory.retrieve`.
    """
    right = squares = 0.0
    for readout, origins in _answers(memory, samples, steps):
        wanted = memory.readouts[origins]
        nearest = memory.readouts[_distances(memory, readout).argmin(1)]
        right += float((nearest == wanted).all(1).sum())
        squares += float((readout - wanted).square().mean(-1).sum())
    count = max(1, len(samples[1]))
    return Evaluation(right / count, squares / count, first_choice_accuracy(memory, samples))


def retrieval_accuracy(memory: AssociativeMemory, samples: Samples, *, steps: int | None = 1) -> float:
    """The share of queries whose readout lies nearest to the pattern they came from.

    Patterns that are stored more than once count as one. With ``values``, the readout is compared with those.

    Args:
        memory: Any memory.
        samples: Queries and origins.
        steps: As in :meth:`~ahop.memories.base.AssociativeMemory.retrieve`.
    """
    return evaluate(memory, samples, steps=steps).accuracy


def retrieval_error(memory: AssociativeMemory, samples: Samples, *, steps: int | None = 1) -> float:
    """The mean squared difference, per dimension, of the readout from the pattern a query came from.

    Args:
        memory: Any memory.
        samples: Queries and origins.
        steps: As in :meth:`~ahop.memories.base.AssociativeMemory.retrieve`.
    """
    return evaluate(memory, samples, steps=steps).error


def epsilon_retrieval(memory: AssociativeMemory, samples: Samples, epsilon: float, *, steps: int | None = 1) -> float:
    """The share of queries whose readout lies within ``epsilon`` of *some* stored pattern.

    The customary measure: it tells whether a memory was retrieved, not whether it was the right one.

    Args:
        memory: Any memory.
        samples: Queries and origins; only the queries count.
        epsilon: The largest distance that is near enough.
        steps: As in :meth:`~ahop.memories.base.AssociativeMemory.retrieve`.
    """
    near = 0.0
    for readout, _ in _answers(memory, samples, steps):
        near += float((_distances(memory, readout).amin(1) <= epsilon).sum())
    return near / max(1, len(samples[1]))


def top_k_accuracy(memory: AssociativeMemory, samples: Samples, k: int = 5) -> float:
    """The share of queries whose origin is among the k patterns recalled first.

    Args:
        memory: Any memory.
        samples: Queries and origins.
        k: How many first choices count.
    """
    queries, origins = Samples(*samples)
    found = memory.recall(queries, k).indices
    origins = as_origins(origins, len(found), len(memory)).to(found.device)
    return float((found == origins[:, None]).any(1).sum()) / max(1, len(origins))


def first_choice_accuracy(memory: AssociativeMemory, samples: Samples) -> float:
    """The share of queries whose first choice in ``recall`` is the pattern they came from.

    The Oracle's is the Bayes ceiling: in expectation no memory can do better. Patterns that are stored more than
    once count as one. A query that is refused was not found.
    """
    queries, origins = Samples(*samples)
    first = memory.recall(queries).indices.squeeze(-1)
    origins = as_origins(origins, len(first), len(memory)).to(first.device)
    return float(same_patterns(memory.patterns, first, origins).sum()) / max(1, len(origins))


def same_patterns(patterns: Tensor, first: Tensor, origins: Tensor) -> Tensor:
    """Whether first choices ``(n,)`` are the origins ``(n,)``, or stored just like them; -1 is no choice.

    Args:
        patterns: ``(N, d)``.
        first, origins: Indices of patterns, ``(n,)`` both.

    Example:
        >>> twice = torch.tensor([[0.0], [1.0], [1.0]])
        >>> same_patterns(twice, torch.tensor([1, 0, -1]), torch.tensor([2, 2, 2]))
        tensor([ True, False, False])
    """
    return (patterns[first] == patterns[origins]).all(1) & (first >= 0)


def fraction_of_ceiling(memory: AssociativeMemory, oracle: AssociativeMemory, samples: Samples) -> float:
    """First-choice accuracy as a fraction of the Oracle's on the same samples.

    Not of the soft readout: where the true posterior is spread over many patterns, its mean lies near none of
    them, and a memory that is too sure of itself would seem to beat the ceiling.

    Args:
        memory: Any memory.
        oracle: The Oracle, which knows the corruption.
        samples: Queries and origins.
    """
    ceiling = first_choice_accuracy(oracle, samples)
    if ceiling == 0:
        raise ValueError("samples must hold a query that the Oracle retrieves, got none: there is no fraction of it")
    return first_choice_accuracy(memory, samples) / ceiling


def _distances(memory: AssociativeMemory, readout: Tensor) -> Tensor:
    """From each readout to everything stored, by differences: an exact answer must be at distance zero."""
    return torch.cdist(readout, memory.readouts, compute_mode="donot_use_mm_for_euclid_dist")


@torch.no_grad()
def _answers(memory: AssociativeMemory, samples: Samples, steps: int | None) -> Iterator[tuple[Tensor, Tensor]]:
    queries, origins = Samples(*samples)
    origins = as_origins(origins, len(queries), len(memory)).to(memory.patterns.device)
    for part in split(len(origins), len(memory) * memory.patterns.element_size()):
        yield memory.retrieve(queries[part], steps), origins[part]


def calibration_error(memory: AssociativeMemory, samples: Samples, bins: int = 15) -> float:
    """How far the probability of the first choice is from how often it is right; see :func:`calibration_gap`.

    Args:
        memory: What is evaluated.
        samples: Queries and their origins.
        bins: The number of bins of the confidence.
    """
    queries, origins = Samples(*samples)
    indices, probabilities = memory.recall(queries)
    origins = as_origins(origins, len(indices), len(memory)).to(indices.device)
    return calibration_gap(probabilities.squeeze(-1), indices.squeeze(-1) == origins, bins)


def calibration_gap(confidence: Tensor, right: Tensor, bins: int = 15) -> float:
    r"""The expected calibration error of answers.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \lvert \mathrm{accuracy}_b - \mathrm{confidence}_b \rvert

    over equal bins of the confidence.

    Args:
        confidence: How sure each answer is, ``(n,)`` in 0 to 1.
        right: Whether it is right, ``(n,)``.
        bins: The number of bins, equally wide.

    Example:
        >>> calibration_gap(torch.tensor([0.75, 0.75, 0.75, 0.75]), torch.tensor([True, True, False, False]))
        0.25
    """
    bin_of = (confidence * bins).long().clamp(0, bins - 1)
    gaps = torch.zeros(bins, dtype=confidence.dtype, device=confidence.device)
    gaps.index_add_(0, bin_of, right.to(confidence) - confidence)
    return float(gaps.abs().sum()) / max(1, len(right))
