import math

import numpy as np
import pytest
import torch
from scipy.linalg import inv, sqrtm

import ahop
from ahop import GaussianHopfield
from ahop.separation import Softmax

BIAS, NOISE = 0.2, 0.15


def world(seed, patterns=60, dim=8, queries=300):
    """Means, unequal spreads, queries and their origins."""
    draw = torch.Generator().manual_seed(seed)
    means = torch.rand(patterns, dim, generator=draw)
    spread = 0.25 * torch.randn(patterns, dim, generator=draw).exp()
    origins = torch.randint(patterns, (queries,), generator=draw)
    noise = torch.randn(2, queries, dim, generator=draw)
    return means, spread, means[origins] + spread[origins] * noise[0] + NOISE * noise[1] + BIAS, origins


def knowing(means, spread, **options):
    """The Oracle: a memory that knows bias and noise."""
    memory = GaussianHopfield(means, spread=spread, **options)
    memory.similarity.bias.data.fill_(BIAS)
    memory.similarity.log_noise.data.fill_(math.log(NOISE))
    return memory


def right(memory, queries, origins):
    return memory.recall(queries).indices[:, 0] == origins


def test_answers_are_those_of_bayes():
    means, spread, queries, _ = world(0)
    prior = torch.arange(1.0, 61.0)
    x, mu, sd = (part.double().numpy() for part in (queries, means, spread))
    variance = sd**2 + NOISE**2
    log = -0.5 * ((x[:, None] - mu - BIAS) ** 2 / variance + np.log(2 * np.pi * variance)).sum(-1)
    memory = knowing(means.double(), spread, prior=prior)
    np.testing.assert_allclose(memory.scores(queries), log + (prior / prior.sum()).log().numpy(), rtol=1e-6)
    joint = np.exp(log - log.max(1, keepdims=True)) * prior.numpy()
    found = memory.recall(queries, 3)
    posterior = joint / joint.sum(1, keepdims=True)
    assert (found.indices.numpy() == (-posterior).argsort(1)[:, :3]).all()
    np.testing.assert_allclose(found.probabilities, -np.sort(-posterior, 1)[:, :3], rtol=1e-5)


def test_a_spread_of_zero_is_none():
    means, _, queries, origins = world(0)
    plain, zero = (GaussianHopfield(means, spread=one).fit(queries, origins) for one in (None, torch.zeros(60, 8)))
    assert torch.equal(plain.scores(queries), zero.scores(queries))
    assert torch.equal(plain.energy(queries), zero.energy(queries))
    assert torch.equal(plain.similarity.noise, zero.similarity.noise)


@pytest.mark.parametrize("labelled", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_who_knows_the_spread_is_right_more_often_and_as_sure_as_right(labelled):
    ahead, sure, hits, ideal = [], [], [], []
    for seed in range(3):
        means, spread, queries, origins = world(seed)
        knows = GaussianHopfield(means, spread=spread).fit(queries[:150], origins[:150] if labelled else None)
        plain = GaussianHopfield(means).fit(queries[:150], origins[:150])
        asked = queries[150:], origins[150:]
        hits.append(right(knows, *asked))
        ahead.append(hits[-1].float() - right(plain, *asked).float())
        ideal.append(right(knowing(means, spread), *asked))
        sure.append(knows.recall(asked[0]).probabilities[:, 0])
    hits, ahead, sure, ideal = (torch.cat(one).float() for one in (hits, ahead, sure, ideal))
    error = float(hits.std()) / math.sqrt(len(hits))
    assert ahead.mean() > 5 * ahead.std() / math.sqrt(len(ahead))
    assert abs(sure.mean() - hits.mean()) < 3 * error
    assert ideal.mean() - hits.mean() < 2 * error


@pytest.mark.parametrize("known", ["all", pytest.param("some", marks=pytest.mark.slow), "none"])
def test_bias_and_noise_are_found_beside_the_spread(known):
    means, spread, queries, origins = world(1, queries=600)
    if known == "some":
        origins = torch.where(torch.arange(600) < 100, origins, -1)
    memory = GaussianHopfield(means, spread=spread).fit(queries, None if known == "none" else origins)
    assert memory.report.converged
    torch.testing.assert_close(memory.similarity.bias.mean().item(), BIAS, atol=0.02, rtol=0)
    torch.testing.assert_close(memory.similarity.noise.mean().item(), NOISE, atol=0.03, rtol=0)


def unrelated(spread):
    draw = torch.Generator().manual_seed(0)
    means, queries = torch.randn(60, 8, generator=draw), torch.randn(100, 8, generator=draw)
    return GaussianHopfield(means, spread=0.5 * torch.rand(60, 8, generator=draw) if spread else None), queries


@pytest.mark.parametrize("spread", [False, True])
def test_where_nothing_is_related_nothing_is_found_and_probabilities_are_the_prior(spread, tmp_path):
    memory, queries = unrelated(spread)
    with pytest.warns(UserWarning, match="the 100 queries fit these patterns no better than others like them"):
        memory.fit(queries)
    assert not memory.report.found and memory.report.confidence == 1 / 60
    assert "nothing was found that is better than chance: probabilities are the prior" in str(memory.report)
    memory.save(tmp_path)
    for one in (memory, ahop.load(tmp_path)):
        found = one.recall(queries, 2)
        assert not found.verified
        torch.testing.assert_close(found.probabilities, torch.full((100, 2), 1 / 60))
        among = one.recall(queries, prior=(torch.arange(60) < 4).expand(100, 60))
        torch.testing.assert_close(among.probabilities, torch.full((100, 1), 1 / 4))


def test_labels_judge_what_has_not_learned_from_them():
    """Labels that nothing explains find nothing; those of queries that come from the patterns verify what is found."""
    memory, queries = unrelated(spread=False)
    with pytest.warns(UserWarning, match="no more of the 100 known origins were found than by chance"):
        memory.fit(queries, torch.arange(100) % 60)
    assert not memory.report.found and not (memory.recall(queries).probabilities > 1 / 59).any()
    means, spread, queries, origins = world(3)
    memory = GaussianHopfield(means, spread=spread).fit(queries[:150], origins[:150])
    low, high = memory.report.interval
    share = float(right(memory, queries[150:], origins[150:]).double().mean())
    assert low - 0.05 < share < high + 0.05 and not memory.recall(queries).verified
    assert "90 % confidence interval" in str(memory.report) and "held out" in str(memory.report)


def test_what_is_found_without_labels_says_that_it_rests_on_the_model_alone():
    means, spread, queries, _ = world(3)
    memory = GaussianHopfield(means, spread=spread).fit(queries)
    sure = float(memory.recall(queries).probabilities.mean())
    assert memory.report.found and not memory.recall(queries).verified
    assert memory.report.confidence == pytest.approx(sure, rel=1e-3)
    assert f"{100 * sure:.0f} % of first choices, if this model is right; not checked" in str(memory.report)


@pytest.mark.parametrize("count", [8, 12])
def test_a_few_pairs_that_share_a_bias_are_believed(count):
    draw = torch.Generator().manual_seed(count)
    patterns = torch.randn(50, 8, generator=draw)
    queries = patterns[:count] + 2 + 0.3 * torch.randn(count, 8, generator=draw)
    memory = GaussianHopfield(patterns).fit(queries, torch.arange(count))
    assert memory.report.found and memory.report.accuracy > 0.8
    assert float(memory.recall(patterns + 2).probabilities.mean()) > 0.8


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_few_queries_make_nothing_worse_and_say_nothing_of_how_right_it_is(count):
    draw = torch.Generator().manual_seed(count)
    patterns = torch.randn(10, 2, generator=draw)
    origins = torch.randint(10, (count + 300,), generator=draw)
    queries = patterns[origins] + 0.15 * torch.randn(count + 300, 2, generator=draw)
    for labels in (None, origins[:count]):
        memory = GaussianHopfield(patterns)
        before = right(memory, queries[count:], origins[count:]).double().mean()
        memory.fit(queries[:count], labels)
        after = right(memory, queries[count:], origins[count:]).double().mean()
        assert after > before - 0.05 and math.isnan(memory.report.confidence)


def test_a_common_offset_costs_nothing_and_a_surprise_is_not_infinite():
    means, spread, queries, origins = (part.double() if part.is_floating_point() else part for part in world(1))
    near = GaussianHopfield(means, spread=spread).fit(queries, origins)
    far = GaussianHopfield(means + 1e6, spread=spread, prior=torch.arange(60.0)).fit(queries + 1e6, origins)
    assert 0 in origins
    torch.testing.assert_close(far.similarity.noise, near.similarity.noise, atol=1e-6, rtol=0)
    torch.testing.assert_close(far.similarity.bias, near.similarity.bias, atol=1e-6, rtol=0)


def test_it_learns_from_what_was_observed_alone():
    means, spread, queries, origins = world(2)
    hidden = queries.clone()
    hidden[torch.rand(hidden.shape, generator=torch.Generator().manual_seed(0)) < 0.3] = torch.nan
    memory = GaussianHopfield(means, spread=spread).fit(hidden, origins, observed="not-nan")
    torch.testing.assert_close(memory.similarity.bias.mean().item(), BIAS, atol=0.03, rtol=0)
    filled = torch.where(hidden.isnan(), 1e3, hidden)
    again = GaussianHopfield(means, spread=spread).fit(filled, origins, observed=~hidden.isnan())
    assert torch.equal(again.similarity.noise, memory.similarity.noise)


def test_the_spread_follows_what_is_added_removed_and_left_out():
    means, spread, queries, _ = world(0)
    whole = knowing(means, spread)
    grown = knowing(means[:40], spread[:40]).add(means[40:], spread=spread[40:])
    assert torch.equal(grown.scores(queries), whole.scores(queries))
    kept = [index for index in range(60) if index % 3]
    fewer = whole.recall(queries, prior=(torch.arange(60) % 3 > 0).expand(300, 60))
    torch.testing.assert_close(fewer.probabilities, grown.remove(range(0, 60, 3)).recall(queries).probabilities)
    assert torch.equal(grown.spread, spread[kept])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "spread must be given for the new patterns: this memory has spread"),
        ({"spread": torch.ones(1, 8)}, r"spread must have one row per pattern, 2; got shape \(1, 8\)"),
        ({"spread": torch.ones(2, 8), "values": torch.ones(2, 1)}, "values must not be given"),
    ],
)
def test_after_an_error_everything_is_as_it_was(more, told):
    means, spread, queries, _ = world(0)
    memory = knowing(means, spread)
    before = memory.scores(queries)
    with pytest.raises(ValueError, match=told):
        memory.add(torch.ones(2, 8), **more)
    assert torch.equal(memory.scores(queries), before)
    with pytest.raises(ValueError, match="spread must not be given: this memory was made without spread"):
        GaussianHopfield(means).add(means, spread=spread)


@pytest.mark.parametrize(
    ("spread", "told"),
    [
        (torch.ones(59, 8), "spread must have one row per pattern, 60"),
        (torch.ones(60, 7), "spread must have 8 values each, like the patterns"),
        (-torch.ones(60, 8), "spread must be standard deviations, not negative; got -1"),
        (torch.full((60, 8), torch.inf), "spread must be finite"),
    ],
)
def test_a_spread_that_makes_no_sense_is_refused(spread, told):
    with pytest.raises(ValueError, match=told):
        GaussianHopfield(world(0)[0], spread=spread)


def replicates(means, spread, times, seed):
    draw = torch.Generator().manual_seed(seed)
    groups = torch.arange(len(means)).repeat(times)[torch.randperm(times * len(means), generator=draw)]
    return means[groups] + spread[groups] * torch.randn(len(groups), means.shape[1], generator=draw), groups


def test_replicates_say_how_far_items_scatter():
    means, spread, queries, origins = world(0)
    rows, groups = replicates(means, spread, 5, seed=5)
    memory = GaussianHopfield.from_replicates(rows.numpy(), groups.numpy())
    torch.testing.assert_close(memory.patterns[7], rows[groups == 7].mean(0))
    plain, knows = (GaussianHopfield(memory.patterns, spread=one) for one in (None, memory.spread))
    hits = [
        right(one.fit(queries[:150], origins[:150]), queries[150:], origins[150:]).float() for one in (knows, plain)
    ]
    ahead = hits[0] - hits[1]
    assert ahead.mean() > 3 * ahead.std() / math.sqrt(len(ahead))


def test_the_mean_of_few_measurements_is_uncertain_itself():
    means, spread = torch.zeros(400, 8), torch.ones(400, 8)
    memory = GaussianHopfield.from_replicates(*replicates(means, spread, 2, seed=0))
    further, groups = replicates(means, spread, 10, seed=1)
    gaps = (further - memory.patterns[groups]).square().mean()
    assert float(memory.spread.square().mean() / gaps) == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ([0, 1, 2], "groups must hold at least one item with two rows"),
        ([0, 0], r"groups must be integers, one for each of the 3 rows; got torch.int64 of shape \(2,\)"),
        ([0.0, 0.0, 1.0], "groups must be integers"),
    ],
)
def test_replicates_of_nothing_are_refused(groups, told):
    with pytest.raises(ValueError, match=told):
        GaussianHopfield.from_replicates(torch.rand(3, 2), groups)


def test_it_is_known_by_its_name_and_kept_in_a_file(tmp_path):
    means, spread, queries, origins = world(0)
    memory = ahop.create("g-hop", means, spread=spread).fit(queries, origins)
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(queries), memory.scores(queries))


def squared_wasserstein(one, other):
    """Between two Gaussians of any covariance, each a mean and that (Bures)."""
    root = sqrtm(one[1])
    return ((one[0] - other[0]) ** 2).sum() + np.trace(one[1] + other[1] - 2 * sqrtm(root @ other[1] @ root))


def transport(start, end):
    """The map that moves one centred Gaussian to another, by their covariances."""
    root = sqrtm(start)
    return inv(root) @ sqrtm(root @ end @ root) @ inv(root)


def test_means_beside_deviations_are_the_published_memory_of_gaussians_without_correlations():
    draw = np.random.default_rng(0)
    means, spread = draw.normal(size=(6, 3)), np.exp(0.5 * draw.normal(size=(6, 3)))
    mean, deviation = draw.normal(size=3), np.exp(0.5 * draw.normal(size=3))
    memory = ahop.AssociativeMemory(np.concatenate([means, spread], 1), "distance", Softmax(1.5))
    query, beta = np.concatenate([mean, deviation]), float(memory.separation.beta)

    stored = [(centre, np.diag(one**2)) for centre, one in zip(means, spread, strict=True)]
    far = np.array([squared_wasserstein(one, (mean, np.diag(deviation**2))) for one in stored])
    np.testing.assert_allclose(memory.scores(query), -far, rtol=1e-10)
    np.testing.assert_allclose(memory.energy(query), -np.log(np.exp(-beta * far).sum()) / beta, rtol=1e-10)

    weights = np.exp(-beta * far) / np.exp(-beta * far).sum()
    move = sum(weight * transport(np.diag(deviation**2), one) for weight, (_, one) in zip(weights, stored, strict=True))
    moved = memory.retrieve(query).numpy()
    np.testing.assert_allclose(moved[:3], weights @ means, rtol=1e-10)
    np.testing.assert_allclose(np.diag(moved[3:] ** 2), move @ np.diag(deviation**2) @ move, rtol=1e-10, atol=1e-12)

    # At rest, the barycentre of the patterns by weights that are its own.
    rest = memory.retrieve(query, steps=None, tolerance=1e-12)
    covariance, weights = np.diag(rest[3:].numpy() ** 2), memory.weights(rest).numpy()
    root = sqrtm(covariance)
    consistent = sum(weight * sqrtm(root @ one @ root) for weight, (_, one) in zip(weights, stored, strict=True))
    np.testing.assert_allclose(consistent, covariance, rtol=1e-9, atol=1e-12)
