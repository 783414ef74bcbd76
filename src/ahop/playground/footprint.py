"""Two stored pictures and a query: their terms sorted, added up, and weighed by rank."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.memories import AdaptiveHopfield
from ahop.playground.damage import Damage, Sliders
from ahop.playground.pictures import Pictures
from ahop.playground.recall import EXAMPLES
from ahop.similarity import footprint


class Comparison(NamedTuple):
    """A query of the first picture beside two stored ones.

    Attributes:
        query: ``(d,)``.
        terms: How alike each pixel is, minus the squared difference, ``(2, d)``.
        ordered: The same from best to worst, ``(2, d)``.
        sums: The footprints: the best k pixels added up, ``(2, d)``.
        weights: What a-hop learned to weigh each rank by, ``(d,)``.
        plain, learned: The scores of both by distance and by these weights, ``(2,)`` each.
    """

    query: Tensor
    terms: Tensor
    ordered: Tensor
    sums: Tensor
    weights: Tensor
    plain: Tensor
    learned: Tensor


@torch.no_grad()
def compare(pictures: Pictures, first: int, second: int, sliders: Sliders, seed: int = 0) -> Comparison:
    """Damage the first picture, and compare it with both.

    Args:
        pictures: The stored ones.
        first, second: Two of them.
        sliders: What happens to the first.
        seed: Of the noise.
    """
    both = pictures.patterns[[first, second]]
    query = Damage(pictures.shape, sliders).query(both[0], seed)
    terms = -(both - query).square()
    weights = _weights(pictures, sliders)
    ordered = terms.sort(1, descending=True).values
    sums = footprint(both, query, "distance")
    return Comparison(query, terms, ordered, sums, weights, sums[:, -1], ordered @ weights)


@lru_cache(maxsize=32)
def _weights(pictures: Pictures, sliders: Sliders) -> Tensor:
    train = Damage(pictures.shape, sliders, seed=1).sample(pictures.patterns, EXAMPLES)
    memory = AdaptiveHopfield(pictures.patterns, bases=["distance"]).fit(*train)
    return memory.similarity.order_weights()[0].detach()
