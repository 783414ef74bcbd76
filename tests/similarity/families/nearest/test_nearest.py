import math
from itertools import pairwise

import pytest
import torch

import ahop
from ahop.similarity import Cosine, Distance, Manhattan, Nearest
from ahop.similarity.codes import NoCodesError
from ahop.similarity.families import em
from ahop.similarity.families.nearest import recipes
from ahop.similarity.families.nearest.learning import _Temperature
from ahop.similarity.families.recipe import Pairs
from ahop.similarity.families.training import TrainingData

GENERATOR = torch.Generator().manual_seed(0)
PATTERNS = torch.randn(30, 5, generator=GENERATOR, dtype=torch.float64)
QUERIES = torch.randn(12, 5, generator=GENERATOR, dtype=torch.float64)
METRICS = {"distance": Distance(), "manhattan": Manhattan(), "cosine": Cosine()}


def filled(metric, **options):
    """One with all numbers drawn."""
    made = Nearest(5, metric, **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return made


@pytest.mark.parametrize("metric", METRICS)
def test_it_orders_patterns_as_its_metric_does_in_common_coordinates(metric):
    model = filled(metric)
    stored = (PATTERNS - model.pattern_centre) / model.log_pattern_scale.exp()
    asked = (QUERIES - model.query_centre) / model.log_query_scale.exp()
    plain_scores = METRICS[metric](stored, asked)
    gap = (model(PATTERNS, QUERIES) - model.log_beta.exp() * plain_scores).detach()
    assert float(gap.std(1).max()) < 1e-9


@pytest.mark.parametrize("metric", ["distance", "manhattan"])
def test_the_scores_of_the_distances_are_densities(metric):
    model = filled(metric)
    line = torch.linspace(-60, 60, 200_001, dtype=torch.float64)
    one = Nearest(1, metric).double()
    with torch.no_grad():
        one.log_beta.copy_(model.log_beta)
        one.log_query_scale.fill_(0.4)
    total = one(torch.zeros(1, 1, dtype=torch.float64), line[:, None]).exp().sum() * float(line[1] - line[0])
    assert math.isclose(float(total.detach()), 1.0, rel_tol=1e-3)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_it_has_gradients_everywhere(metric, mapped):
    model = filled(metric, mapped=mapped)
    inputs = (PATTERNS[:3].clone().requires_grad_(), QUERIES[:2].clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda *sides: model(*sides), inputs)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_other_units_change_nothing_but_the_density(metric, mapped):
    model = filled(metric, mapped=mapped)
    there = model.rescaled(7.0, -3.0)(7 * PATTERNS - 3, 7 * QUERIES - 3)
    gap = (there - model(PATTERNS, QUERIES)).detach()
    assert float(gap.std()) < 1e-9


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("metric", ["distance", "cosine"])
def test_its_codes_are_its_scores(metric, mapped):
    model = filled(metric, mapped=mapped)
    codes = model.codes(PATTERNS, 0.1)
    asked = codes.ask(QUERIES)
    table = asked.finish(asked.codes @ codes.encode_patterns(PATTERNS).mT)
    torch.testing.assert_close(table, model(PATTERNS, QUERIES))


def test_l1_has_no_codes_and_is_recalled_without():
    with pytest.raises(NoCodesError, match="L1"):
        filled("manhattan").codes(PATTERNS, 0.1)


@pytest.mark.parametrize("metric", ["distance", "manhattan"])
def test_a_value_that_was_not_observed_does_not_count(metric):
    model, seen = filled(metric), torch.ones(12, 5, dtype=torch.bool)
    seen[:, 2] = False
    other = QUERIES.clone()
    other[:, 2] = 100.0
    torch.testing.assert_close(model(PATTERNS, QUERIES, seen), model(PATTERNS, other, seen))
    with pytest.raises(ValueError, match="observed must be None"):
        filled(metric, mapped=True)(PATTERNS, QUERIES, seen)


@pytest.mark.parametrize("metric", METRICS)
def test_a_stranger_is_less_likely_than_a_stored_pattern_to_those_that_ask_for_one(metric):
    model = Nearest(5, metric).double()
    with torch.no_grad():
        model.log_beta.fill_(3.0)
    asked = PATTERNS + 0.01 * torch.randn(30, 5, generator=GENERATOR, dtype=torch.float64)
    evidence = model(PATTERNS, asked).logsumexp(1) - math.log(30)
    assert bool((evidence > model.stranger(PATTERNS, asked)).all())


def test_it_is_saved_in_a_memory(tmp_path):
    memory = ahop.BayesianHopfield(PATTERNS, similarity=filled("cosine", mapped=True))
    memory.save(tmp_path / "memory")
    torch.testing.assert_close(ahop.load(tmp_path / "memory").scores(QUERIES), memory.scores(QUERIES))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="metric must be one of"):
        Nearest(3, "hamming")
    with pytest.raises(ValueError, match="mapped must be True"):
        Nearest(3, query_dim=4)


# --- fitted ------------------------------------------------------------------------------------------------------


def test_whitening_is_by_the_covariance_of_ledoit_and_wolf():
    from sklearn.covariance import LedoitWolf

    for count in (3, 12, 200):
        gaps = torch.randn(count, 5, generator=GENERATOR, dtype=torch.float64) @ torch.randn(5, 5, dtype=torch.float64)
        origins = torch.randn(count, 5, generator=GENERATOR, dtype=torch.float64)
        model = recipes.Whitening().fit(Pairs(origins + gaps, origins))
        ours = model.loading @ model.loading.mT + torch.diag(model.log_psi.exp())
        theirs = torch.as_tensor(LedoitWolf().fit(gaps.numpy()).covariance_)
        torch.testing.assert_close(ours.detach(), theirs, rtol=1e-5, atol=1e-6)


def test_ridge_is_that_of_scikit_learn():
    from sklearn.linear_model import Ridge

    queries, origins = (
        torch.randn(40, 7, generator=GENERATOR).double(),
        torch.randn(40, 5, generator=GENERATOR).double(),
    )
    gaps = queries - queries.mean(0)
    model = recipes.Ridge(0.01, "distance").fit(Pairs(queries, origins))
    theirs = Ridge(alpha=0.01 * float(gaps.square().sum(0).mean())).fit(queries.numpy(), origins.numpy())
    predicted = (model.asked(queries) + model.pattern_centre).detach()
    torch.testing.assert_close(predicted, torch.as_tensor(theirs.predict(queries.numpy())))


@pytest.mark.parametrize("metric", ["distance", "manhattan"])
@torch.no_grad()
def test_the_evidence_never_falls_until_the_temperature_rests(metric):
    noise = torch.randn(200, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    data = TrainingData(PATTERNS, PATTERNS[torch.arange(200) % 30] + 0.4 * noise)
    trace = em.iterate(_Temperature(Nearest(5, metric).double(), data), steps=100)
    assert len(trace) < 100 and min(after - before for before, after in pairwise(trace)) > 0
