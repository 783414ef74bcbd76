"""What is held out shares nothing with what is learned from."""

import pytest
import torch
from tests.guards import apart

from ahop.learning.holdout import folds_by_origin, halves, halves_by_origin, hidden_folds

ORIGINS = torch.tensor([5, 5, 9, 2, 2, 2, 7, 9])


@pytest.mark.parametrize("most", [2, 3, 12])
def test_folds_share_no_origin(most):
    folds = folds_by_origin(ORIGINS, most, torch.Generator().manual_seed(0))
    assert folds.unique().tolist() == list(range(min(most, 4)))
    for fold in folds.unique():
        apart(set(ORIGINS[folds == fold].tolist()), set(ORIGINS[folds != fold].tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_halves_share_no_known_origin(seed):
    origins = torch.cat([ORIGINS, torch.full((20,), -1)])
    one, other = halves_by_origin(origins, seed)
    assert sorted([*one.tolist(), *other.tolist()]) == list(range(28))
    apart(set(origins[one].tolist()) - {-1}, set(origins[other].tolist()) - {-1})


@pytest.mark.parametrize("origins", [torch.full((9,), -1), torch.full((9,), 3)])
def test_halves_go_by_rows_where_there_are_no_origins_to_go_by(origins):
    for one, two in zip(halves_by_origin(origins, 1), halves(9, 1, origins.device), strict=True):
        assert one.equal(two)


def test_every_row_of_known_origin_is_hidden_once_and_with_all_of_its_origin():
    origins = torch.cat([ORIGINS, torch.tensor([-1, -2])])
    hidden = torch.stack(hidden_folds(origins, 3, seed=0))
    assert hidden.sum(0).equal((origins >= 0).long())
    for fold in hidden:
        apart(set(origins[fold].tolist()), set(origins[~fold].tolist()))
