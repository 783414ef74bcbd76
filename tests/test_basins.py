"""States that fill a box roll into the wells of an energy, each into that of its basin."""

import pytest
import torch

import ahop
from ahop.energy import basins, descend

SIDE = torch.linspace(-1.5, 1.5, 24)
STARTS = torch.cartesian_prod(SIDE, SIDE)
CORNERS = torch.tensor([[0.9, 0.9], [-0.9, -0.9]])


def test_every_state_is_in_the_basin_of_the_well_that_it_rolls_into():
    patterns = torch.cat([CORNERS, torch.tensor([[0.9, -0.9]])])
    memory = ahop.AssociativeMemory(patterns, "distance", ahop.separation.Softmax(8.0))
    wells, found = basins(memory, STARTS)
    assert len(wells) == 3 and torch.cdist(memory.patterns, wells).amin(1).max() < 0.05
    ends = descend(memory, STARTS, 300).to(wells)
    assert torch.cdist(ends, wells).argmin(1).equal(found)
    assert bool((memory.energy(wells).diff() >= -1e-6).all())


def test_states_that_stay_on_flat_ground_are_in_no_basin():
    memory = ahop.AssociativeMemory(CORNERS, "distance", ahop.separation.Epanechnikov(8.0))
    wells, found = basins(memory, STARTS)
    assert len(wells) == 2
    reached = torch.cdist(STARTS, CORNERS).amin(1) < 0.5
    assert found[~reached].eq(-1).all() and found[torch.cdist(STARTS, CORNERS).amin(1) < 0.4].ge(0).all()


def test_where_there_is_no_lowest_point_everything_rolls_away():
    wells, found = basins(ahop.AssociativeMemory(CORNERS, "dot", "identity"), STARTS)
    assert not len(wells) and found.eq(-1).all()


def test_no_more_wells_are_looked_for_than_are_wanted():
    memory = ahop.AssociativeMemory(CORNERS, "distance", ahop.separation.Softmax(8.0))
    assert len(basins(memory, STARTS, most=1)[0]) == 1


@pytest.mark.parametrize("side", [15, 21, 41])
def test_states_on_a_ridge_make_no_well(side):
    line = torch.linspace(-1.5, 1.5, side)
    memory = ahop.ModernHopfield([[-1.0, 0.0], [1.0, 0.0]], beta=8.0)
    wells, found = basins(memory, torch.cartesian_prod(line, line))
    assert len(wells) == 2 and set(found.tolist()) <= {-1, 0, 1}


def test_states_may_be_whole_numbers_and_slopes_steep():
    line = torch.arange(-3, 4)
    assert len(basins(ahop.ModernHopfield([[-1.0, 0.0], [1.0, 0.0]], beta=8.0), torch.cartesian_prod(line, line))[0])
    dense = ahop.DenseHopfield(torch.tensor([[1.0, -1.0], [1.0, 1.0]]), k=39)
    assert basins(dense, STARTS)[1].shape == (len(STARTS),)
