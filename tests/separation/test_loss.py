import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ahop.separation import (
    Argmax,
    Entmax,
    Epanechnikov,
    Exponential,
    Identity,
    KSubsets,
    Normmax,
    Softmax,
    Sparsemax,
    fenchel_young_loss,
)

STRICT = [Softmax(1.7), Exponential(), Sparsemax(0.8), Entmax(1.3, 2.0), Normmax(1.3), Normmax(5.0, 0.5), KSubsets(2)]


def draw(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("separation", STRICT, ids=repr)
@settings(max_examples=3)
@given(seed=st.integers(0, 9999), far=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_loss_is_zero_where_the_weights_are_the_target_and_above_zero_elsewhere(separation, seed, far):
    separation = separation.double()
    scores = far * draw(50, 5, seed=seed)
    weights, target = separation(scores), separation(draw(50, 5, seed=seed + 1))
    assert bool((fenchel_young_loss(separation, scores, weights).abs() < 1e-9).all())
    loss = fenchel_young_loss(separation, scores, target)
    assert bool((loss > -1e-12).all())
    assert bool((loss > 1e-6)[(weights - target).abs().amax(1) > 1e-2].all())


@pytest.mark.parametrize("separation", STRICT, ids=repr)
def test_its_gradient_is_the_weights_less_the_target(separation):
    separation, scores = separation.double(), draw(2, 4, seed=0).requires_grad_()
    target = separation(draw(2, 4, seed=1)).detach()
    (gradient,) = torch.autograd.grad(fenchel_young_loss(separation, scores, target).sum(), scores)
    torch.testing.assert_close(gradient, separation(scores) - target)
    torch.autograd.gradcheck(lambda scores: fenchel_young_loss(separation, scores, target), scores)


@given(seed=st.integers(0, 9999))
def test_for_softmax_it_is_the_cross_entropy_over_beta(seed):
    scores, wanted = draw(4, 6, seed=seed), torch.arange(4)
    target = torch.eye(6).double()[wanted]
    expected = torch.nn.functional.cross_entropy(1.7 * scores, wanted, reduction="none") / 1.7
    torch.testing.assert_close(fenchel_young_loss(Softmax(1.7).double(), scores, target), expected)


@pytest.mark.parametrize("separation", [Sparsemax(0.8), Entmax(1.5), Normmax(3.0), KSubsets(1, 2.0)], ids=repr)
def test_it_is_zero_once_the_target_leads_by_the_margin_and_not_before(separation):
    separation, target = separation.double(), torch.tensor([1.0, 0.0, 0.0]).double()
    lead = separation.margin / separation.beta.item() * target
    assert fenchel_young_loss(separation, 1.001 * lead, target) == pytest.approx(0, abs=1e-12)
    assert fenchel_young_loss(separation, 0.9 * lead, target) > 1e-6


def test_for_argmax_it_is_how_far_the_target_is_behind_the_best():
    scores, target = torch.tensor([3.0, 1.0]), torch.tensor([0.0, 1.0])
    assert fenchel_young_loss(Argmax(), scores, target).item() == 2


def test_large_scores_leave_a_loss_its_digits():
    scores, target = torch.tensor([0.5, 0.0, 0.25]), torch.tensor([0.0, 1.0, 0.0])
    for separation in (Softmax(), Sparsemax()):
        near, far = (fenchel_young_loss(separation, scores + shift, target) for shift in (0.0, 2.0**20))
        assert near == far > 0.5


@pytest.mark.parametrize(
    ("separation", "target", "message"),
    [
        (Softmax(), [1.0, 0.0, 0.0], r"target must have the shape of the scores, \(2,\); got \(3,\)"),
        (Sparsemax(), [0.5, 0.2], "target must be weights from 0 to 1 that sum to 1, got 0.2 to 0.5 with sums as 0.7"),
        (Sparsemax(), [2.0, -1.0], "target must be weights from 0 to 1 that sum to 1, got -1 to 2 with sums as 1"),
        (KSubsets(2), [1.0, 0.0], "target must be weights from 0 to 1 that sum to 2"),
        (Identity(), [1.0, 0.0], "identity separation maximises no regularised score, so it has no regulariser"),
        (Epanechnikov(), [1.0, 0.0], "epanechnikov separation maximises no regularised score"),
    ],
)
def test_what_has_no_loss_is_named(separation, target, message):
    with pytest.raises(ValueError, match=message):
        fenchel_young_loss(separation, torch.zeros(2), torch.tensor(target))
