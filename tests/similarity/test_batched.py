"""Similarities of many sets at once are those of each set by itself."""

import pytest
import torch

import ahop
from ahop.similarity import (
    Adaptive,
    Correlated,
    Cosine,
    Distance,
    Dot,
    Euclidean,
    Likelihood,
    Manhattan,
    Regimes,
    Unified,
)

DIM = 5


def similarities():
    tilted = Adaptive(DIM)
    tilted.set_order_weights(torch.rand(2, DIM, generator=torch.Generator().manual_seed(0)))
    return [
        *(
            Dot(),
            Distance(),
            Manhattan(),
            Euclidean(),
            Cosine(),
            Unified(torch.ones(DIM)),
            tilted,
            Adaptive(DIM, sort=False),
        ),
        *(Adaptive(DIM, patterns=4), Likelihood(DIM, 2), Regimes([Likelihood(DIM), Likelihood(DIM)])),
        *(Correlated(DIM, 2), Correlated(DIM, 1, tails=4.0)),
    ]


@pytest.mark.parametrize("similarity", similarities(), ids=lambda s: s.name)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("budget", [2**20, None])
def test_many_sets_at_once(similarity, masked, learning, budget, monkeypatch):
    generator = torch.Generator().manual_seed(1)
    similarity = similarity.double()
    patterns = torch.randn(2, 3, 4, DIM, generator=generator, dtype=torch.float64)
    queries = torch.randn(2, 3, 6, DIM, generator=generator, dtype=torch.float64)
    observed = torch.rand(queries.shape, generator=generator) < 0.7 if masked else None
    if budget:
        # So small that not even one table fits.
        monkeypatch.setattr(ahop._blocks, "block_budget", lambda like: 8 * 50)
    with torch.set_grad_enabled(learning):
        together = similarity(patterns, queries, observed)
        for place in [(0, 0), (1, 2)]:
            alone = similarity(patterns[place], queries[place], None if observed is None else observed[place])
            torch.testing.assert_close(together[place], alone)
    assert together.shape == (2, 3, 6, 4)
