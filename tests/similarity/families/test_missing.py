"""Values that are missing, columns that have units of their own, and pairs that are known of some queries alone."""

import pytest
import torch

import ahop
from ahop import BayesianHopfield
from ahop.similarity import Likelihood

UNITS = torch.tensor([1e3, 1.0, 0.01, 50.0, 5.0, 200.0, 0.5, 10.0])


def table(missing=0.05, count=300, asked=400, seed=0):
    """Patterns and queries whose columns have units and noise of their own; where values were observed; origins."""
    draw = torch.Generator().manual_seed(seed)
    patterns, origins = torch.randn(count, 8, generator=draw), torch.randint(count, (asked,), generator=draw)
    noise, drift = 0.1 + 0.4 * torch.rand(8, generator=draw), 0.3 * torch.randn(8, generator=draw)
    queries = patterns[origins] + drift + noise * torch.randn(asked, 8, generator=draw)
    return patterns * UNITS, queries * UNITS, torch.rand(asked, 8, generator=draw) >= missing, origins


def right(memory, queries, observed, origins):
    return float((memory.recall(queries, observed=observed).indices[:, 0] == origins).double().mean())


def nearest(patterns, queries, observed, origins):
    """The simplest thing: what is missing at the mean, both sides standardised."""
    mean = (queries * observed).sum(0) / observed.sum(0)
    rows = torch.where(observed, queries, mean)
    stored, asked = ((side - side.mean(0)) / side.std(0) for side in (patterns, rows))
    return float((torch.cdist(asked, stored).argmin(1) == origins).double().mean())


@pytest.mark.slow
@pytest.mark.parametrize("labels", [40, 200, 0])
def test_around_missing_values_it_is_not_behind_the_nearest_standardised_row(labels):
    patterns, queries, observed, origins = table()
    known = torch.where(torch.arange(400) < labels, origins, -1)
    memory = BayesianHopfield(patterns).fit(
        queries, known if labels else None, observed=observed, standardise=True, verbose=False
    )
    left = slice(labels, None)
    share = right(memory, queries[left], observed[left], origins[left])
    assert share > nearest(patterns, queries[left], observed[left], origins[left]) - 0.02
    assert memory.report.found and memory.report.labels == labels
    low, high = memory.report.interval if labels else memory.report.usual_range
    assert low - 0.05 < share < high + 0.05


@pytest.mark.slow
def test_where_all_origins_are_known_cross_validation_judges_around_missing_values():
    patterns, queries, observed, origins = table(missing=0.2, asked=120)
    report = BayesianHopfield(patterns).fit(queries, origins, observed=observed, verbose=False).report
    assert report.labels == 120 and 0 < report.accuracy < 1 and len(report.tried) > 1


@pytest.mark.slow
def test_what_is_learned_in_units_of_each_column_does_not_depend_on_them():
    patterns, queries, observed, origins = table(count=60, asked=40)
    given = {"observed": observed, "standardise": True, "verbose": False}
    one = BayesianHopfield(patterns).fit(queries, origins, **given)
    other = BayesianHopfield(patterns / UNITS).fit(queries / UNITS, origins, **given)
    asked = one.recall(queries, observed=observed), other.recall(queries / UNITS, observed=observed)
    torch.testing.assert_close(*(found.probabilities for found in asked), atol=1e-3, rtol=0)
    assert "each column in a unit of its own" in one.similarity.describe()


def test_it_is_saved_with_the_units_of_its_columns(tmp_path):
    patterns, queries, observed, origins = table(count=60, asked=40)
    memory = BayesianHopfield(patterns).fit(queries, origins, observed=observed, standardise=True, verbose=False)
    memory.save(tmp_path / "memory")
    again = ahop.load(tmp_path / "memory")
    torch.testing.assert_close(again.scores(queries, observed=observed), memory.scores(queries, observed=observed))


def test_columns_of_two_spaces_have_no_unit_in_common():
    patterns, queries, _, origins = table(asked=60)
    with pytest.raises(ValueError, match="standardise must be False: columns of 7 and 8 values"):
        BayesianHopfield(patterns).fit(queries[:, :7], origins, standardise=True)


@pytest.mark.slow
def test_pairs_of_some_queries_teach_no_less_than_by_themselves():
    """The others may ask for a family that explains them, and finds fewer of the pairs."""
    draw = torch.Generator().manual_seed(1)
    patterns, origins = (0.8 * torch.randn(800, 10, generator=draw)).exp(), torch.randint(800, (900,), generator=draw)
    queries = patterns[origins] * (0.3 * torch.randn(900, 10, generator=draw)).exp()
    known = torch.where(torch.arange(900) < 150, origins, -1)
    shares = []
    for asked, told in ((queries, known), (queries[:150], origins[:150])):
        memory = BayesianHopfield(patterns).fit(asked, told, verbose=False)
        shares.append(right(memory, queries[150:], None, origins[150:]))
    assert shares[0] > shares[1] - 0.03


def test_one_value_in_a_hundred_is_lost_and_several_are():
    likelihood = Likelihood(dim=3)
    for lost, told in ((0.01, "Of 100 values, 1 is lost"), (0.02, "Of 100 values, 2 are lost")):
        torch.nn.init.constant_(likelihood.mask_logits, torch.logit(torch.tensor(lost)).item())
        assert likelihood.describe().startswith(told)
