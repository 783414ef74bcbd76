import pytest
import torch

from ahop.memories.replicates import moderated


def squares(spread, times, seed=0):
    rows = spread * torch.randn(times, *spread.shape, generator=torch.Generator().manual_seed(seed)).double()
    return (rows - rows.mean(0)).square().sum(0), torch.full((len(spread), 1), times - 1.0)


def test_items_that_scatter_alike_share_one_variance():
    sums, free = squares(torch.full((300, 3), 2.0), 4)
    found = moderated(sums, free)
    assert float(found.log().std()) < 0.2 * float(sums.log().std())
    torch.testing.assert_close(found.mean(0), torch.full((3,), 4.0).double(), rtol=0.1, atol=0)


@pytest.mark.parametrize("freedom", [3, 10])
def test_shrunk_variances_are_nearer_to_the_truth_than_own_and_than_common_ones(freedom):
    rows = torch.randn(freedom, 300, 3, generator=torch.Generator().manual_seed(1))
    spread = rows.square().mean(0).rsqrt()
    sums, free = squares(spread, 5)

    def wrong(variances):
        return float((variances.log() - 2 * spread.log()).square().mean())

    own, common = sums / free, (sums.sum(0) / free.sum()).expand_as(sums)
    assert wrong(moderated(sums, free)) < min(wrong(own), wrong(common))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_does_not_matter(unit):
    sums, free = squares(torch.rand(50, 2, generator=torch.Generator().manual_seed(1)), 3)
    torch.testing.assert_close(moderated(unit**2 * sums, free), unit**2 * moderated(sums, free))


def test_what_was_measured_once_or_does_not_scatter_has_a_finite_variance():
    sums, free = squares(torch.rand(50, 2, generator=torch.Generator().manual_seed(1)), 3)
    free[0], sums[0], sums[1] = 0, 0, 0
    sums[:, 1] = 0
    found = moderated(sums, free)
    assert bool(found.isfinite().all() and (found >= 0).all())
    assert float(found[0, 0]) > float(found[1, 0]) > 0
