from functools import partial
from itertools import pairwise

import pytest
import torch

import ahop
from ahop import BayesianHopfield, metrics
from ahop.metrics import retrieval_accuracy
from ahop.similarity import Adaptive, Likelihood, Regimes
from ahop.similarity.codes import approximate
from ahop.similarity.families import em
from ahop.similarity.families.independent import likelihood, terms
from ahop.variants import Biased, Compose, Either, Masked, Mixed, Noisy, Scaled


def uniform(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


PATTERNS = uniform(200, 32)
WORLDS = {
    "published": Mixed(0.3, 0.3, 0.3),
    "literal": Mixed(0.3, 0.2, 0.3, preset="literal"),
    "noise by dimension": Noisy(0.1 + 1.5 * torch.rand(32, generator=torch.Generator().manual_seed(1))),
    "gain": Compose([Scaled(0.5), Biased(0.5), Noisy(0.25)]),
    "either": Either([Noisy(0.7), Compose([Noisy(0.05), Masked(0.7)])]),
}


def near_the_ceiling(patterns, world, samples, labelled):
    seen, test = world.sample(patterns, samples), world.sample(patterns, 600)
    memory = BayesianHopfield(patterns).fit(seen.queries, seen.origins if labelled else None)
    return metrics.fraction_of_ceiling(memory, ahop.Oracle(patterns, world), test) > 0.93


# The published world stands in the README and in many tests; the literal one is much like it.
@pytest.mark.parametrize(
    "name",
    [
        "gain",
        pytest.param("noise by dimension", marks=pytest.mark.slow),
        pytest.param("either", marks=pytest.mark.slow),
    ],
)
def test_it_comes_close_to_the_ceiling_in_worlds_nobody_told_it(name):
    assert near_the_ceiling(PATTERNS[:100], WORLDS[name], 250, labelled=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["published", "gain"])
def test_it_comes_close_to_the_ceiling_without_labels(name):
    assert near_the_ceiling(PATTERNS[:100], WORLDS[name], 250, labelled=False)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("name", list(WORLDS))
def test_it_comes_close_to_the_ceiling_in_every_world(name, labelled):
    assert near_the_ceiling(PATTERNS, WORLDS[name], 400, labelled)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("components", [1, 2])
@pytest.mark.parametrize("candidates", [pytest.param(1, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("shrinkage", [terms.Shrinkage(), terms.Shrinkage(mask=5.0, scale=8.0, rate=0.3)])
def test_the_evidence_never_falls(shifted, components, candidates, shrinkage):
    seen = Mixed(0.4, 0.4, 0.4).sample(PATTERNS, 60)
    near = torch.cat(
        [seen.origins[:, None], torch.randint(200, (60, 7), generator=torch.Generator().manual_seed(0))], 1
    )
    chosen, owner = PATTERNS[near[:, :candidates]].double(), torch.arange(60).repeat_interleave(candidates)
    log_prior = torch.zeros(60 * candidates, dtype=torch.float64)
    evidence = terms.Evidence(seen.queries.double(), chosen.flatten(0, 1), owner, log_prior)
    likelihood = Likelihood(32, components, shifted=shifted, low=-4, high=4).double()
    learner = terms.Learner(evidence, [likelihood], torch.zeros(1).double(), shrinkage, floor=1e-3)
    trace = em.iterate(learner, steps=40)
    assert min(after - before for before, after in pairwise(trace)) > -1e-9
    assert trace[-1] > trace[0] + 1


@pytest.fixture(scope="module")
def one_corruption():
    """What was learned of masks, noise and a bias; not to be changed."""
    return BayesianHopfield(PATTERNS).fit(*Mixed(0.4, 0.3, 0.4, seed=2).sample(PATTERNS, 1000)).similarity.model


def test_what_it_learns_is_what_happened(one_corruption):
    similarity = one_corruption
    shift = Biased(0.6, seed=2).shift(32)
    torch.testing.assert_close(similarity.bias.detach(), shift, atol=0.08, rtol=0)
    assert similarity.mask_rate.mean().item() == pytest.approx(12 / 32, abs=0.03)
    assert similarity.sigma.mean().item() == pytest.approx(0.3, abs=0.03)


@pytest.mark.slow
def test_whole_queries_can_belong_to_regimes(tmp_path):
    memory = BayesianHopfield(PATTERNS).fit(*WORLDS["either"].sample(PATTERNS, 300))
    assert isinstance(memory.similarity.model, Regimes)
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(PATTERNS), memory.scores(PATTERNS))


@pytest.mark.slow
def test_probabilities_mean_what_they_say_and_strangers_are_detected():
    world = Mixed(0.4, 0.4, 0.4)
    memory = BayesianHopfield(PATTERNS).fit(*world.sample(PATTERNS, 400))
    stored, strange = world.sample(PATTERNS, 400), world.sample(uniform(200, 32, seed=9), 400)
    assert metrics.calibration_error(memory, stored) < 0.08
    known, unknown = memory.familiarity(stored.queries), memory.familiarity(strange.queries)
    assert (known[:, None] > unknown).float().mean() > 0.85
    with pytest.raises(ValueError, match="reject must be None before fit"):
        BayesianHopfield(PATTERNS).recall(stored.queries, reject=0.05)
    for share in (0.02, 0.1, 0.3):
        assert (memory.recall(stored.queries, reject=share).indices == -1).float().mean() < share + 0.05
        refused = memory.recall(strange.queries, k=2, reject=share)
        assert not refused.probabilities[refused.indices == -1].any()
        assert torch.equal(refused.indices[:, 0] == -1, refused.indices[:, 1] == -1)
        assert (refused.indices[:, 0] == -1).float().mean() > 2 * share
    assert bool((memory.recall(stored.queries, reject=0.0).indices >= 0).all())


@pytest.mark.parametrize("labelled", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("floored", [pytest.param(True, marks=pytest.mark.slow), False])
def test_strangers_are_detected_after_learning_around_missing_values(labelled, floored):
    random = torch.Generator().manual_seed(0)
    patterns, others = torch.rand(2, 60, 16, generator=random) * (torch.rand(60, 16, generator=random) < 0.5)
    patterns, others = (patterns, others) if floored else (uniform(60, 16), uniform(60, 16, seed=9))
    world = Compose([Masked(0.1), Scaled(0.9)]) if floored else Mixed(0.1, 0.2, 0.3)
    seen, test, strange = (
        world.sample(some, n, random) for some, n in ((patterns, 80), (patterns, 200), (others, 200))
    )
    with_holes = [
        torch.where(torch.rand(s.queries.shape, generator=random) < 0.2, torch.nan, s.queries)
        for s in (seen, test, strange)
    ]
    memory = BayesianHopfield(patterns).fit(with_holes[0], seen.origins if labelled else None, observed="not-nan")
    known, unknown = (memory.recall(rows, reject=0.1, observed="not-nan").indices == -1 for rows in with_holes[1:])
    assert known.float().mean() < 0.2 < 0.4 < unknown.float().mean()


@pytest.mark.parametrize("origins", [[0] * 12, [0] * 9 + [1], None])
def test_strangers_are_detected_whatever_origins_were_learned_from(origins):
    queries = PATTERNS[:10] if origins is None else PATTERNS[origins]
    memory = BayesianHopfield(PATTERNS).fit(queries + 0.1 * uniform(*queries.shape, seed=3), origins)
    assert (memory.recall(torch.full((1, 32), 9.0), reject=0.1).indices == -1).all()


@pytest.mark.parametrize("learn", [BayesianHopfield.fit, BayesianHopfield.partial_fit])
def test_too_few_queries_to_hold_any_out_are_named_as_the_reason_that_no_stranger_is_detected(learn, tmp_path):
    memory = learn(BayesianHopfield(PATTERNS), PATTERNS[:3] + 0.1)
    memory.save(tmp_path)
    for one in (memory, ahop.load(tmp_path)):
        with pytest.raises(ValueError, match=r"reject must be None: .* at least 4 queries, and fit was given 3"):
            one.recall(PATTERNS[:2], reject=0.1)


def test_the_likelihood_is_a_density():
    likelihood = Likelihood(1, 2, low=-2, high=2)
    grid = torch.linspace(-12, 12, 24001)[:, None]
    total = likelihood(torch.tensor([[0.3]]), grid).exp().sum() * 0.001
    assert total.item() == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("components", [1, 3])
def test_gradients_are_right_and_unobserved_dimensions_are_ignored(components):
    likelihood = Likelihood(4, components).double()
    patterns, queries = uniform(3, 4).double().requires_grad_(), uniform(2, 4, seed=1).double().requires_grad_()
    torch.autograd.gradcheck(likelihood, (patterns, queries))
    observed = torch.tensor([[True, False, True, True], [True, True, False, False]])
    expected = (likelihood.terms(patterns, queries[:, None]) * observed[:, None]).sum(-1)
    torch.testing.assert_close(likelihood(patterns, queries, observed), expected)


@pytest.mark.slow
def test_a_learned_likelihood_can_be_one_more_base():
    world = Mixed(0.4, 0.3, 0.4)
    seen = world.sample(PATTERNS, 300)
    learned = BayesianHopfield(PATTERNS).fit(*seen).similarity.model
    memory = ahop.AdaptiveHopfield(PATTERNS, bases=["distance", "dot", learned]).fit(*seen)
    test = world.sample(PATTERNS, 400)
    assert isinstance(memory.similarity, Adaptive)
    assert metrics.retrieval_accuracy(memory, test) > metrics.retrieval_accuracy(
        ahop.AdaptiveHopfield(PATTERNS).fit(*seen), test
    )


@pytest.mark.parametrize("labelled", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize(
    "patterns",
    [
        pytest.param(PATTERNS, marks=pytest.mark.slow),
        PATTERNS[:1],
        pytest.param(PATTERNS[:2].repeat(5, 1), marks=pytest.mark.slow),
        torch.ones(4, 3),
        pytest.param(PATTERNS * 0 + torch.eye(32)[0], marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:the 16 queries fit these patterns no better")
def test_little_or_strange_data_give_finite_answers(patterns, labelled):
    seen = Mixed(0.3, 0.2, 0.2).sample(patterns, 16)
    memory = BayesianHopfield(patterns).fit(seen.queries, seen.origins if labelled else None)
    asked = torch.cat([seen.queries, torch.full((1, patterns.shape[1]), 50.0)])
    assert torch.isfinite(memory.scores(asked)).all()
    assert torch.isfinite(memory.familiarity(asked)).all()
    assert torch.isfinite(memory.retrieve(asked)).all()


def test_it_is_saved_with_what_it_learned(tmp_path):
    seen = WORLDS["published"].sample(PATTERNS[:30], 60)
    memory = BayesianHopfield(PATTERNS[:30]).fit(*seen)
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(seen.queries), memory.scores(seen.queries))


@pytest.mark.slow
def test_the_very_queries_to_be_retrieved_are_enough():
    world, few = Mixed(0.3, 0.3, 0.3), PATTERNS[:60, :24]
    asked = world.sample(few, 200)
    memory = BayesianHopfield(few).fit(asked.queries)
    assert metrics.fraction_of_ceiling(memory, ahop.Oracle(few, world), asked) > 0.95


@pytest.mark.slow
def test_one_origin_is_too_few_for_hidden_causes_but_not_to_learn():
    queries = PATTERNS[3] + torch.randn(40, 1, generator=torch.Generator().manual_seed(0)).expand(-1, 32)
    memory = BayesianHopfield(PATTERNS).fit(queries, torch.full((40,), 3))
    assert torch.isfinite(memory.scores(queries)).all()
    with pytest.raises(ValueError, match="origins must include at least two patterns, for one to be held out"):
        BayesianHopfield(PATTERNS).fit(queries, torch.full((40,), 3), hidden_causes=1)


def test_a_fit_that_fails_loses_no_prior():
    memory = BayesianHopfield(PATTERNS, prior=torch.arange(1, 201))
    with pytest.raises(ValueError, match="origins must include at least two patterns"):
        memory.fit(PATTERNS[:20], torch.zeros(20, dtype=torch.long), hidden_causes=1, learn_prior=True)
    assert torch.equal(memory.prior, torch.arange(1, 201).float())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* queries fit these patterns no better")
@pytest.mark.parametrize("labelled", [True, False])
def test_how_often_patterns_are_asked_for_can_be_learned(labelled):
    world = Mixed(0.4, 0.4, 0.4)
    few, common = PATTERNS[:40, :16], PATTERNS[:8, :16]
    seen, test = world.sample(common, 120), world.sample(common, 400)
    origins = seen.origins if labelled else None
    plain, knowing = (
        BayesianHopfield(few).fit(seen.queries, origins, hidden_causes=0, learn_prior=learn) for learn in (False, True)
    )
    assert plain.prior is None
    assert knowing.prior[:8].mean() > 5 * knowing.prior[8:].mean()
    assert metrics.first_choice_accuracy(knowing, test) > metrics.first_choice_accuracy(plain, test)


def test_it_says_what_happened(one_corruption):
    text = one_corruption.describe()
    assert "Of 100 values, 3" in text
    assert "noise of standard deviation 0.3" in text
    assert "Values are shifted by 0.6 on average" in text
    most = int(one_corruption.bias.abs().argmax())
    assert f"on average, and most in column {most}, by {one_corruption.bias[most]:+.2g}." in text
    either = Regimes([one_corruption, Likelihood(32)])
    assert either.describe().count("suffer this") == len(either.regimes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BayesianHopfield(PATTERNS).fit(PATTERNS, hidden_causes=33), "hidden_causes must be between 0 and 32"),
        (lambda: BayesianHopfield(PATTERNS).partial_fit(None), "queries must be a tensor or an array"),
        (lambda: BayesianHopfield(PATTERNS).partial_fit(PATTERNS, [1]), "origins"),
        (lambda: BayesianHopfield(PATTERNS).fit(), "queries must be given"),
        (lambda: BayesianHopfield(PATTERNS).fit(torch.ones(0, 32)), "queries must be a non-empty matrix"),
        (lambda: BayesianHopfield(PATTERNS, similarity=ahop.similarity.Dot()), "similarity must be a likelihood"),
        (
            lambda: BayesianHopfield(PATTERNS, similarity="dot"),
            r"similarity must name a likelihood, .* \(bent, correlated, corruption, .*\), got 'dot'; u-hop takes every",
        ),
        (lambda: BayesianHopfield(PATTERNS, similarity="dott"), "similarity must name a likelihood, .* got 'dott'"),
        (lambda: BayesianHopfield(PATTERNS, similarity="regimes"), "'regimes' cannot be made from its name alone"),
        (lambda: Likelihood(3, 0), "dim and components must be at least 1, got 3 and 0"),
        (lambda: Likelihood(3, low=1.0, high=0.0), "low must be less than high"),
        (lambda: Regimes([]), "regimes must be a list of at least one Likelihood"),
    ],
)
def test_bad_input_gets_one_clear_error(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize("name", ["corruption", "likelihood", "correlated", "floor", "moved", "nearest"])
@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_a_likelihood_to_begin_as_can_be_named(name, unit, tmp_path):
    memory = ahop.create("b-hop", unit * PATTERNS, similarity=name)
    assert memory.similarity.model.name == ("likelihood" if name == "corruption" else name)
    # Where a floor lies is learned; before that all patterns are alike to it.
    found = memory.recall(unit * PATTERNS).indices.flatten().tolist()
    assert name == "floor" or found == list(range(len(PATTERNS)))
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(PATTERNS), memory.scores(PATTERNS))
    # Nothing is known of the corruption yet: a first few queries are learned from as in any new memory.
    assert not int(memory.similarity.known)


def test_without_a_name_it_begins_as_a_plain_likelihood():
    named, unnamed = BayesianHopfield(PATTERNS, similarity="likelihood"), BayesianHopfield(PATTERNS)
    assert torch.equal(named.scores(PATTERNS), unnamed.scores(PATTERNS))


@pytest.mark.slow
def test_answers_do_not_depend_on_budget_or_batch():
    patterns = torch.rand(400, 48, generator=torch.Generator().manual_seed(0)) * 2 - 1
    # Pairs that nearly tie, which scores with an error of a hundredth would not tell apart.
    patterns = torch.cat([patterns, patterns + 2e-3 * torch.randn(400, 48, generator=torch.Generator().manual_seed(1))])
    world = Mixed(0.3, 0.3, 0.3)
    memory = ahop.BayesianHopfield(patterns).fit(*world.sample(patterns, 200), hidden_causes=0)
    queries = world.sample(patterns, 1200).queries
    whole = memory.recall(queries, k=5)
    with ahop.memory_budget(2**20):
        parts = memory.recall(queries, k=5)
    one = ahop.memories.base.Recall(
        *(torch.cat(rows) for rows in zip(*[memory.recall(q, k=5) for q in queries.split(60)], strict=True))
    )
    exact = memory.similarity.model.exact(patterns, torch.arange(800).expand(50, -1), queries[:50]).topk(5).indices
    for other in (parts, one):
        assert other.indices.equal(whole.indices)
        torch.testing.assert_close(other.probabilities, whole.probabilities, atol=1e-3, rtol=1e-3)
    assert whole.indices[:50].equal(exact)


@pytest.mark.slow
def test_exact_recall_takes_no_short_way(monkeypatch):
    patterns = torch.rand(600, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Mixed(0.5, 0.5, 0.5)
    memory = ahop.BayesianHopfield(patterns).fit(*world.sample(patterns, 200), hidden_causes=0)
    queries = world.sample(patterns, 100).queries
    exact = torch.softmax(memory.similarity.exact(patterns, torch.arange(600).expand(100, -1), queries), 1).topk(3)
    # However many there are: codes stand in for scores from one pair on, and are rough.
    monkeypatch.setattr("ahop.similarity.codes._MANY_TERMS", 1)
    monkeypatch.setattr(likelihood.codes, "approximate", partial(approximate, tolerance=2.0))
    found = memory.recall_exactly(queries, 3)
    rough = memory.recall(queries, 3)
    assert found.indices.equal(exact.indices)
    torch.testing.assert_close(found.probabilities, exact.values)
    assert (rough.probabilities - exact.values).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, False])
def test_missing_values_are_learned_around(labelled):
    patterns = torch.rand(100, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Mixed(0.2, 0.3, 0.5)
    seen, test = world.sample(patterns, 150), world.sample(patterns, 400)
    lost = torch.rand(seen.queries.shape, generator=torch.Generator().manual_seed(2)) < 0.3
    holed = seen.queries.masked_fill(lost, torch.nan)
    origins = seen.origins if labelled else None
    memory = ahop.BayesianHopfield(patterns).fit(holed, origins, observed="not-nan")
    whole = ahop.BayesianHopfield(patterns).fit(seen.queries, origins, hidden_causes=0)
    assert retrieval_accuracy(memory, test) > retrieval_accuracy(whole, test) - 0.05
    # A hole is no value that was lost on the way.
    assert float(memory.similarity.model.mask_rate.detach().mean()) == pytest.approx(0.2, abs=0.1)
    # What stands in the holes does not matter.
    again = ahop.BayesianHopfield(patterns).fit(holed.nan_to_num(5.0), origins, observed=~lost)
    assert torch.equal(again.scores(test.queries), memory.scores(test.queries))
    with pytest.raises(ValueError, match="hidden_causes must be 0 or None where values are missing, got 2"):
        memory.fit(holed, origins, observed="not-nan", hidden_causes=2)


def test_evidence_and_familiarity_carry_no_gradients():
    memory = ahop.BayesianHopfield(torch.eye(4))
    assert not memory.log_evidence(torch.eye(4)).requires_grad
    assert not memory.familiarity(torch.eye(4)).requires_grad


def test_codes_take_arrays():
    patterns = torch.rand(30, 6, generator=torch.Generator().manual_seed(0))
    codes = ahop.BayesianHopfield(patterns).as_inner_product()
    assert torch.equal(codes.encode_patterns(patterns.numpy()), codes.encode_patterns(patterns))
    assert torch.equal(codes.encode_queries(patterns.numpy()), codes.encode_queries(patterns))
