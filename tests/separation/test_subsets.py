import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop.separation import KSubsets, Softmax, Sparsemax


def score_vectors(least):
    return st.lists(st.floats(-5, 5), min_size=least, max_size=8).map(lambda v: torch.tensor(v, dtype=torch.float64))


@given(scores=score_vectors(3), k=st.integers(1, 3))
def test_weights_are_probabilities_that_sum_to_k_and_respect_the_order_of_scores(scores, k):
    weights = KSubsets(k, 1.3).double()(scores)
    assert weights.min() >= 0 and weights.max() <= 1
    assert weights.sum().item() == pytest.approx(k)
    higher = scores[:, None] > scores
    assert bool((weights[:, None] >= weights - 1e-9)[higher].all())


@given(scores=score_vectors(1))
def test_a_set_of_one_is_sparsemax_and_a_set_of_all_is_all(scores):
    torch.testing.assert_close(KSubsets(1, 0.7).double()(scores), Sparsemax(0.7).double()(scores))
    assert bool((KSubsets(len(scores))(scores) == 1).all())


@given(scores=score_vectors(3))
def test_weights_are_the_gradient_of_the_conjugate(scores):
    separation = KSubsets(3, 0.4).double()
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(separation.conjugate(scores).sum(), scores)
    torch.testing.assert_close(separation(scores), gradient, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("shape", [(4,), (2, 1, 4), (1, 3, 1, 4)])
def test_gradients_are_right_in_any_shape(shape):
    # One row of the shape at a time is out of its margin, and one within.
    scores = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    torch.autograd.gradcheck(KSubsets(2, 1.5).double(), scores)


def test_exact_weights_have_no_gradient_though_scores_tie():
    scores = torch.tensor([1.0, 1.0, -2.0], dtype=torch.float64, requires_grad=True)
    weights = KSubsets(2).double()(scores)
    (gradient,) = torch.autograd.grad(weights[0], scores)
    assert weights.tolist() == [1.0, 1.0, 0.0] and not gradient.any()


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e8, 1e30])
def test_scores_of_any_size_and_temperature_give_numbers(scale):
    scores = scale * torch.tensor([[3.0, 2.0, 2.0, -1.0]])
    for beta in (1e-20, 1.0, 1e20):
        separation = KSubsets(2, beta)
        torch.testing.assert_close(separation(scores).sum(-1), torch.full((1,), 2.0))
        assert torch.isfinite(separation.conjugate(scores)).all()


def test_a_recall_says_of_each_pattern_whether_it_is_in_the_set():
    patterns = torch.eye(5)
    memory = ahop.AssociativeMemory(patterns, "dot", KSubsets(2, beta=4.0))
    found = memory.recall(patterns[1] + patterns[3], k=3)
    assert sorted(found.indices[:2].tolist()) == [1, 3] and found.probabilities.tolist() == [1.0, 1.0, 0.0]
    torch.testing.assert_close(memory.retrieve(patterns[1] + patterns[3]), patterns[1] + patterns[3])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_noisy_sums_of_patterns_are_given_back_as_sets_at_rest_and_softmax_gives_none(k):
    """Without noise, a large beta of softmax stays at the mean of two, which is no minimum of its energy."""

    def draw(*shape, seed):
        return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

    for seed in range(3):
        patterns = torch.nn.functional.normalize(draw(40, 200, seed=seed), dim=1)
        chosen = draw(20, 40, seed=seed + 10).topk(k).indices.sort().values
        sums = patterns[chosen].sum(1)
        queries = sums + 0.03 * draw(20, 200, seed=seed + 20)
        memory = ahop.AssociativeMemory(patterns, "dot", KSubsets(k, 8.0).double())
        rest = memory.retrieve(queries, steps=None)
        whole = (memory.recall(rest, k=k).indices.sort().values == chosen).all(1)
        assert whole.double().mean() > 0.9
        torch.testing.assert_close(rest[whole], sums[whole])
        for beta in (1.0, 4.0, 16.0, 64.0):
            plain = ahop.AssociativeMemory(patterns, "dot", Softmax(beta).double())
            rest = plain.retrieve(queries, steps=None, max_steps=5000)
            # At one pattern or at a blur of many: not even the direction of the sum is left.
            assert bool((torch.cosine_similarity(rest, sums) < 0.9).all())
            assert (plain.recall(rest, k=k).indices.sort().values == chosen).all(1).double().mean() < 0.4


def test_a_pattern_that_the_prior_rules_out_is_in_no_set():
    memory = ahop.AssociativeMemory(torch.eye(4), "dot", KSubsets(2), prior=[0, 1, 1, 1])
    assert memory.weights([1.0, 0.0, 0.0, 0.0])[0] == 0
    uniform = ahop.AssociativeMemory(torch.eye(4), "dot", KSubsets(2), prior=[1, 1, 1, 1])
    plain = ahop.AssociativeMemory(torch.eye(4), "dot", KSubsets(2))
    torch.testing.assert_close(uniform.weights(torch.eye(4)), plain.weights(torch.eye(4)))


def test_what_is_hidden_takes_no_weight_from_a_pattern_however_far_that_is():
    stored, state = torch.tensor([[0.0], [1.0], [-1e6]]), torch.tensor([[1.0]])
    layer = ahop.nn.Hopfield(separation=KSubsets(2))
    hidden = torch.tensor([[True, False, False]])
    weights = layer.get_association_matrix((stored, state, stored), association_mask=hidden)
    assert weights.flatten().tolist() == [0.0, 1.0, 1.0]
