"""Patterns in groups far apart are told from their neighbours as float64 does, or an error says why not."""

import copy

import pytest
import torch

import ahop
from ahop.index.stores import over
from ahop.nn import Hopfield
from ahop.similarity import Correlated, Mahalanobis, Moved, Similarity
from ahop.similarity.codes import NoCodesError

SIMILARITIES = ["dot", "distance", "euclidean", "manhattan", "cosine"]
OFFSETS = [3e3, 1e4, 1e6]


def world(offset, seed=0, patterns=200, dim=16, noise=0.2):
    """Two sites, two machines, dates as numbers."""
    generator = torch.Generator().manual_seed(seed)
    stored = torch.randn(patterns, dim, generator=generator)
    stored[patterns // 2 :] += offset
    return stored, stored + noise * torch.randn(patterns, dim, generator=generator)


def first(memory, queries):
    return memory.recall(queries).indices.squeeze(-1)


def exactly(similarity, patterns, queries, observed=None):
    similarity = Similarity.of(copy.deepcopy(similarity), patterns.shape[1]).double()
    with torch.no_grad():
        return similarity(patterns.double(), queries.double(), observed)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_first_choices_are_those_of_float64(similarity, offset):
    patterns, queries = world(offset)
    exact = exactly(similarity, patterns, queries)
    for separation in ("argmax", "softmax"):
        memory = ahop.AssociativeMemory(patterns, similarity, separation)
        assert first(memory, queries).equal(exact.argmax(1))
    if similarity not in ("dot", "cosine"):
        assert exact.argmax(1).equal(torch.arange(200))


@pytest.mark.parametrize("similarity", ["distance", "euclidean", "manhattan", "cosine"])
def test_first_choices_of_masked_queries_are_those_of_float64(similarity):
    patterns, queries = world(3e3)
    seen = torch.rand(queries.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    found = ahop.AssociativeMemory(patterns, similarity, "argmax").recall(queries, observed=seen).indices.squeeze(1)
    assert found.equal(exactly(similarity, patterns, queries, seen).argmax(1))


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_queries_far_from_all_patterns_find_the_nearest(similarity):
    patterns, queries = world(0.0)
    queries = queries + 1e6
    memory = ahop.AssociativeMemory(patterns, similarity, "argmax")
    assert first(memory, queries).equal(exactly(similarity, patterns, queries).argmax(1))


@pytest.mark.parametrize("similarity", ["distance", "euclidean", "manhattan"])
@pytest.mark.parametrize("small", [1e-6, 1e-25])
def test_a_small_group_beside_a_large_one_is_told_apart(similarity, small):
    patterns, queries = world(0.0)
    sizes = torch.cat([torch.full((100, 1), small), torch.full((100, 1), 1e6)])
    found = first(ahop.AssociativeMemory(patterns * sizes, similarity, "argmax"), queries * sizes)
    assert found.equal(torch.arange(200))


def test_a_prior_decides_among_patterns_that_only_float64_tells_apart():
    patterns, queries = world(0.0)
    queries = queries[:50] + 1e6
    prior = torch.ones(200)
    best = exactly("distance", patterns, queries).argsort(1, descending=True)
    prior[best[:, 0]] = 0
    memory = ahop.AssociativeMemory(patterns, "distance", "softmax", prior=prior)
    exact = exactly("distance", patterns, queries) + prior.log()
    assert first(memory, queries).equal(exact.argmax(1))


def test_patterns_that_are_stored_twice_need_no_more_digits():
    patterns, queries = world(0.0)
    memory = ahop.AssociativeMemory(torch.cat([patterns, patterns]), "manhattan", "argmax")
    assert memory.scores(queries).dtype == torch.float32
    assert (first(memory, queries) % 200).equal(torch.arange(200))


@pytest.mark.parametrize("offset", OFFSETS)
def test_networks_of_products_follow_float64(offset):
    patterns, queries = world(offset)
    for name in ("m-hop", "s-hop", "k-hop", "a-hop"):
        wide = ahop.create(name, patterns.double())
        assert first(ahop.create(name, patterns), queries).equal(first(wide, queries.double())), name
        answers = ahop.create(name, patterns).retrieve(queries), wide.retrieve(queries.double())
        torch.testing.assert_close(answers[0].double(), answers[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("similarity", ["distance", "euclidean", "manhattan"])
def test_layers_give_the_weights_of_float64(similarity, offset):
    patterns, queries = world(offset, patterns=30)
    layer = Hopfield(similarity=similarity)
    rows = patterns.requires_grad_(), queries, patterns.detach()
    weights = layer.get_association_matrix(rows)
    wide = tuple(row.detach().double() for row in rows)
    torch.testing.assert_close(weights.double(), layer.double().get_association_matrix(wide), rtol=1e-3, atol=1e-5)
    assert torch.isfinite(torch.autograd.grad(weights.square().sum(), patterns)[0]).all()


# --- what was learned ------------------------------------------------------------------------------------------------


def hidden_causes(tails=float("inf")):
    similarity = Correlated(16, 2, tails=tails)
    with torch.no_grad():
        similarity.loading.copy_(torch.randn(16, 2, generator=torch.Generator().manual_seed(1)))
        similarity.log_psi.fill_(-3.0)
        similarity.gain.fill_(0.9)
    return similarity


def a_covariance():
    similarity = Mahalanobis(16)
    similarity.whitening.copy_(torch.randn(16, 16, generator=torch.Generator().manual_seed(1)) * 2)
    return similarity


def another_space():
    generator = torch.Generator().manual_seed(1)
    turn = torch.linalg.qr(torch.randn(16, 16, generator=generator)).Q
    spread = torch.randn(16, 16, generator=generator) * 0.05 + 0.2 * torch.eye(16)
    return Moved.around(turn, torch.ones(16), spread @ spread.mT, float("inf"), 0.5)


LEARNED = [hidden_causes(), hidden_causes(4.0), a_covariance(), another_space()]


def asked_of(similarity, patterns):
    """Queries as the likelihood expects them."""
    noise = 0.1 * torch.randn(patterns.shape, generator=torch.Generator().manual_seed(2))
    if isinstance(similarity, Moved):
        return (patterns.double() @ similarity.matrix.detach().double().mT).float() + 1 + noise
    return (0.9 if isinstance(similarity, Correlated) else 1.0) * patterns + noise


@pytest.mark.parametrize("offset", [0.0, *OFFSETS])
@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("similarity", LEARNED, ids=lambda one: one.name)
def test_learned_distances_are_those_of_float64(similarity, learning, offset):
    patterns, _ = world(offset)
    queries = asked_of(similarity, patterns)
    with torch.set_grad_enabled(learning):
        found = similarity(patterns, queries)
    exact = exactly(similarity, patterns, queries)
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=5e-3)
    assert found.dtype == torch.float32


@pytest.mark.parametrize("similarity", [hidden_causes(), another_space()], ids=lambda one: one.name)
def test_learned_distances_of_masked_queries_are_those_of_float64(similarity):
    patterns, _ = world(3e3)
    queries = asked_of(similarity, patterns)
    seen = torch.rand(queries.shape, generator=torch.Generator().manual_seed(3)) < 0.8
    with torch.no_grad():
        found = similarity(patterns, queries, seen)
    torch.testing.assert_close(found.double(), exactly(similarity, patterns, queries, seen), rtol=1e-4, atol=5e-3)


@pytest.mark.parametrize("similarity", [hidden_causes(), hidden_causes(4.0), another_space()], ids=lambda one: one.name)
def test_codes_and_the_index_find_what_exact_scores_find(similarity):
    patterns, _ = world(1e4, patterns=2000)
    queries = asked_of(similarity, patterns)[::7]
    exact = exactly(similarity, patterns, queries).argmax(1)
    memory = ahop.BayesianHopfield(patterns, similarity=similarity)
    codes = memory.as_inner_product()
    products = codes.encode_queries(queries) @ codes.encode_patterns(patterns).mT
    assert products.argmax(1).equal(exact)
    index = memory.index()
    assert index.recall(queries, candidates=5).indices.squeeze(1).equal(exact)
    # Patterns from far away make new codes.
    near = ahop.BayesianHopfield(patterns[:1000], similarity=similarity)
    index = near.index()
    near.add(patterns[1000:])
    assert index.recall(queries, candidates=5).indices.squeeze(1).equal(exact)


def test_an_index_of_wide_codes_is_the_same_after_a_journey(tmp_path):
    patterns, _ = world(1e4, patterns=2000)
    memory = ahop.BayesianHopfield(patterns, similarity=hidden_causes())
    queries = asked_of(hidden_causes(), patterns)[::7]
    memory.index().save(tmp_path / "index")
    again = ahop.index.Index.open(tmp_path / "index")
    found, expected = (index.recall(queries, candidates=5) for index in (again, memory.index()))
    assert found.indices.equal(expected.indices)


def test_what_even_float64_cannot_tell_by_dot_products_is_refused_and_scored_exactly():
    patterns, _ = world(1e9)
    memory = ahop.BayesianHopfield(patterns, similarity=hidden_causes())
    with pytest.raises(NoCodesError, match="patterns lie too far apart, in units of the noise, for dot products"):
        memory.index()
    queries = asked_of(hidden_causes(), patterns)[:100]
    assert first(memory, queries).equal(exactly(hidden_causes(), patterns, queries).argmax(1))


def test_a_database_that_would_lose_neighbours_is_refused():
    patterns, _ = world(1e4)
    memory = ahop.BayesianHopfield(patterns, similarity=hidden_causes())
    with pytest.raises(NoCodesError, match="patterns lie too far apart for a database"):
        over(memory, None)


@pytest.mark.parametrize("origins", [True, False])
def test_a_fit_of_patterns_far_apart_finds_them(origins):
    patterns, queries = world(3e3, patterns=60)
    loading = torch.randn(16, 1, generator=torch.Generator().manual_seed(4))
    queries = queries + torch.randn(60, 1, generator=torch.Generator().manual_seed(5)) @ loading.mT
    known = torch.arange(60) if origins else None
    memory = ahop.BayesianHopfield(patterns).fit(queries, known, hidden_causes=1)
    assert (first(memory, queries) == torch.arange(60)).double().mean() > 0.98


def test_footprints_read_out_what_float64_does_where_logits_are_large():
    patterns, queries = world(0.0, patterns=40)
    for moved, beta in ((queries + 1e5, 1.0), (queries, 1e6)):
        memories = [
            ahop.AdaptiveHopfield(some, bases=["distance"], separation=ahop.separation.Softmax(beta))
            for some in (patterns.repeat(2, 1), patterns.repeat(2, 1).double())
        ]
        found, exact = (memory.retrieve(moved.to(memory.patterns)) for memory in memories)
        torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)
        found, exact = (memory.recall(moved.to(memory.patterns), 2) for memory in memories)
        torch.testing.assert_close(found.probabilities.double(), exact.probabilities, rtol=1e-3, atol=1e-3)
        assert (found.indices[:, 0] % 40).equal(exact.indices[:, 0] % 40)
