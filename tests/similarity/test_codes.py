import math

import pytest
import torch

import ahop
from ahop.similarity import Likelihood, Regimes, reranking
from ahop.similarity import codes as similarity_codes
from ahop.similarity.codes import inner_product
from ahop.variants import Mixed

GENERATOR = torch.Generator().manual_seed(0)
PATTERNS = torch.rand(300, 16, generator=GENERATOR) * 2 - 1


@pytest.fixture(scope="module")
def memory():
    world = Mixed(0.4, 0.4, 0.4)
    return ahop.BayesianHopfield(PATTERNS).fit(*world.sample(PATTERNS, 300))


def error(codes, memory, queries):
    with torch.no_grad():
        exact = memory.similarity.model.terms(PATTERNS, queries[:, None]).sum(-1) * memory.similarity.log_beta.exp()
        gap = codes.encode_queries(queries) @ codes.encode_patterns(PATTERNS).T - exact
    return float((gap - gap.mean(1, keepdim=True)).square().mean().sqrt())


@pytest.mark.parametrize("tolerance", [0.1, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.3, 0.02))])
def test_dot_products_are_the_scores_within_the_tolerance(memory, tolerance):
    queries = Mixed(0.4, 0.4, 0.4).sample(PATTERNS, 400).queries
    codes = memory.as_inner_product(tolerance)
    assert error(codes, memory, queries) < tolerance


def test_a_smaller_tolerance_takes_longer_codes(memory):
    ranks = [memory.similarity.model.codes(PATTERNS, tolerance).rank for tolerance in (1.0, 0.1, 0.01)]
    assert ranks == sorted(set(ranks))


def test_unobserved_dimensions_are_left_out(memory):
    queries = Mixed(0.4, 0.4, 0.4).sample(PATTERNS, 50).queries
    mask = torch.rand(50, 16, generator=GENERATOR) < 0.5
    with torch.no_grad():
        gap = memory.as_inner_product(0.01)(PATTERNS, queries, mask) - memory.similarity(PATTERNS, queries, mask)
    assert float((gap - gap.mean(1, keepdim=True)).abs().max()) < 0.1


def test_scoring_takes_the_fast_way_when_terms_are_many(memory, monkeypatch):
    queries = Mixed(0.4, 0.4, 0.4).sample(PATTERNS, 200).queries
    with torch.no_grad():
        exact = memory.similarity(PATTERNS, queries)
        monkeypatch.setattr(similarity_codes, "_MANY_TERMS", 1)
        assert similarity_codes.approximate(memory.similarity.model, PATTERNS, len(queries)) is not None
        monkeypatch.setattr(reranking, "_RERANKED_PATTERNS", 5)
        fast = memory.similarity(PATTERNS, queries)
    best = exact.topk(3).indices
    torch.testing.assert_close(fast.gather(1, best), exact.gather(1, best), rtol=1e-5, atol=1e-3)
    assert float((fast - exact).abs().max()) > 0
    assert float((fast - exact).square().mean().sqrt()) < 0.03


def test_codes_of_a_few_patterns_are_held_at_a_time_and_scores_are_the_same(memory, monkeypatch):
    monkeypatch.setattr(similarity_codes, "_MANY_TERMS", 1)
    encode, held, many = similarity_codes.InnerProduct.encode_patterns, [], PATTERNS.repeat(8, 1)

    def recorded(self, patterns):
        held.append(len(patterns))
        return encode(self, patterns)

    monkeypatch.setattr(similarity_codes.InnerProduct, "encode_patterns", recorded)
    with torch.no_grad():
        table = similarity_codes.approximate(memory.similarity.model, many, 200)
        whole = table(PATTERNS)
        assert held == [2400]
        with ahop.memory_budget(2**20):
            torch.testing.assert_close(table(PATTERNS), whole)
    assert sum(held) == 4800 and max(held[1:]) < 2400


def test_too_sharp_a_noise_is_refused_and_scored_exactly(monkeypatch):
    sharp = Likelihood(16)
    with torch.no_grad():
        sharp.log_sigma.fill_(-8.0)
    with pytest.raises(ValueError, match="is too sharp for dot products over values that span"):
        inner_product(sharp, PATTERNS, 0.1)
    monkeypatch.setattr(similarity_codes, "_MANY_TERMS", 1)
    assert similarity_codes.approximate(sharp, PATTERNS, len(PATTERNS)) is None


def test_what_has_no_codes(memory):
    with pytest.raises(ValueError, match=r"tolerance must be a positive and finite number, got 0.0"):
        memory.as_inner_product(0.0)
    several = ahop.BayesianHopfield(PATTERNS, similarity=Regimes([Likelihood(16), Likelihood(16)]))
    with pytest.raises(ValueError, match="Regimes has no codes"):
        several.as_inner_product()


def test_codes_of_a_subspace_keep_the_order():
    correlated = ahop.similarity.Correlated(16, 2)
    with torch.no_grad():
        correlated.loading.copy_(torch.randn(16, 2, generator=GENERATOR))
    memory = ahop.BayesianHopfield(PATTERNS, similarity=correlated)
    queries = torch.randn(50, 16, generator=GENERATOR)
    codes = memory.as_inner_product()
    products = codes.encode_queries(queries) @ codes.encode_patterns(PATTERNS).T
    assert products.argmax(1).equal(memory.scores(queries).argmax(1))
    with pytest.raises(ValueError, match="observed is not supported"):
        codes(PATTERNS, queries, torch.zeros(50, 16, dtype=torch.bool))


def test_the_same_value_everywhere_has_codes_too():
    patterns = torch.ones(5, 3)
    codes = ahop.BayesianHopfield(patterns).as_inner_product()
    assert torch.isfinite(codes(patterns, patterns)).all()


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_values_far_from_zero_and_gains_are_no_worse(offset):
    patterns = PATTERNS.double() + offset
    likelihood = Likelihood(16, low=offset - 3, high=offset + 3).double()
    with torch.no_grad():
        likelihood.gain.fill_(1.5)
        likelihood.log_sigma.fill_(-1.0)
        likelihood.bias.copy_(-0.5 * offset + torch.linspace(-1, 1, 16))
        queries = 1.5 * patterns + likelihood.bias + 0.3 * torch.randn(300, 16, generator=GENERATOR)
        exact = likelihood.terms(patterns, queries[:, None]).sum(-1)
        codes = inner_product(likelihood, patterns, 0.05)
        gap = codes(patterns, queries) - exact
    assert float((gap - gap.mean(1, keepdim=True)).square().mean().sqrt()) < 0.1


def test_codes_do_not_follow_what_is_learned_later(memory):
    queries = PATTERNS[:5]
    codes = memory.as_inner_product()
    before = codes.encode_queries(queries)
    with torch.no_grad():
        memory.similarity.model.bias += 1.0
    after = codes.encode_queries(queries)
    with torch.no_grad():
        memory.similarity.model.bias -= 1.0
    assert torch.equal(before, after)


def test_scores_carry_gradients_however_many_they_are(memory, monkeypatch):
    monkeypatch.setattr(similarity_codes, "_MANY_TERMS", 1)
    queries = Mixed(0.4, 0.4, 0.4).sample(PATTERNS, 200).queries
    for part in (Likelihood(16), Regimes([Likelihood(16), Likelihood(16)])):
        part(PATTERNS, queries).sum().backward()
        assert all(parameter.grad is not None for parameter in part.parameters())


def test_codes_of_hidden_causes_go_together_with_gradients_and_without():
    model = ahop.similarity.Correlated(4, 2, tails=math.inf)
    model.loading.data.copy_(torch.randn(4, 2, generator=torch.Generator().manual_seed(0)))
    patterns = torch.rand(30, 4, generator=torch.Generator().manual_seed(1))
    codes = model.codes(patterns, 0.1)
    stored = codes.encode_patterns(patterns)
    with torch.no_grad():
        asked = codes.encode_queries(patterns)
        wanted = model(patterns, patterns)
    products = asked @ stored.mT
    torch.testing.assert_close(products - products[:, :1], wanted - wanted[:, :1])
