import math

import pytest
import torch

from ahop.similarity import Bent, Correlated, Density, Floor, Gain, Likelihood, Moved, Nearest, Regimes, Transformed
from ahop.similarity.families.posterior import Prior, expected

DIM = 6


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


PATTERNS = 5 + noise(400, DIM).cumsum(1)
PRIOR = Prior.of(PATTERNS)
# Samples that are not stored, but like those that are.
SAMPLES = PRIOR.mean + noise(1000, DIM, seed=1) @ torch.linalg.cholesky(PRIOR.covariance).mT


def filled(model, **values):
    """A likelihood of these parameters, in float64."""
    model = model.double()
    with torch.no_grad():
        for name, value in values.items():
            model.get_parameter(name).copy_(torch.as_tensor(value, dtype=torch.float64))
    return model


def hidden_causes(sigma=0.3):
    return filled(
        Correlated(DIM, 1, tails=math.inf),
        gain=0.8,
        bias=torch.arange(DIM),
        loading=torch.full((DIM, 1), 2.0 * (sigma > 0.1)),
        log_psi=torch.full((DIM,), 2 * math.log(sigma)),
    )


def map_between_spaces(sigma=0.3):
    return filled(
        Moved(DIM, DIM + 2),
        matrix=noise(DIM + 2, DIM, seed=2),
        bias=torch.arange(DIM + 2),
        log_factor=math.log(sigma) * torch.eye(DIM + 2),
    )


def single_dimensions(sigma=0.3, lost=1e-9, **options):
    return filled(
        Likelihood(DIM, low=-10, high=20, **options),
        bias=torch.arange(DIM),
        gain=[0.8] * options.get("components", 1),
        log_sigma=math.log(sigma) + torch.arange(options.get("components", 1)),
        mask_logits=torch.full((DIM,), math.log(lost / (1 - lost))),
    )


def standardised(sigma=0.3, metric="distance"):
    return filled(
        Nearest(DIM, metric),
        query_centre=torch.arange(DIM),
        log_query_scale=torch.full((DIM,), math.log(0.8)),
        log_beta=-math.log(2 * sigma**2),
    )


def random_gain(sigma=0.3):
    return filled(Gain(DIM, zero=-20.0), bias=torch.full((DIM,), 0.2), log_sigma=torch.full((DIM,), math.log(sigma)))


def bent(sigma=0.3):
    model = Bent(DIM, DIM + 2).double()
    model.straight = map_between_spaces(sigma)
    return model


def drawn(model, samples, sigma=0.3):
    """Queries of a linear and normal likelihood."""
    queries = sigma * noise(len(samples), model.query_dim or DIM, seed=3)
    if isinstance(model, Moved):
        return samples @ model.matrix.mT + model.bias + queries
    if isinstance(model, Nearest):
        return (samples + queries) * 0.8 + model.query_centre
    if isinstance(model, Correlated):
        queries = queries + noise(len(samples), 1, seed=4) @ model.loading.mT
    return 0.8 * samples + model.bias + queries


MADE = {
    "hidden causes": hidden_causes,
    "a map": map_between_spaces,
    "a bent map": bent,
    "single dimensions": single_dimensions,
    "standardised": standardised,
    "a random gain": random_gain,
    "regimes": lambda sigma=0.3: Regimes([single_dimensions(sigma), single_dimensions(3 * sigma)]).double(),
    "logarithms": lambda sigma=0.3: Transformed(hidden_causes(sigma), "logarithm", low=-30.0),
    "roots": lambda sigma=0.3: Transformed(standardised(sigma), "square root", low=-30.0),
    "own scale": lambda sigma=0.3: Transformed(standardised(sigma), own_scale=True),
}
NORMAL = ["hidden causes", "a map", "single dimensions", "standardised"]


@pytest.mark.parametrize("name", NORMAL)
@torch.no_grad()
def test_what_is_left_of_a_sample_has_nothing_to_do_with_the_query(name):
    # The orthogonality principle: no linear correction of a posterior mean could be better.
    model = MADE[name]()
    queries = drawn(model, SAMPLES)
    gaps = SAMPLES - model.restored(PATTERNS, queries)
    both = torch.corrcoef(torch.cat([gaps, queries], 1).mT)[:DIM, DIM:]
    assert float(gaps.mean(0).abs().max()) < 0.1 and float(both.abs().max()) < 4 / math.sqrt(len(SAMPLES))


@pytest.mark.parametrize("name", NORMAL)
@torch.no_grad()
def test_without_noise_a_sample_that_is_not_stored_comes_back_as_it_was(name):
    model = MADE[name](1e-4)
    torch.testing.assert_close(model.restored(PATTERNS, drawn(model, SAMPLES, 0.0)), SAMPLES, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", MADE)
@torch.no_grad()
def test_units_change_nothing(name):
    model, queries = MADE[name](), noise(9, 8, seed=5)
    queries = 5 + queries[:, : model.query_dim or DIM]
    before = model.restored(PATTERNS, queries)
    assert before.shape == (9, DIM) and bool(before.isfinite().all())
    after = model.rescaled(3.0, 7.0).restored(3 * PATTERNS + 7, 3 * queries + 7)
    torch.testing.assert_close(after, 3 * before + 7, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_of_uncorrelated_values_lost_or_kept_the_mean_is_that_of_an_integral():
    model = single_dimensions(0.5, lost=0.3, components=2)
    stored = PATTERNS[torch.randperm(400, generator=torch.Generator().manual_seed(0)), :1]
    stored = torch.cat([stored, noise(400, DIM - 1)], 1)
    prior = Prior.of(stored)
    variance = prior.covariance.diagonal()
    query = prior.mean + torch.linspace(-4, 4, DIM)
    mean, left = model._by_itself(prior.mean, variance, query[None])
    values = prior.mean + variance.sqrt() * torch.linspace(-9, 9, 20001, dtype=torch.float64)[:, None]
    log_prior = -(values - prior.mean).square() / variance / 2
    weights = torch.softmax(model.terms(values, query) + log_prior, 0)
    truth = (weights * values).sum(0)
    torch.testing.assert_close(mean[0], truth, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(left[0], (weights * (values - truth).square()).sum(0), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ["hidden causes", "single dimensions", "standardised"])
@torch.no_grad()
def test_missing_values_are_inferred_from_the_others_and_their_place_holders_by_nobody(name):
    model = MADE[name](0.01)
    queries, seen = drawn(model, SAMPLES[:200], 0.0), torch.ones(200, DIM, dtype=torch.bool)
    seen[:, 2] = False
    found = model.restored(PATTERNS, queries.masked_fill(~seen, 0.0), seen)
    torch.testing.assert_close(found, model.restored(PATTERNS, queries.masked_fill(~seen, 99.0), seen))
    # Of a random walk, a step that was not seen lies between its neighbours.
    error, spread = (found - SAMPLES[:200])[:, 2].std(), SAMPLES[:200, 2].std()
    assert float(error) < 0.7 * float(spread)


@torch.no_grad()
def test_ridge_regression_leads_where_it_leads():
    model = filled(Nearest(DIM, "cosine", 3, mapped=True), matrix=noise(DIM, 3, seed=6), pattern_centre=torch.ones(DIM))
    queries = noise(5, 3, seed=7)
    torch.testing.assert_close(model.restored(PATTERNS, queries), 1 + queries @ model.matrix.mT)


@torch.no_grad()
def test_slopes_come_back_as_the_curves_that_stored_ones_make_likely():
    places = torch.linspace(0, 3, 40, dtype=torch.float64)
    curves = noise(300, 3) @ torch.stack([places, places.sin(), (2 * places).cos()])
    model = Transformed(filled(Nearest(40), log_beta=8.0), shape=(40,), derivative=1, window=5)
    samples = noise(50, 3, seed=8) @ torch.stack([places, places.sin(), (2 * places).cos()])
    # A baseline that slopes do not see.
    found = model.restored(curves, samples + 9)
    assert float((found - samples).std()) < 0.1 * float(samples.std())


def test_queries_of_one_precision_share_a_factorisation_and_are_restored_as_each_would_be_alone(monkeypatch):
    seen = torch.tensor([[1.0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]], dtype=torch.float64)
    precision = 2 * seen[torch.arange(30) * 7 % 3]
    gaps, moments = noise(30, DIM, seed=9), (PRIOR.mean, PRIOR.covariance, PRIOR.covariance)
    alone = torch.cat([expected(*moments, *row) for row in zip(precision, gaps[:, None], strict=True)])
    factorised, cholesky = [], torch.linalg.cholesky
    monkeypatch.setattr(torch.linalg, "cholesky", lambda inner: factorised.append(inner) or cholesky(inner))
    torch.testing.assert_close(expected(*moments, precision, gaps), alone)
    assert len(factorised) == 3
    assert expected(*moments, precision[:0], gaps[:0]).shape == (0, DIM)


def test_queries_of_which_nothing_is_seen_are_the_mean():
    nothing = torch.zeros(3, DIM, dtype=torch.float64)
    found = expected(PRIOR.mean, PRIOR.covariance, PRIOR.covariance, nothing, 5 + nothing)
    torch.testing.assert_close(found, PRIOR.mean.expand(3, -1))


def test_one_pattern_alone_and_columns_that_never_vary_are_no_trouble():
    alone = Prior.of(PATTERNS[:1])
    assert not alone.covariance.any()
    flat = PATTERNS.clone()
    flat[:, 3] = 4.0
    for name in ("hidden causes", "single dimensions", "standardised"):
        found = MADE[name]().restored(flat, 5 + noise(4, DIM))
        assert bool(found.isfinite().all()) and found[:, 3].tolist() == pytest.approx([4.0] * 4)


def test_a_likelihood_that_cannot_tell_what_a_query_was_is_refused_by_its_name():
    with pytest.raises(ValueError, match="queries cannot be restored: fit found 'floor', which tells how likely"):
        Floor(DIM).restored(PATTERNS, PATTERNS)
    with pytest.raises(ValueError, match="observed must be None: a map between spaces"):
        map_between_spaces().restored(PATTERNS, noise(2, DIM + 2), torch.zeros(2, DIM + 2, dtype=torch.bool))
    assert Density.restored is not Likelihood.restored
