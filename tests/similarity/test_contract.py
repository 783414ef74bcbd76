"""A similarity is one class: whoever takes one can name it, learn it, copy it and keep it."""

import numpy as np
import pytest
import torch
from torch import nn

import ahop
from ahop.estimators import HopfieldBagClassifier, HopfieldClassifier, HopfieldRegressor, HopfieldRetriever
from ahop.learning.report import FitReport
from ahop.similarity import Adaptive, Similarity
from ahop.similarity.mahalanobis import Mahalanobis
from ahop.variants import Mixed

PATTERNS = torch.rand(30, 6, generator=torch.Generator().manual_seed(0)) * 2 - 1
SEEN = Mixed(0.0, 0.1, 0.5).sample(PATTERNS, 60)


class Weighed(Similarity):
    """A private one: squared distances, each dimension weighed by how exact it is."""

    name = "weighed"

    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.scale = nn.Parameter(torch.ones(dim))
        self.register_buffer("shift", torch.zeros(dim))

    def forward(self, patterns, queries, observed=None):
        gaps = (queries - self.shift).unsqueeze(-2) - patterns.unsqueeze(-3)
        squares = (gaps * self.scale).square()
        return -(squares if observed is None else squares * observed.unsqueeze(-2)).sum(-1)

    @torch.no_grad()
    def fit(self, patterns, queries, origins=None, *, observed=None, log_prior=None):
        gaps = queries - patterns[origins]
        self.shift.copy_(gaps.mean(0))
        self.scale.copy_(1 / gaps.std(0).clamp_min(1e-6))
        return FitReport("closed form", float(gaps.square().mean()), 1, converged=True)


NEWCOMERS = [Mahalanobis, Weighed]


@pytest.mark.parametrize("kind", NEWCOMERS)
@pytest.mark.parametrize("by_name", [True, False])
def test_it_learns_in_every_memory_that_takes_a_similarity(kind, by_name, tmp_path):
    given = kind.name if by_name else kind(6)
    for make in (
        lambda: ahop.UniversalHopfield(PATTERNS, similarity=given),
        lambda: ahop.AssociativeMemory(PATTERNS, given, "softmax"),
        lambda: ahop.create("u-hop", PATTERNS, similarity=given, separation="sparsemax"),
    ):
        memory = make()
        assert memory.learns
        before = ahop.metrics.retrieval_accuracy(memory, SEEN)
        assert memory.fit(*SEEN).report.converged
        assert ahop.metrics.retrieval_accuracy(memory, SEEN) > before
        memory.save(tmp_path)
        again = ahop.load(tmp_path)
        assert type(again.similarity) is kind
        assert torch.equal(again.scores(SEEN.queries), memory.scores(SEEN.queries))
    assert by_name or not any(tensor.sum() > 6 for tensor in given.state_dict().values())


@pytest.mark.parametrize("kind", NEWCOMERS)
def test_each_head_of_a_layer_has_its_own_when_it_is_named(kind):
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    named = ahop.nn.Hopfield(8, num_heads=4, similarity=kind.name)
    assert len({id(part) for part in named.association.similarities}) == 4
    shared = ahop.nn.Hopfield(8, num_heads=4, similarity=kind(2))
    assert len(shared.association.similarities) == 1
    for layer in (named, shared):
        assert torch.isfinite(layer(x)).all() and torch.isfinite(layer.energy(x)).all()
        layer(x).sum().backward()
    fixed = ahop.nn.Hopfield(8, num_heads=4, similarity="distance")
    assert len(fixed.association.similarities) == 1


@pytest.mark.parametrize("kind", NEWCOMERS)
@pytest.mark.parametrize("by_name", [True, False])
def test_it_compares_rows_and_bags(kind, by_name):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 3)), np.arange(40) % 2
    rows[:, 0] += 3 * labels
    given = kind.name if by_name else kind(8)
    classifier = HopfieldClassifier(similarity=given, width=8, epochs=2, random_state=0).fit(rows, labels)
    assert classifier.predict_proba(rows).shape == (40, 2)
    HopfieldRegressor(similarity=given, width=8, epochs=2, random_state=0).fit(rows, rows[:, 1]).predict(rows)
    bags = [rows[start : start + 2] for start in range(0, 40, 2)]
    part = kind.name if by_name else kind(2)
    bag = HopfieldBagClassifier(similarity=part, width=8, num_heads=4, epochs=2, random_state=0)
    assert bag.fit(bags, labels[::2] ^ (np.arange(20) % 2)).predict_proba(bags).shape == (20, 2)
    options = {"similarity": kind.name if by_name else kind(3)}
    retriever = HopfieldRetriever("u-hop", options=options).fit(rows, queries=rows + 1, origins=np.arange(40))
    assert (retriever.kneighbors(rows + 1)[1][:, 0] == np.arange(40)).all()


def test_one_resolver_says_what_it_needs():
    assert Similarity.of("dot", 5).name == "dot"
    assert Similarity.of("adaptive", 5).dim == 5
    with pytest.raises(ValueError, match="'mahalanobis' needs a number of dimensions"):
        Similarity.of("mahalanobis")
    with pytest.raises(ValueError, match="similarity must be for 5 dimensions, got one for 4"):
        Similarity.of(Adaptive(4), 5)
    with pytest.raises(ValueError, match=r"unknown similarity 'guess'; known: .*adaptive"):
        Similarity.of("guess")


def test_adaptive_is_one_thing_everywhere():
    memory = ahop.AdaptiveHopfield(PATTERNS).similarity
    layer = ahop.nn.Hopfield(6, similarity="adaptive").association.similarities[0]
    for part in (memory, layer):
        assert type(part) is Adaptive and [base.name for base in part.bases] == ["distance", "dot"]
    # A layer begins as attention does, whoever resets it.
    assert layer.order_weights().tolist() == [[0.0] * 6, [1.0] * 6]
    layer.reset_parameters()
    assert layer.order_weights().tolist() == [[0.0] * 6, [1.0] * 6]


def test_a_fixed_one_has_nothing_to_learn_and_says_so():
    fixed = Similarity.of("dot")
    assert not fixed.learns
    with pytest.warns(UserWarning, match="fit changes nothing: the 'dot' similarity is fixed"):
        report = fixed.fit(PATTERNS, SEEN.queries, SEEN.origins)
    assert report.solver == "fixed"


@pytest.mark.parametrize(
    "name", ["likelihood", "regimes", "correlated", pytest.param("corruption", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("labelled", [True, False])
def test_every_family_of_likelihoods_learns_by_itself(name, labelled):
    kind = Similarity.named(name)
    similarity = kind([Similarity.of("likelihood", 6)]) if name == "regimes" else kind(6)
    origins = SEEN.origins if labelled else None
    report = similarity.fit(PATTERNS, SEEN.queries, origins)
    assert type(similarity) is kind and report.solver == "em"
    with torch.no_grad():
        assert (similarity(PATTERNS, SEEN.queries).argmax(1) == SEEN.origins).double().mean() > 0.9
    assert len(similarity.describe()) > 20 and similarity.parts() and similarity.parts()[0][1].curves()


def test_a_covariance_asks_for_pairs():
    similarity = Mahalanobis(6)
    with pytest.raises(ValueError, match="origins must be given for at least two queries"):
        similarity.fit(PATTERNS, SEEN.queries)
    with pytest.raises(ValueError, match="a covariance is learned from complete queries"):
        similarity.fit(PATTERNS, *SEEN, observed=torch.ones(60, 6, dtype=torch.bool))
    with pytest.raises(ValueError, match="observed is not supported by Mahalanobis"):
        similarity(PATTERNS, PATTERNS, torch.zeros(30, 6, dtype=torch.bool))


def test_a_covariance_is_that_of_the_residuals_in_any_unit():
    mixing = torch.randn(6, 6, generator=torch.Generator().manual_seed(3)).double()
    origins = torch.arange(30).repeat(100)
    noise = torch.randn(3000, 6, generator=torch.Generator().manual_seed(4)).double() @ mixing
    for scale in (1e-6, 1.0, 1e6):
        similarity = Mahalanobis(6).double()
        similarity.fit(PATTERNS.double() * scale, (PATTERNS[origins].double() + noise) * scale, origins)
        covariance = torch.linalg.inv(similarity.whitening @ similarity.whitening.mT) / scale**2
        torch.testing.assert_close(covariance, mixing.mT @ mixing, rtol=0.2, atol=0.5)
