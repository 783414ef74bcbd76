"""b-hop of patterns that scatter."""

import copy
import math
from itertools import product

import numpy as np
import pytest
import torch

import ahop
from ahop import BayesianHopfield, Oracle
from ahop.similarity import Likelihood, Nearest
from ahop.similarity.codes import NoCodesError
from ahop.similarity.families import without_labels
from ahop.similarity.families.correlated import learning
from ahop.similarity.families.correlated.model import Correlated as SharedNoise
from ahop.similarity.families.independent import terms
from ahop.similarity.families.independent.terms import Evidence, Shrinkage
from ahop.similarity.families.training import TrainingData
from ahop.variants import Biased, Compose, Correlated, Masked, Noisy

WORLDS = {
    "noise and bias": Compose([Noisy(0.4), Biased(0.7)]),
    "a mask": Compose([Noisy(0.2), Masked(0.3)]),
    "shared noise": Correlated(1.6, 0.9),
}


def drawn(world, seed, patterns=150, dim=10, learn=800, asked=2000):
    """Means, spreads that differ twentyfold, and queries with their origins, to learn from and to be asked."""
    draw = torch.Generator().manual_seed(seed)
    means = torch.randn(patterns, dim, generator=draw)
    spread = 0.06 * 20 ** torch.rand(patterns, dim, generator=draw)
    origins = torch.randint(patterns, (learn + asked,), generator=draw)
    measured = means[origins] + spread[origins] * torch.randn(learn + asked, dim, generator=draw)
    queries = world.corrupt(measured, draw)
    return means, spread, (queries[:learn], origins[:learn]), (queries[learn:], origins[learn:])


def right(memory, asked):
    return float((memory.recall(asked[0]).indices[:, 0] == asked[1]).double().mean())


def fitted(means, learn, labelled=True, **options):
    return BayesianHopfield(means, **options).fit(learn[0], learn[1] if labelled else None, verbose=False)


@pytest.mark.slow
def test_a_memory_that_knows_each_spread_comes_close_to_the_ceiling():
    world = WORLDS["noise and bias"]
    means, spread, learn, asked = drawn(world, 0, patterns=60, dim=8, learn=200)
    memory = fitted(means, learn, spread=spread)
    ceiling, plain = right(Oracle(means, world, spread=spread), asked), right(fitted(means, learn), asked)
    assert ceiling - 0.02 < right(memory, asked) > plain + 0.03
    assert float(memory.recall(asked[0]).probabilities.mean()) == pytest.approx(right(memory, asked), abs=0.03)
    assert float(memory.similarity.model.sigma.detach().mean()) == pytest.approx(0.4, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "labelled"),
    [*product(("noise and bias", "a mask"), (True, False)), ("shared noise", True)],
)
def test_it_is_within_a_hundredth_of_the_ceiling_and_ahead_of_one_that_knows_no_spread(name, labelled):
    behind, ahead = [], []
    for seed in range(5):
        means, spread, learn, asked = drawn(WORLDS[name], seed)
        found = right(fitted(means, learn, labelled, spread=spread), asked)
        behind.append(right(Oracle(means, WORLDS[name], spread=spread), asked) - found)
        ahead.append(found - right(fitted(means, learn, labelled), asked))
    assert np.mean(behind) < 0.01
    assert min(ahead) > 0.01


def scattered(seed, count, dim):
    draw = torch.Generator().manual_seed(seed)
    return torch.cat([torch.randn(count, dim, generator=draw), torch.rand(count, dim, generator=draw)], 1).double()


def learned_likelihood(components=2):
    likelihood = Likelihood(3, components, centre=0.3).double()
    draw = torch.Generator().manual_seed(1)
    for part in likelihood.parameters():
        part.data.add_(0.3 * torch.randn(part.shape, generator=draw))
    return likelihood


def test_the_likelihood_of_a_value_is_its_mean_over_what_may_have_been_measured():
    likelihood, patterns, queries = learned_likelihood(), scattered(0, 4, 3), scattered(2, 5, 3)[:, :3]
    steps = torch.linspace(-8, 8, 401, dtype=torch.float64)
    weights = torch.log_softmax(-0.5 * steps.square(), 0)
    measured = patterns[:, :3] + steps[:, None, None] * patterns[:, 3:]
    terms = likelihood.terms(measured[:, None], queries[:, None])
    expected = torch.logsumexp(terms + weights[:, None, None, None], 0).sum(-1)
    torch.testing.assert_close(likelihood(patterns, queries), expected)
    chosen = torch.tensor([[1, 3]]).expand(5, 2)
    torch.testing.assert_close(likelihood.exact(patterns, chosen, queries), expected[:, [1, 3]])


@pytest.mark.parametrize("tails", [math.inf, 4.0])
def test_the_likelihood_of_hidden_causes_has_the_spread_on_its_diagonal(tails):
    from scipy.stats import multivariate_t

    model, draw = SharedNoise(3, 2, tails=tails).double(), torch.Generator().manual_seed(1)
    for part in model.parameters():
        part.data.add_(0.3 * torch.randn(part.shape, generator=draw))
    patterns, queries = scattered(0, 4, 3), scattered(2, 5, 3)[:, :3]
    common = model.loading @ model.loading.mT + torch.diag(model.log_psi.exp())
    by_hand = [
        multivariate_t(
            (model.gain * mean + model.bias).detach().numpy(),
            (common + torch.diag(model.gain**2 * spread**2)).detach().numpy(),
            df=tails,
        ).logpdf(queries)
        for mean, spread in zip(patterns[:, :3], patterns[:, 3:], strict=True)
    ]
    expected = model.log_beta.exp().item() * torch.tensor(np.stack(by_hand, 1))
    torch.testing.assert_close(model(patterns, queries).detach(), expected)
    assert torch.autograd.gradcheck(
        lambda rows, loading: functional(model, rows, queries, loading), (patterns.requires_grad_(), model.loading)
    )


def functional(model, patterns, queries, loading):
    return torch.func.functional_call(model, {"loading": loading}, (patterns, queries))


def test_a_spread_of_zero_is_none():
    patterns, queries = scattered(0, 4, 3), scattered(2, 5, 3)[:, :3]
    zero = torch.cat([patterns[:, :3], torch.zeros(4, 3).double()], 1)
    for model in (learned_likelihood(), SharedNoise(3, 1).double()):
        torch.testing.assert_close(model(zero, queries), model(patterns[:, :3], queries))


@torch.no_grad()
@pytest.mark.parametrize("shifted", [False, True])
def test_the_evidence_of_single_dimensions_never_falls(shifted):
    draw, owner = torch.Generator().manual_seed(0), torch.arange(60).repeat_interleave(3)
    queries = 2 * torch.randn(60, 3, generator=draw).double() - 0.3
    evidence = Evidence(queries, scattered(0, 180, 3), owner, torch.zeros(180).double())
    likelihood = Likelihood(3, 2, shifted=shifted, low=-8.0, high=8.0).double()
    learner = terms.Learner(evidence, [likelihood], torch.zeros(1).double(), Shrinkage(5.0, 5.0), 1e-3)
    bounds = [_step(learner) for _ in range(12)]
    assert np.diff(bounds).min() > -1e-9
    assert bounds[-1] > bounds[0] + 0.1


def test_where_learning_single_dimensions_rests_the_evidence_has_its_top():
    means, spread, (queries, origins), _ = drawn(WORLDS["noise and bias"], 0, dim=3, learn=100, asked=1)
    patterns, queries = torch.cat([means, spread], 1).double(), queries.double()
    evidence = Evidence.labelled(patterns, queries, origins, None)
    likelihood, flat = Likelihood(3, low=-9.0, high=9.0).double(), Shrinkage()
    learner = terms.Learner(evidence, [likelihood], torch.zeros(1).double(), flat, 1e-3)
    with torch.no_grad():
        for _ in range(300):
            _step(learner)
    learned = likelihood.bias, likelihood.gain, likelihood.log_sigma
    slopes = torch.autograd.grad(evidence.explained(likelihood).total.sum(-1).mean(), learned)
    torch.testing.assert_close(torch.cat(slopes), torch.zeros(5).double(), atol=1e-4, rtol=0)
    assert float(likelihood.sigma.detach().mean()) == pytest.approx(0.4, rel=0.1)


@torch.no_grad()
@pytest.mark.parametrize("tails", [math.inf, 4.0])
@pytest.mark.parametrize("labelled", [True, False])
def test_the_evidence_of_hidden_causes_never_falls(labelled, tails):
    means, spread, (queries, origins), _ = drawn(WORLDS["shared noise"], 0, patterns=40, dim=6, learn=80, asked=1)
    patterns, queries = torch.cat([means, spread], 1).double(), queries.double()
    form = learning.Form(2, tails, learn_gain=labelled)
    model = learning._begin(torch.zeros(6).double(), torch.ones(6).double(), form)
    if labelled:
        learner = learning._OfPairs(model, form, queries, patterns[origins])
    else:
        learner = learning._OfQueries(model, form, queries, patterns)
    bounds = [_step(learner) for _ in range(15)]
    assert np.diff(bounds).min() > -1e-3
    assert bounds[-1] > bounds[0] + 0.1


def _step(learner):
    bound, shares = learner.expect()
    learner.maximise(shares)
    return bound


@pytest.fixture(scope="module")
def found():
    means, spread, learn, asked = drawn(WORLDS["noise and bias"], 0, patterns=40, dim=6, learn=60, asked=50)
    return fitted(means, learn, spread=spread), asked[0]


def test_it_is_kept_in_a_file_grows_and_is_asked_in_context(found, tmp_path):
    memory, queries = found
    memory.save(tmp_path)
    again = ahop.load(tmp_path)
    assert torch.equal(again.scores(queries), memory.scores(queries))
    assert torch.equal(again.familiarity(queries), memory.familiarity(queries))
    again.remove(range(30, 40)).add(memory.patterns[30:], spread=memory.spread[30:])
    assert torch.equal(again.scores(queries), memory.scores(queries))
    some = memory.recall(queries, prior=(torch.arange(40) < 30).expand(50, 40))
    torch.testing.assert_close(some.probabilities, again.remove(range(30, 40)).recall(queries).probabilities)
    assert torch.equal(again.spread, memory.spread[:30])
    # Labels judged beside patterns of which a fourth is gone.
    fewer = copy.deepcopy(memory).remove(range(30, 40))
    assert memory.verified and not fewer.verified


def test_replicates_make_one_memory_or_another():
    rows, groups = torch.randn(30, 4, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 10
    plain = ahop.GaussianHopfield.from_replicates(rows, groups)
    for made in (
        BayesianHopfield.from_replicates(rows, groups, values=torch.eye(10)),
        Oracle.from_replicates(rows, groups, variant=Noisy(0.1)),
    ):
        assert torch.equal(made.patterns, plain.patterns) and torch.equal(made.spread, plain.spread)


def test_it_goes_on_with_a_stream(found, tmp_path):
    memory, _ = found
    memory.save(tmp_path)
    means, _, learn, _ = drawn(Compose([Noisy(0.4), Biased(2.5)]), 0, patterns=40, dim=6, learn=400, asked=1)
    again = ahop.load(tmp_path).partial_fit(*learn).partial_fit(*learn)
    assert torch.equal(again.patterns, means)
    assert _bias(again) > _bias(memory) + 1


def _bias(memory):
    return float(memory.similarity.model.bias.detach().abs().mean())


@pytest.mark.parametrize(
    ("asked", "told", "error"),
    [
        (lambda memory, queries: memory.index(), "codes are not known where patterns have a spread", NoCodesError),
        (
            lambda memory, queries: memory.as_inner_product(),
            "codes are not known where patterns have a spread",
            ValueError,
        ),
        (
            lambda memory, queries: memory.restore(queries),
            "cannot be restored where patterns have a spread",
            ValueError,
        ),
        (lambda memory, queries: memory.fit(queries, order=1), "order and standardise must be left out", ValueError),
        (lambda memory, queries: memory.fit(queries, standardise=True), "order and standardise must be", ValueError),
        (lambda memory, queries: memory.fit(queries[:, :5]), "queries must have 6 values each", ValueError),
    ],
)
def test_what_it_cannot_do_is_said(found, asked, told, error):
    with pytest.raises(error, match=told):
        asked(*found)


def test_a_likelihood_that_knows_no_spread_is_refused():
    patterns = torch.eye(4)
    with pytest.raises(ValueError, match="similarity must know what to do with patterns that scatter"):
        BayesianHopfield(patterns, similarity="moved", spread=torch.ones(4, 4))


def test_a_plain_metric_that_few_queries_left_is_read_from_a_file(tmp_path):
    means, spread, learn, _ = drawn(Noisy(0.2), 0, patterns=40, dim=6, learn=3, asked=1)
    memory = fitted(means, learn, spread=spread)
    assert isinstance(memory.similarity.model, Nearest)
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(learn[0]), memory.scores(learn[0]))


def test_a_metric_moves_a_query_as_the_means_of_patterns_that_scatter():
    own, other = torch.rand(2, 3, 8, generator=torch.Generator().manual_seed(0))
    means = own[:, :4], other[:, :4]
    assert torch.equal(Nearest(4).transferred(means[0], own, other), Nearest(4).transferred(means[0], *means))


@torch.no_grad()
def test_of_few_columns_in_which_nothing_is_found_the_best_guess_goes_by_the_means():
    draw = torch.Generator().manual_seed(0)
    means, queries = torch.rand(40, 3, generator=draw), torch.rand(40, 3, generator=draw)
    data = TrainingData(torch.cat([means, 0.1 * means], 1), queries, scattered=True)
    model = without_labels.best_guess(data, Likelihood(3), 0)
    assert isinstance(model, Nearest) and model(data.patterns, queries).shape == (40, 40)


@pytest.mark.parametrize("count", [3, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("labelled", [True, False])
def test_few_queries_are_enough_for_an_answer(count, labelled):
    means, spread, learn, asked = drawn(Noisy(0.2), 0, patterns=40, dim=8, learn=count, asked=300)
    assert right(fitted(means, learn, labelled, spread=spread), asked) > 0.6
