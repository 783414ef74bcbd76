import math

import pytest
import torch

import ahop
from ahop.similarity import Correlated

GENERATOR = torch.Generator().manual_seed(0)


def learned(tails=4.0, rank=2, dim=6):
    correlated = Correlated(dim, rank, tails=tails).double()
    with torch.no_grad():
        for parameter in correlated.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=GENERATOR))
        correlated.log_beta.zero_()
    return correlated


def test_normal_tails_are_the_normal_distribution():
    correlated = learned(math.inf)
    patterns, queries = torch.randn(2, 5, 6, generator=GENERATOR).double()
    covariance = correlated.loading @ correlated.loading.T + torch.diag(correlated.log_psi.exp())
    for k, pattern in enumerate(patterns):
        normal = torch.distributions.MultivariateNormal(correlated.gain * pattern + correlated.bias, covariance)
        torch.testing.assert_close(correlated(patterns, queries)[:, k], normal.log_prob(queries))


def test_heavy_tails_are_students():
    correlated = learned(3.0, rank=0, dim=1)
    centre, scale = correlated.bias[0] + correlated.gain * 0.4, (correlated.log_psi[0] / 2).exp()
    student = torch.distributions.StudentT(3.0, centre, scale)
    queries = torch.linspace(-5, 5, 11).double()[:, None]
    expected = student.log_prob(queries)
    torch.testing.assert_close(correlated(torch.full((1, 1), 0.4).double(), queries), expected)


@pytest.mark.parametrize("tails", [4.0, math.inf])
def test_what_is_not_observed_is_marginalised(tails):
    correlated = learned(tails)
    patterns, queries = torch.randn(2, 5, 6, generator=GENERATOR).double()
    kept = torch.tensor([0, 2, 3])
    small = Correlated(3, 2, tails=tails).double()
    with torch.no_grad():
        small.gain.copy_(correlated.gain)
        for name in ("bias", "loading", "log_psi"):
            small.get_parameter(name).copy_(correlated.get_parameter(name)[kept])
    mask = torch.zeros(5, 6, dtype=torch.bool)
    mask[:, kept] = True
    scores = correlated(patterns, queries, mask)
    torch.testing.assert_close(scores, small(patterns[:, kept], queries[:, kept]))
    torch.testing.assert_close(
        correlated.stranger(patterns, queries, mask), small.stranger(patterns[:, kept], queries[:, kept])
    )


def test_all_observed_is_as_none_given():
    correlated = learned()
    patterns, queries = torch.randn(2, 5, 6, generator=GENERATOR).double()
    torch.testing.assert_close(
        correlated(patterns, queries, torch.ones(5, 6, dtype=torch.bool)), correlated(patterns, queries)
    )


@pytest.mark.parametrize("tails", [4.0, math.inf])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients(tails, masked):
    correlated = learned(tails)
    patterns, queries = torch.randn(2, 3, 6, generator=GENERATOR).double()
    mask = torch.rand(3, 6, generator=GENERATOR) < 0.6 if masked else None
    inputs = [patterns.requires_grad_(), queries.requires_grad_(), *correlated.parameters()]

    def scores(patterns, queries, *_):
        return correlated(patterns, queries, mask)

    assert torch.autograd.gradcheck(scores, inputs)


def test_it_is_saved_and_loaded(tmp_path):
    memory = ahop.BayesianHopfield(torch.randn(4, 6, generator=GENERATOR), similarity=learned(math.inf).float())
    memory.save(tmp_path)
    again = ahop.load(tmp_path)
    queries = torch.randn(3, 6, generator=GENERATOR)
    torch.testing.assert_close(again.scores(queries), memory.scores(queries))
    text, model = again.similarity.describe(), again.similarity.model
    most, farthest = int(model.loading.square().sum(1).argmax()), int(model.bias.abs().argmax())
    assert "hidden causes" in text and f"They move column {most} most, by " in text
    assert f"on average, and most in column {farthest}, by {model.bias[farthest]:+.2g}." in text


@pytest.mark.parametrize(("dim", "rank", "tails"), [(3, 4, 4.0), (0, 0, 4.0), (3, 1, 0.0)])
def test_bad_shapes(dim, rank, tails):
    with pytest.raises(ValueError, match="must"):
        Correlated(dim, rank, tails=tails)
