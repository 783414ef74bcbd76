import torch

from ahop.playground import footprint, pictures
from ahop.playground.damage import Sliders


def test_a_footprint_ends_in_the_distance_and_grows_by_the_sorted_terms(few):
    found = footprint.compare(few, 1, 4, Sliders(noise=0.3))
    apart = (few.patterns[[1, 4]] - found.query).square().sum(1)
    torch.testing.assert_close(found.plain, -apart)
    torch.testing.assert_close(found.sums.diff(dim=1), found.ordered[:, 1:], rtol=1e-4, atol=1e-5)
    assert bool((found.ordered.diff(dim=1) <= 0).all())


def test_scores_are_the_terms_weighed_by_rank(few):
    found = footprint.compare(few, 1, 4, Sliders(noise=0.3))
    torch.testing.assert_close(found.learned, (found.ordered * found.weights).sum(1))
    assert found.learned[0] > found.learned[1]


def test_where_half_is_hidden_distance_fails_and_ranks_do_not():
    """What the page begins with."""
    from ahop.playground.tabs.footprint import FIRST

    found = footprint.compare(pictures.SETS[FIRST.kind](), FIRST.one, FIRST.other, FIRST.sliders)
    assert found.plain[0] < found.plain[1] and found.learned[0] > found.learned[1]
