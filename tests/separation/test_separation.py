import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop.separation import (
    Argmax,
    Entmax,
    Epanechnikov,
    Exponential,
    Identity,
    KSubsets,
    Normmax,
    Power,
    Separation,
    Softmax,
    Sparsemax,
)

CONVEX = [
    *(Softmax(1.7), Sparsemax(0.8), Entmax(1.3, 2.0), Entmax(1.5), Entmax(2.0)),
    *(Normmax(3.0, 0.7), Exponential()),
]


def score_vectors():
    return st.lists(st.floats(-5, 5), min_size=1, max_size=8).map(lambda v: torch.tensor(v, dtype=torch.float64))


@pytest.mark.parametrize("separation", CONVEX, ids=repr)
@given(scores=score_vectors())
def test_weights_are_the_gradient_of_the_conjugate(separation, scores):
    separation = separation.double()
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(separation.conjugate(scores).sum(), scores)
    torch.testing.assert_close(separation(scores), gradient, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("separation", [*CONVEX, Argmax()], ids=repr)
@given(scores=score_vectors())
def test_weights_are_probabilities_that_respect_the_order_of_scores(separation, scores):
    weights = separation.double()(scores).detach()
    assert weights.min() >= 0
    assert weights.sum().item() == pytest.approx(1)
    higher = scores[:, None] > scores
    assert bool((weights[:, None] >= weights - 1e-9)[higher].all())


@pytest.mark.parametrize("separation", [*CONVEX, Power(3)], ids=repr)
def test_gradients_are_right(separation):
    scores = torch.tensor([[0.3, -1.0, 0.9, 0.5]], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(separation.double(), scores)


@pytest.mark.parametrize("kind", [Softmax, Sparsemax, Entmax, Normmax, KSubsets])
def test_gradients_reach_beta_and_alpha(kind):
    separation = kind(beta=0.7, learn=True, **({"alpha": 1.5, "learn_alpha": True} if kind is Entmax else {})).double()
    scores = torch.tensor([0.3, -0.2, 0.9, 0.5], dtype=torch.float64)
    torch.autograd.gradcheck(lambda *_: separation(scores), tuple(separation.parameters()), atol=1e-4)


def test_large_scores_do_not_overflow():
    scores = torch.tensor([1e30, 5e29, -1e30])
    for separation in (
        Power(9),
        Exponential(),
        Softmax(),
        Sparsemax(),
        Entmax(),
        Normmax(),
        KSubsets(),
        Epanechnikov(),
    ):
        assert torch.isfinite(separation(scores)).all()
    assert torch.isfinite(Exponential().conjugate(torch.tensor([1e4, 1e4])))


@given(scores=score_vectors(), k=st.integers(1, 5))
def test_power_is_proportional_to_the_power(scores, k):
    scores = scores.round(decimals=3)
    powers = scores**k
    expected = powers / powers.abs().sum().clamp_min(1e-300)
    torch.testing.assert_close(Power(k)(scores), expected)


def test_alpha_stays_inside_its_interval_however_far_it_is_pushed():
    separation = Entmax(1.5, learn_alpha=True)
    for push in (-1e3, 1e3):
        torch.nn.init.constant_(separation.alpha_logit, push)
        assert 1 < separation.alpha.item() <= 2
        assert torch.isfinite(separation(torch.tensor([0.0, 1.0, 3.0]))).all()


def test_only_distributions_take_a_prior():
    assert not Identity().probabilistic
    torch.testing.assert_close(
        Identity().probabilities(torch.tensor([3.0, -5.0, 1.0])), torch.tensor([0.75, 0.0, 0.25])
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Softmax(beta=-1), r"beta must be a number in 1e-20 to 1e\+20, got -1"),
        (lambda: Entmax(alpha=1.0), r"alpha must be a number in 1.001 to 2, got 1.0"),
        (lambda: Normmax(alpha=6), r"alpha must be a number in 1.001 to 5, got 6"),
        (lambda: KSubsets(0), "k must be an integer of at least 1, got 0"),
        (lambda: KSubsets(3)(torch.zeros(2)), "k must be between 1 and 2, the number of patterns; got 3"),
        (lambda: Power(0), "k must be an integer of at least 1, got 0"),
        (lambda: Separation.of("softmin"), "unknown separation 'softmin'; known: argmax"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("separation", [Normmax(3.0, 2.0), KSubsets(3, 0.5), Epanechnikov(0.2)], ids=repr)
def test_a_memory_comes_back_from_its_folder_with_its_separation(separation, tmp_path):
    patterns = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    memory = ahop.UniversalHopfield(patterns, similarity="distance", separation=separation)
    memory.save(tmp_path / "memory")
    loaded = ahop.load(tmp_path / "memory")
    assert repr(loaded.separation) == repr(separation)
    assert torch.equal(loaded.weights(patterns + 0.1), memory.weights(patterns + 0.1))
