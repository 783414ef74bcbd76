import pytest
import torch

from ahop_paper.populations import POPULATIONS, SPACES, corrupted, unrelated, unrelated_spaces


@pytest.mark.parametrize("kind", POPULATIONS)
def test_queries_of_an_unrelated_set_have_no_origin(kind):
    world = unrelated(kind, 3)
    assert 50 <= len(world.patterns) <= 2000 and 50 <= len(world.queries) <= 1000
    assert world.patterns.isfinite().all() and world.queries.isfinite().all()
    assert (world.origins == -1).all()
    assert unrelated(kind, 3).queries.equal(world.queries) and not unrelated(kind, 4).queries.equal(world.queries)


@pytest.mark.parametrize("kind", SPACES)
def test_unrelated_spaces_differ_in_width_or_have_rows_enough_for_a_rotation(kind):
    small, large = (unrelated_spaces(kind, seed) for seed in (2, 3))
    assert small.patterns.shape[1] != small.queries.shape[1] and large.patterns.shape[1] == large.queries.shape[1]
    for world, least in ((small, 200), (large, 1500)):
        assert min(len(world.patterns), len(world.queries)) >= least and (world.origins == -1).all()
    assert unrelated_spaces(kind, 2).queries.equal(small.queries)


def test_a_number_says_which_corruption_and_a_seed_draws_it():
    one, again, other = corrupted("normal", 1, 0, 50), corrupted("normal", 1, 1, 50), corrupted("normal", 2, 0, 50)
    assert one.patterns.shape == again.patterns.shape != other.patterns.shape
    assert not torch.equal(one.patterns, again.patterns)
    assert len(one.asked) == len(one.wanted) == 50
    near = (one.queries - one.patterns[one.origins]).square().mean()
    assert near < (one.queries - one.patterns[one.origins.roll(1)]).square().mean()
