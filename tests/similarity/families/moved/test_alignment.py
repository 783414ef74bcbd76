"""Two clouds of points, brought together by a rotation."""

import pytest
import torch

from ahop.similarity.families.moved.alignment import align, lands, nearest_rotation


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_queries_land_on_patterns_as_they_are_or_not(unit):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(2000, 16, generator=generator)
    queries = patterns + 0.3 * torch.randn(2000, 16, generator=generator) + 5
    rotation = nearest_rotation(torch.randn(16, 16, generator=generator))
    assert lands(patterns, unit * queries)
    # Turned, they lie somewhere among the patterns, and near to none.
    assert not lands(patterns, unit * queries @ rotation.mT)
    # And so do points that have nothing to do with them.
    assert not lands(patterns, unit * torch.randn(2000, 16, generator=generator))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_groups_that_a_rotation_can_bring_to_a_pattern_each_are_not_found(seed):
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(600, 19, generator=generator)
    group = torch.randint(8, (500,), generator=generator)
    queries = 3 * torch.randn(8, 15, generator=generator)[group] + torch.randn(500, 15, generator=generator)
    assert not align(patterns, queries, torch.full((500,), -1), seed).found
