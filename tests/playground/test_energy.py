import pytest
import torch

from ahop.playground import energy, views
from ahop.playground.energy import KINDS, PATTERNS


def near(wells, points):
    """Whether each point has a well."""
    return bool((torch.cdist(points, wells).amin(1) < 0.1).all())


def test_by_distance_every_pattern_has_a_well_and_by_dot_products_all_but_the_short_one():
    by_distance, by_product = energy.landscape("distance"), energy.landscape("m-hop")
    assert by_distance.own == len(by_distance.wells) == len(PATTERNS) and near(by_distance.wells, PATTERNS)
    assert by_product.own == 5 and torch.cdist(PATTERNS[2:3], by_product.wells).amin() > 0.5
    assert by_distance.without == by_product.without == 0


def test_a_basin_holds_what_rolls_into_its_well():
    found = energy.landscape("distance")
    side = torch.linspace(-energy.REACH, energy.REACH, energy.SIDE)
    for well, pattern in enumerate(found.wells):
        column, row = ((side - value).abs().argmin() for value in pattern)
        assert found.basins[energy.SIDE - 1 - row, column] == well


def test_without_a_lowest_point_everything_rolls_away():
    found = energy.landscape("classical")
    assert not len(found.wells) and found.without == 1 and found.own == 0


def test_a_picture_counts_its_wells_and_says_what_rolls_into_none():
    text = views.landscape("distance", "distance, softmax", energy.landscape("distance"))
    assert text.count("<circle") == text.count("<path") == 6
    assert "6 wells; 6 of 6 patterns have one of their own." in text and "rolls out" not in text
    text = views.landscape("classical", "dot product", energy.landscape("classical"))
    assert "0 wells" in text and "From 100 % of the plane" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_memory_of_the_page_has_a_landscape(name):
    found = energy.landscape(name)
    assert found.heights.isfinite().all() and int(found.basins.max()) == len(found.wells) - 1
    if name in ("distance", "epanechnikov", "g-hop", "b-hop"):
        assert found.own == 6
    if name == "ksubsets":
        sums = (PATTERNS[:, None] + PATTERNS).flatten(0, 1)
        assert near(sums, found.wells) and not found.own
