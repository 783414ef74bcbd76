import copy
import math

import numpy as np
import pytest
import torch

import ahop
from ahop import AdaptiveHopfield, AssociativeMemory, ModernHopfield, UniversalHopfield, kernels, memory_budget
from ahop.similarity.families import correlated, independent


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 8), (0, 8)])
def test_shapes_follow_the_queries(shape):
    memory = ModernHopfield(noise(6, 8), values=noise(6, 3))
    queries = noise(*shape)
    assert memory.scores(queries).shape == (*shape[:-1], 6)
    assert memory.weights(queries).shape == (*shape[:-1], 6)
    assert memory.retrieve(queries).shape == (*shape[:-1], 3)
    assert memory.recall(queries, k=2).indices.shape == (*shape[:-1], 2)
    assert memory.energy(queries).shape == shape[:-1]


def test_numpy_is_welcome_in_any_precision():
    patterns = np.random.default_rng(0).normal(size=(6, 8))
    patterns.flags.writeable = False
    memory = ModernHopfield(patterns)
    assert memory.patterns.dtype == torch.float64
    assert memory.scores(patterns.astype(np.float32)).dtype == torch.float64
    assert ModernHopfield([[1, 0], [0, 1]]).recall([1, 0]).indices.item() == 0


def test_retrieval_is_the_weighted_readout():
    memory = ModernHopfield(noise(6, 8), beta=2.0)
    queries = noise(4, 8, seed=1)
    expected = torch.softmax(2.0 * queries @ memory.patterns.T, -1) @ memory.patterns
    torch.testing.assert_close(memory.retrieve(queries), expected)
    torch.testing.assert_close(memory.retrieve(queries, steps=2), memory.retrieve(memory.retrieve(queries)))


def test_it_can_go_on_until_the_state_converges():
    memory = ModernHopfield(3 * torch.nn.functional.normalize(noise(6, 8)))
    settled = memory.retrieve(noise(4, 8, seed=1), steps=None, tolerance=1e-6)
    torch.testing.assert_close(memory.retrieve(settled), settled, atol=1e-4, rtol=1e-4)


def test_a_state_that_never_settles_raises_a_warning():
    # Overlaps grow without bound when nothing separates them.
    memory = UniversalHopfield(2 * torch.eye(2), similarity="dot", separation="identity")
    with pytest.warns(RuntimeWarning, match="the state still moved after 7 steps"):
        memory.retrieve(torch.ones(2), steps=None, max_steps=7)


def test_values_of_another_size_are_read_out_at_the_last_step():
    patterns, values = noise(6, 8), noise(6, 3)
    memory = UniversalHopfield(patterns, values=values)
    torch.testing.assert_close(memory.retrieve(patterns, steps=3), values)


def test_a_prior_is_worth_its_log_whatever_the_temperature():
    prior = torch.tensor([1.0, 3.0])
    for beta in (0.5, 4.0):
        memory = ModernHopfield(torch.zeros(2, 3), beta=beta, prior=prior)
        torch.testing.assert_close(memory.weights(noise(3)), torch.tensor([0.25, 0.75]))
    signs = noise(2, 784).sign()
    for kind in (ModernHopfield, ahop.SparseHopfield):
        memory = kind(signs, prior=[0.0, 5.0], beta=0.5)
        assert memory.weights(signs[0]).tolist() == [0, 1]
        assert torch.isfinite(memory.energy(signs[0]))


@pytest.mark.parametrize("name", ["m-hop", "u-hop", "s-hop", "k-hop", "a-hop"])
def test_what_is_not_observed_is_ignored(name):
    memory = ahop.create(name, noise(9, 8))
    queries = noise(4, 8, seed=1)
    observed = noise(4, 8, seed=2) > -0.3
    damaged = torch.where(observed, queries, torch.nan)
    expected = memory.scores(queries, observed=observed)
    torch.testing.assert_close(memory.scores(damaged, observed=observed), expected)
    torch.testing.assert_close(memory.scores(damaged, observed="not-nan"), expected)
    assert torch.isfinite(memory.retrieve(damaged, observed="not-nan", steps=3)).all()
    assert memory.recall(damaged, 2, observed=observed).indices.shape == (4, 2)


def test_half_a_pattern_brings_back_the_whole():
    patterns = noise(50, 16)
    half = torch.where(torch.arange(16) < 8, patterns, torch.nan)
    memory = UniversalHopfield(patterns, similarity="distance")
    torch.testing.assert_close(memory.retrieve(half, observed="not-nan"), patterns)


def test_between_steps_trusted_entries_are_clamped():
    memory = ModernHopfield(noise(6, 8))
    query, observed = noise(8, seed=1), torch.arange(8) < 3
    first = memory.retrieve(query, observed=observed)
    clamped = torch.where(observed, query, first)
    torch.testing.assert_close(memory.retrieve(query, steps=2, observed=observed), memory.retrieve(clamped))


def test_recall_ranks_by_score_and_tells_the_weights():
    memory = ModernHopfield(noise(6, 8))
    query = noise(8, seed=1)
    indices, probabilities = memory.recall(query, k=6)
    weights = memory.weights(query)
    torch.testing.assert_close(probabilities, weights.sort(descending=True).values)
    torch.testing.assert_close(weights[indices], probabilities)


@pytest.mark.parametrize("name", ["m-hop", "a-hop", "u-hop"])
def test_adding_and_removing_is_like_never_having_been_different(name):
    patterns = noise(8, 5)
    options = {"isolated": True} if name == "a-hop" else {}
    memory = ahop.create(name, patterns[:5], **options).add(patterns[5:]).remove([0, 6])
    kept = patterns[[1, 2, 3, 4, 5, 7]]
    assert torch.equal(memory.patterns, kept)
    queries = noise(3, 5, seed=1)
    torch.testing.assert_close(memory.scores(queries), ahop.create(name, kept, **options).scores(queries))


def test_values_and_priors_grow_with_the_patterns():
    memory = ModernHopfield(noise(2, 4), values=noise(2, 3), prior=[1, 1])
    memory.add(noise(1, 4, seed=1), values=noise(1, 3, seed=2), prior=[2])
    assert memory.values.shape == (3, 3)
    assert memory.prior.tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="values must be given for the new patterns"):
        memory.add(noise(1, 4), prior=[1])
    with pytest.raises(ValueError, match="prior must not be given"):
        ModernHopfield(noise(2, 4)).add(noise(1, 4), prior=[1])


def test_a_failed_change_changes_nothing():
    memory = ModernHopfield(noise(3, 4), prior=[1, 2, 3])
    with pytest.raises(ValueError, match="prior must be one number per pattern"):
        memory.add(noise(2, 4), prior=[1])
    with pytest.raises(ValueError, match="indices must leave at least one pattern"):
        memory.remove([0, 1, 2])
    assert len(memory) == len(memory.prior) == 3


def test_learned_weights_of_single_patterns_move_with_them():
    memory = AdaptiveHopfield(noise(4, 3), isolated=True)
    torch.nn.init.normal_(memory.similarity.deviation)
    before = memory.similarity.deviation[2].clone()
    memory.remove([0]).add(noise(2, 3))
    assert torch.equal(memory.similarity.deviation[1], before)
    assert not memory.similarity.deviation[3:].any()


def test_scoring_keeps_to_the_memory_budget(monkeypatch):
    largest = 0
    sort = torch.Tensor.sort

    def watched(self, *args, **kwargs):
        nonlocal largest
        largest = max(largest, self.numel() * self.element_size())
        return sort(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "sort", watched)
    memory = AdaptiveHopfield(noise(2000, 64))
    with memory_budget(2**21), kernels.use("reference"):
        memory.recall(noise(40, 64, seed=1), k=3)
    assert 0 < largest <= 2**21


def test_nothing_of_all_pairs_is_kept_for_the_backward_pass():
    memory = AdaptiveHopfield(noise(500, 64)).train()
    kept = 0

    def pack(tensor):
        nonlocal kept
        kept = max(kept, tensor.untyped_storage().nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        memory.retrieve(noise(50, 64, seed=1)).sum()
    assert 0 < kept < 50 * 500 * 64 * 4 / 8


ANSWERS = ("retrieve", "scores", "weights", "energy", "__call__")


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("name", ["a-hop", "k-hop", "b-hop"])
def test_answers_are_plain_numbers_unless_somebody_asks_for_gradients(name, answer):
    memory, queries = ahop.create(name, noise(5, 4)), noise(2, 4, seed=1)
    assert any(parameter.requires_grad for parameter in memory.parameters())
    assert getattr(memory, answer)(queries).numpy() is not None
    of_queries = getattr(memory, answer)(queries=queries.clone().requires_grad_())
    assert of_queries.requires_grad
    with torch.no_grad():
        assert not getattr(memory, answer)(queries.clone().requires_grad_()).requires_grad


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_memory_in_training_lets_gradients_reach_its_parameters(answer):
    network = torch.nn.Sequential(AdaptiveHopfield(noise(5, 4))).train()
    getattr(network[0], answer)(noise(2, 4, seed=1)).square().sum().backward()
    assert any(parameter.grad is not None for parameter in network.parameters())
    assert not getattr(network.eval()[0], answer)(noise(2, 4, seed=1)).requires_grad


def test_what_a_memory_has_learned_and_what_was_loaded_answers_in_plain_numbers(tmp_path):
    patterns = noise(20, 4)
    for name in ("a-hop", "b-hop"):
        memory = ahop.create(name, patterns).fit(patterns + 0.1 * noise(20, 4, seed=1), torch.arange(20))
        memory.save(tmp_path)
        for one in (memory, ahop.load(tmp_path)):
            assert not one.training and one.retrieve(patterns).numpy().shape == (20, 4)


def test_what_is_stored_does_not_change_with_the_tensor_it_came_from(tmp_path):
    patterns = torch.eye(3)
    memory = ModernHopfield(patterns, values=patterns)
    patterns *= 5
    assert torch.equal(memory.patterns, torch.eye(3))
    memory.save(tmp_path)


def test_a_memory_can_be_called_like_any_module():
    memory = ModernHopfield(noise(5, 4))
    assert torch.equal(memory(noise(2, 4)), memory.retrieve(noise(2, 4)))


def test_scores_stay_in_full_precision_under_autocast():
    memory = UniversalHopfield(noise(50, 64), similarity="distance")
    queries = noise(5, 64, seed=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(
            memory.scores(queries), UniversalHopfield(noise(50, 64), similarity="distance").scores(queries)
        )
    assert memory.scores(queries).dtype == torch.float32


@pytest.mark.parametrize("name", ["m-hop", "u-hop", "s-hop", "a-hop"])
def test_half_precision_patterns_work(name):
    memory = ahop.create(name, noise(20, 8).to(torch.bfloat16))
    assert memory.recall(noise(20, 8)).indices.shape == (20, 1)


@pytest.mark.slow
def test_a_hundred_thousand_patterns():
    patterns = torch.rand(100_000, 64, generator=torch.Generator().manual_seed(0)) * 2 - 1
    memory = AdaptiveHopfield(patterns)
    queries = patterns[:8] + 0.1 * noise(8, 64)
    assert memory.recall(queries).indices.squeeze(1).tolist() == list(range(8))
    assert ModernHopfield(patterns).recall(patterns[:256]).indices.shape == (256, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: ModernHopfield(torch.empty(0, 4)), r"patterns must be a non-empty matrix.*got shape \(0, 4\)"),
        (lambda m: ModernHopfield(torch.ones(4)), r"patterns must be a non-empty matrix.*got shape \(4,\)"),
        (lambda m: ModernHopfield([[1.0, math.nan]]), "patterns must be finite, got 1 NaN"),
        (
            lambda m: ModernHopfield([[1.0, math.nan], [math.inf, math.nan], [1.0, 2.0]]),
            r"got 3 NaN or infinite values in 2 of 3 rows: impute them, drop their columns, or give only complete "
            r'rows; only queries may have missing values \(observed="not-nan"\)',
        ),
        (lambda m: ModernHopfield("abc"), "patterns must be a tensor or an array of numbers, got str"),
        (lambda m: ModernHopfield(torch.ones(2, 2, dtype=torch.complex64)), "patterns must be real"),
        (lambda m: ModernHopfield(torch.eye(3), values=torch.eye(2)), "values must have one row per pattern, 3"),
        (lambda m: ModernHopfield(torch.eye(3), prior=[1, 2]), "prior must be one number per pattern"),
        (lambda m: ModernHopfield(torch.eye(3), prior=[1, -2, 1]), "prior must be counts or probabilities"),
        (lambda m: AssociativeMemory(torch.eye(3), "dot", "power", prior=[1, 1, 1]), "prior needs a separation"),
        (lambda m: AssociativeMemory(torch.eye(3), 3, "power"), "similarity must be a Similarity or a name, got int"),
        (lambda m: m.retrieve(torch.ones(10, 3)), r"queries must have 4 values each, like the 5 stored patterns"),
        (lambda m: m.retrieve([1, 2, math.inf, 4]), "queries must be finite"),
        (lambda m: m.retrieve([1, 2, math.inf, 4], observed="not-nan"), "observed entries of queries must be finite"),
        (lambda m: m.retrieve(torch.ones(4), observed="all"), 'observed must be a boolean mask, "not-nan" or None'),
        (lambda m: m.retrieve(torch.ones(4), observed=torch.ones(4)), "observed must be boolean"),
        (lambda m: m.retrieve(torch.ones(2, 4), observed=torch.ones(3, 4).bool()), "observed must have the shape"),
        (lambda m: m.retrieve(torch.ones(4), steps=0), "steps must be an integer of at least 1, got 0"),
        (lambda m: m.recall(torch.ones(4), k=6), "k must be between 1 and 5, the number of stored patterns; got 6"),
        (lambda m: m.add(torch.ones(1, 3)), "patterns must have 4 values each, like those stored"),
        (lambda m: m.remove([7]), "indices must be between 0 and 4"),
        (
            lambda m: m.fit(torch.ones(2, 4), [0, 5]),
            "or be -1 where unknown, ahop.STRANGER where it is none of them; got 0 to 5",
        ),
        (lambda m: m.fit(torch.ones(2, 4), [0.5, 1]), "origins must be integers"),
        (lambda m: m.fit(torch.ones(2, 4), [0]), r"origins must be one index per query, shape \(2,\)"),
        (lambda m: m.fit(torch.ones(0, 4), []), "queries must be a non-empty matrix"),
        (lambda m: m.fit(torch.ones(2, 3)), "queries must have 4 values each"),
        (lambda m: m.fit(torch.ones(1, 4), ["a"]), "origins must be integers, got list"),
        (lambda m: AssociativeMemory(torch.eye(3), "regimes", "softmax"), "'regimes' cannot be made from its name"),
        (lambda m: AssociativeMemory(torch.eye(3), "decomposable", "softmax"), "unknown similarity 'decomposable'"),
        (
            lambda m: AssociativeMemory(torch.eye(3), ahop.similarity.Adaptive(4), "softmax"),
            "similarity must be for 3 dimensions, got one for 4",
        ),
        (lambda m: AssociativeMemory(torch.eye(3), "dot", "softmax", modulation="kernel"), "modulation must be a Mod"),
        (lambda m: ModernHopfield(torch.eye(3), beta=math.inf), "beta must be a number in 1e-20 to 1e\\+20, got inf"),
        (lambda m: ahop.create("z-hop", torch.eye(3)), "unknown model 'z-hop'; known: a-hop"),
        (lambda m: ahop.create("argmax", torch.eye(3)), r"similarity='manhattan', separation='argmax'"),
        (lambda m: ahop.create("cosine", torch.eye(3)), r"create\('u-hop', patterns, similarity='cosine'"),
        (lambda m: memory_budget(5).__enter__(), "bytes must be at least 1 MiB"),
    ],
)
def test_bad_input_gets_one_clear_error(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(ModernHopfield(noise(5, 4)))


class BrokenError(RuntimeError):
    pass


def break_off(monkeypatch, where, at):
    """Let the ``at``-th call of ``module.name`` fail."""
    module, name = where
    real, calls = getattr(module, name), iter(range(10**6))

    def broken(*args, **kwargs):
        if next(calls) == at:
            raise BrokenError
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, broken)


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize(
    ("name", "where", "options"),
    [
        ("a-hop", (ahop.learning.features.Features, "loss_and_gradient"), {}),
        ("a-hop", (torch.optim.Adam, "step"), {"solver": "adam", "steps": 9}),
        ("k-hop", (torch.optim.Adam, "step"), {"steps": 9}),
        ("k2-hop", (torch.optim.Adam, "step"), {"steps": 9}),
        pytest.param(
            "b-hop",
            (independent.terms, "maximise"),
            {"hidden_causes": 0},
            marks=pytest.mark.slow,
        ),
        ("b-hop", (correlated.learning, "maximise"), {"hidden_causes": 1}),
        ("b-hop", (torch.Tensor, "index_add"), {"hidden_causes": 1, "learn_prior": True}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_a_fit_that_breaks_off_has_changed_nothing(name, where, options, at, monkeypatch):
    patterns = noise(20, 6)
    seen = ahop.variants.Noisy(0.3).sample(patterns, 40)
    memory = ahop.create(name, patterns, prior=torch.arange(1.0, 21.0)).fit(*seen, **options)
    before, report, state = memory.scores(seen.queries), memory.report, copy.deepcopy(memory.state_dict())
    if where[1] == "index_add" and at:
        pytest.skip("it is called once")
    break_off(monkeypatch, where, at)
    with pytest.raises(BrokenError):
        memory.fit(seen.queries * 2, seen.origins, **options)
    monkeypatch.undo()
    assert torch.equal(memory.scores(seen.queries), before)
    assert memory.report is report
    assert all(torch.equal(value, state[key]) for key, value in memory.state_dict().items())
    if name == "b-hop":
        break_off(monkeypatch, (memory, "_take"), 0)
        with pytest.raises(BrokenError):
            memory.partial_fit(seen.queries * 2, seen.origins)
        assert torch.equal(memory.scores(seen.queries), before)


def test_a_similarity_given_to_two_memories_is_learned_by_each():
    patterns = noise(20, 6)
    similarity = ahop.similarity.Likelihood(6)
    first, second = (ahop.BayesianHopfield(patterns, similarity=similarity) for _ in range(2))
    before = second.scores(patterns)
    first.fit(*ahop.variants.Noisy(0.3).sample(patterns, 30), hidden_causes=0)
    with torch.no_grad():
        first.similarity.model.bias += 1
    first.double()
    assert torch.equal(second.scores(patterns), before)
    assert similarity.bias.dtype == torch.float32 and not similarity.bias.any()


def test_a_fixed_similarity_says_that_it_has_nothing_to_learn():
    memory = ModernHopfield(noise(5, 4))
    assert not memory.learns and ahop.AdaptiveHopfield(noise(5, 4)).learns
    with pytest.warns(UserWarning, match="fit changes nothing: the 'dot' similarity is fixed"):
        assert memory.fit(noise(2, 4)) is memory


@pytest.mark.parametrize("bad", [1.5, "3", None, True, 0])
def test_counts_must_be_whole(bad):
    memory = ModernHopfield(noise(5, 4))
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        memory.recall(noise(2, 4), k=bad)
    with pytest.raises(ValueError, match="max_steps must be an integer of at least 1"):
        memory.retrieve(noise(2, 4), steps=None, max_steps=bad)
    if bad is not None:
        with pytest.raises(ValueError, match="steps must be an integer of at least 1"):
            memory.retrieve(noise(2, 4), steps=bad)


@pytest.mark.parametrize("tolerance", [-1, math.nan, "small", None])
def test_a_tolerance_must_be_a_size(tolerance):
    with pytest.raises(ValueError, match="tolerance must be a number"):
        ModernHopfield(noise(5, 4)).retrieve(noise(2, 4), steps=None, tolerance=tolerance)


@pytest.mark.parametrize("indices", [None, "first", object(), [0.5], [[True]]])
def test_what_to_forget_must_be_indices(indices):
    memory = ModernHopfield(noise(5, 4))
    with pytest.raises(ValueError, match="indices must be"):
        memory.remove(indices)
    assert len(memory) == 5


def test_a_mask_must_be_a_mask():
    with pytest.raises(ValueError, match='observed must be a boolean mask, "not-nan" or None, got object'):
        ModernHopfield(noise(5, 4)).recall(noise(2, 4), observed=object())
