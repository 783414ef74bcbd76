"""How well a memory retrieves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import as_origins
from ahop.memory import AssociativeMemory
from ahop.similarity import Distance
from ahop.variants.base import Samples


class Evaluation(NamedTuple):
    """Retrieval accuracy and error of one pass over the samples."""

    accuracy: float
    error: float


def evaluate(memory: AssociativeMemory, samples: Samples, *, steps: int | None = 1) -> Evaluation:
    """:func:`retrieval_accuracy` and :func:`retrieval_error` together, for the price of one."""
    right = squares = 0.0
    for readout, origins in _readouts(memory, samples, steps):
        distances = Distance()(memory._readouts, readout)
        own = distances.gather(1, origins[:, None]).squeeze(1)
        right += float((own >= distances.amax(1)).sum())
        squares += float((readout - memory._readouts[origins]).square().mean(-1).sum())
    count = max(1, len(samples.origins))
    return Evaluation(right / count, squares / count)


def retrieval_accuracy(memory: AssociativeMemory, samples: Samples, *, steps: int | None = 1) -> float:
    """The share of queries whose readout lies nearest to the pattern they came from.

    Patterns that are stored more than once count as one. With ``values``, the readout is compared with those.

    Args:
        memory: Any memory.
        samples: Queries and origins.
        steps: As in :meth:`~ahop.memory.AssociativeMemory.retrieve`.
    """
    return evaluate(memory, samples, steps=steps).accuracy


def retrieval_error(memory: AssociativeMemory, samples: Samples, *, steps: int | None = 1) -> float:
    """The mean squared difference, per dimension, of the readout from the pattern a query came from."""
    return evaluate(memory, samples, steps=steps).error


def epsilon_retrieval(memory: AssociativeMemory, samples: Samples, epsilon: float, *, steps: int | None = 1) -> float:
    """The share of queries whose readout lies within ``epsilon`` of *some* stored pattern.

    The customary measure: it tells whether a memory was retrieved, not whether it was the right one.
    """
    near = 0.0
    for readout, _ in _readouts(memory, samples, steps):
        nearest = Distance()(memory._readouts, readout).amax(1)
        near += float((-nearest <= epsilon**2).sum())
    return near / max(1, len(samples.origins))


def top_k_accuracy(memory: AssociativeMemory, samples: Samples, k: int = 5) -> float:
    """The share of queries whose origin is among the k patterns recalled first."""
    found = memory.recall(samples.queries, k).indices
    origins = as_origins(samples.origins, len(found), len(memory)).to(found.device)
    return float((found == origins[:, None]).any(1).sum()) / max(1, len(origins))


def fraction_of_ceiling(memory: AssociativeMemory, oracle: AssociativeMemory, samples: Samples) -> float:
    """Retrieval accuracy as a fraction of the Oracle's on the same samples."""
    ceiling = retrieval_accuracy(oracle, samples)
    if ceiling == 0:
        raise ValueError("samples leave the oracle no query to retrieve, so there is no fraction of it")
    return retrieval_accuracy(memory, samples) / ceiling


@torch.no_grad()
def _readouts(memory: AssociativeMemory, samples: Samples, steps: int | None) -> Iterator[tuple[Tensor, Tensor]]:
    queries, origins = samples
    origins = as_origins(origins, len(queries), len(memory)).to(memory.patterns.device)
    for part in split(len(origins), len(memory) * memory.patterns.element_size()):
        yield memory.retrieve(queries[part], steps), origins[part]
