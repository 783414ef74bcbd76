"""What is better by more than chance, and how many witnesses answers are worth."""

import pytest
import torch
from scipy.stats import ttest_1samp

from ahop.learning.chance import (
    errors_above_zero,
    few_more_than_chance,
    independent,
    mean_by_group,
    more_than_chance,
    standard_error,
)
from ahop.learning.report import clopper_pearson


def gains(count, seed=0):
    return 0.3 + torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_witnesses_that_say_the_same_count_once():
    own = gains(30)
    copied, groups = own.repeat_interleave(4), torch.arange(30).repeat_interleave(4)
    assert standard_error(copied, groups) == pytest.approx(standard_error(own))
    assert standard_error(copied) == pytest.approx(standard_error(own) / 2)
    assert standard_error(own, torch.randperm(30)) == pytest.approx(standard_error(own))


def test_gains_are_no_chance_in_any_unit_and_shuffled():
    own = gains(200)
    for same in (own, 1e-9 * own, 1e9 * own, own.flip(0)):
        assert more_than_chance(same, errors=3.0) and not more_than_chance(same, errors=6.0)
        assert not more_than_chance(-same)
    assert more_than_chance(torch.full((4,), 0.01)) and not more_than_chance(torch.full((4,), 0.01), least=0.02)


def test_nothing_is_gained_where_all_is_level():
    level = torch.zeros(10)
    assert not more_than_chance(level) and not few_more_than_chance(level, errors=0.5)
    assert not few_more_than_chance(torch.ones(1), errors=2.0)


def test_a_few_are_judged_by_students_test():
    for seed in range(20):
        own = gains(8, seed)
        # Two standard errors of a normal mean.
        chance = ttest_1samp(own.numpy(), 0.0, alternative="greater").pvalue
        assert few_more_than_chance(own, errors=2.0) == (chance < 0.02275)


@pytest.mark.slow
def test_an_interval_holds_where_queries_of_one_origin_are_right_or_wrong_together():
    """Ten queries each of forty origins: counted one by one, they would promise far more than they know."""
    draw, holds, naive = torch.Generator().manual_seed(0), 0, 0
    origins = torch.arange(40).repeat_interleave(10)
    for _ in range(400):
        right = (torch.rand(40, generator=draw) < 0.7)[origins] ^ (torch.rand(400, generator=draw) < 0.05)
        truth, share = 0.7 * 0.95 + 0.3 * 0.05, float(right.double().mean())
        for count in (independent(right, origins), 400):
            low, high = clopper_pearson(round(share * count), count)
            if count == 400:
                naive += low <= truth <= high
            else:
                holds += low <= truth <= high
    assert holds > 0.88 * 400 and naive < 0.6 * 400


def test_labels_count_once_each_where_origins_differ():
    right = torch.tensor([True, False, True, True])
    assert independent(right, torch.arange(4)) == 4
    # Nothing tells whether queries of one origin would differ.
    assert independent(torch.ones(6, dtype=torch.bool), torch.tensor([0, 0, 0, 1, 1, 1])) == 2


def test_errors_above_zero_are_those_of_students_test():
    own = gains(8)
    assert errors_above_zero(own) == pytest.approx(ttest_1samp(own.numpy(), 0.0).statistic)


def test_each_group_has_its_own_mean_of_rows_as_of_numbers():
    rows, groups = torch.arange(8.0).reshape(4, 2), torch.tensor([5, 3, 5, 3])
    assert mean_by_group(rows, groups).equal(torch.stack([rows[1::2].mean(0), rows[::2].mean(0)]))
    assert mean_by_group(rows[:, 1], groups).equal(mean_by_group(rows, groups)[:, 1])
