import copy
import math
import warnings

import numpy as np
import pytest
import torch

import ahop
from ahop import BayesianHopfield, ModernHopfield, Oracle, UniversalHopfield, memory_budget
from ahop.memories import indexed
from ahop.similarity import Similarity
from ahop.variants import Noisy


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some(queries, patterns, share=0.2, seed=3):
    """A mask that leaves every query its first candidate at least."""
    mask = torch.rand(queries, patterns, generator=torch.Generator().manual_seed(seed)) < share
    mask[torch.arange(queries), torch.arange(queries) % patterns] = True
    return mask


def csr(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its format a prototype.
        return table.to_sparse_csr()


def alike(found, other):
    assert found.indices.equal(other.indices)
    torch.testing.assert_close(found.probabilities, other.probabilities, atol=1e-5, rtol=1e-4)


class Counting(Similarity):
    """A plain distance that keeps a record of what it is asked."""

    def __init__(self):
        super().__init__()
        self.patterns, self.pairs = [], []

    def forward(self, patterns, queries, observed=None):
        if patterns.dtype == torch.float32:  # Close ones are scored twice, then in float64.
            self.patterns.append(patterns[:, 0].clone())
            self.pairs.append(len(patterns) * len(queries))
        return -torch.cdist(queries, patterns).square()


def counting(patterns):
    memory = UniversalHopfield(patterns, similarity=Counting(), separation="softmax")
    return memory, memory.similarity


NAMES = ["m-hop", "u-hop", "s-hop", "k-hop", "a-hop", "b-hop", "e-hop", "g-hop"]


def made(name):
    patterns, queries = noise(30, 8), noise(9, 8, seed=1)
    if name == "e-hop":
        patterns, queries = patterns.sign(), queries.sign()
    return ahop.create(name, patterns), queries


@pytest.mark.parametrize("name", NAMES)
def test_a_uniform_prior_changes_nothing(name):
    memory, queries = made(name)
    uniform = torch.full((9, 30), 0.1)
    alike(memory.recall(queries, 3, prior=uniform), memory.recall(queries, 3))
    torch.testing.assert_close(memory.retrieve(queries, 2, prior=uniform), memory.retrieve(queries, 2))


@pytest.mark.parametrize("name", NAMES)
def test_who_may_mean_one_pattern_alone_means_it_for_sure(name):
    memory, queries = made(name)
    own = torch.arange(9) * 3
    only = torch.nn.functional.one_hot(own, 30)
    for prior in (only, only.bool(), only.float().to_sparse()):
        found = memory.recall(queries, 2, prior=prior)
        assert found.indices.tolist() == [[index, -1] for index in own.tolist()]
        assert found.probabilities.tolist() == [[1, 0]] * 9
    torch.testing.assert_close(memory.retrieve(queries, prior=only), memory.patterns[own])


@pytest.mark.parametrize("own", [None, np.arange(20.0)])
def test_probabilities_are_those_of_bayes(own):
    generator = np.random.default_rng(0)
    patterns, prior = generator.uniform(size=(20, 4)), generator.gamma(0.5, size=(50, 20))
    prior[generator.uniform(size=prior.shape) < 0.3] = 0
    queries = patterns[generator.integers(20, size=50)] + 0.4 * generator.normal(size=(50, 4))
    gaps = ((queries[:, None] - patterns) ** 2).sum(-1)
    joint = np.exp(-gaps / (2 * 0.4**2)) * prior * (1 if own is None else own)
    posterior = joint / joint.sum(1, keepdims=True)
    found = Oracle(patterns, Noisy(0.4), prior=own).recall(queries, 5, prior=prior)
    assert (found.indices.numpy() == (-posterior).argsort(1)[:, :5]).all()
    np.testing.assert_allclose(found.probabilities.numpy(), -np.sort(-posterior, 1)[:, :5], rtol=1e-6)


def contexts(count):
    """Patterns in 64 contexts, damaged queries with their origins, and which patterns the context of each allows."""
    draw = torch.Generator().manual_seed(0)
    patterns = torch.randn(512, 16, generator=draw, dtype=torch.float64)
    origins = torch.randint(512, (count,), generator=draw)
    queries = patterns[origins] + 1.2 * torch.randn(count, 16, generator=draw, dtype=torch.float64)
    return patterns, queries, origins, torch.arange(512) % 64 == origins[:, None] % 64


# Signs tie, which leaves the order open.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "e-hop"])
def test_in_a_context_a_memory_answers_as_one_of_its_patterns_alone(name):
    patterns, queries, origins, allowed = contexts(100)
    memory = ahop.create(name, patterns)
    found = memory.recall(queries, 8, prior=allowed)
    for row, kept in enumerate(allowed):
        alone = copy.deepcopy(memory).remove((~kept).nonzero().squeeze(1)).recall(queries[row], 8)
        assert kept.nonzero().squeeze(1)[alone.indices].equal(found.indices[row])
        torch.testing.assert_close(found.probabilities[row], alone.probabilities, rtol=1e-9, atol=1e-12)
    without, within = ((one.indices[:, 0] == origins).double().mean() for one in (memory.recall(queries), found))
    assert within > without + 0.1


def test_a_context_never_brings_the_best_rival_nearer_and_weighs_what_it_leaves_out_by_exactly_zero():
    patterns, queries, origins, allowed = contexts(200)
    memory = ModernHopfield(patterns, beta=0.2, values=torch.eye(512, dtype=torch.float64))
    without, within = memory.retrieve(queries), memory.retrieve(queries, prior=allowed)
    assert not within[~allowed].any()
    lead = [
        (one.gather(1, origins[:, None]).squeeze(1) / one.scatter(1, origins[:, None], 0.0).amax(1)).log()
        for one in (without, within)
    ]
    assert bool((lead[1] >= lead[0] - 1e-9).all()) and float((lead[1] - lead[0]).median()) > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_every_form_of_a_prior_says_the_same(name):
    memory, queries = made(name)
    mask = some(9, 30)
    weighed = mask * noise(9, 30, seed=4).exp()
    expected = memory.recall(queries, 4, prior=weighed)
    for prior in (weighed.numpy(), weighed.to_sparse(), csr(weighed), lambda rows: weighed[rows]):
        alike(memory.recall(queries, 4, prior=prior), expected)
    alike(memory.recall(queries, 4, prior=lambda rows: weighed[rows].to_sparse()), expected)
    alike(memory.recall(queries, 4, prior=mask), memory.recall(queries, 4, prior=mask.double()))
    alike(memory.recall(queries, 4, prior=mask), memory.recall(queries, 4, prior=mask.to_sparse()))


def test_only_the_ratios_of_a_row_count():
    memory, queries = made("m-hop")
    prior = noise(9, 30, seed=4).double().exp() * some(9, 30)
    scale = 10.0 ** torch.linspace(-300, 300, 9, dtype=torch.float64)
    alike(memory.recall(queries, 4, prior=prior * scale[:, None]), memory.recall(queries, 4, prior=prior))


def test_it_counts_once_whatever_the_temperature():
    prior = torch.tensor([[1.0, 3.0], [9.0, 1.0]])
    for beta in (0.5, 4.0):
        found = ModernHopfield(torch.zeros(2, 3), beta=beta).recall(noise(2, 3), 2, prior=prior)
        assert found.indices.tolist() == [[1, 0], [0, 1]]
        torch.testing.assert_close(found.probabilities, torch.tensor([[0.75, 0.25], [0.9, 0.1]]))


@pytest.mark.parametrize("name", ["m-hop", "s-hop", "distance"])
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_step_in_a_context_goes_down_the_energy_that_has_this_context(name, share):
    patterns, queries = noise(30, 4).double(), noise(9, 4, seed=1).double()
    memory = {
        "m-hop": lambda: ModernHopfield(patterns, beta=2.0),
        "s-hop": lambda: ahop.SparseHopfield(patterns, beta=2.0),
        "distance": lambda: ahop.AssociativeMemory(patterns, "distance", ahop.separation.Softmax(2.0)),
    }[name]()
    allowed = some(9, 30, share=share)
    prior = allowed if name == "s-hop" else allowed * noise(9, 30, seed=4).double().exp()
    state = queries.requires_grad_()
    energy = memory.energy(state, prior=prior)
    (slope,) = torch.autograd.grad(energy.sum(), state)
    # Half the slope of a squared distance leads to the mean of the patterns.
    step = state - slope / (2 if name == "distance" else 1)
    torch.testing.assert_close(memory.retrieve(queries.detach(), prior=prior), step.detach())
    for row in range(9):
        alone = memory.energy(queries[row].detach(), prior=prior[row])
        torch.testing.assert_close(alone, energy[row].detach())
    if name != "s-hop":
        # What all patterns have in common is said once by the prior.
        asked = queries.detach()
        indifferent = memory.energy(asked, prior=torch.ones(9, 30))
        torch.testing.assert_close(indifferent, memory.energy(asked) + math.log(30) / 2.0)


def test_the_energy_of_a_context_is_as_precise_as_that_without():
    # Two that are alike are told apart in float64 alone.
    twice = torch.full((2, 1), 3000.0)
    prior = torch.tensor([[1.0, 1.0], [1.0, 3.0]])
    found = ModernHopfield(twice).energy(twice, prior=prior)
    reference = ModernHopfield(twice.double()).energy(twice.double(), prior=prior)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, reference, rtol=0, atol=1e-6)


def test_it_multiplies_the_prior_of_the_memory():
    memory = ModernHopfield(torch.zeros(3, 2), prior=[2.0, 1.0, 0.0])
    found = memory.recall(torch.zeros(1, 2), 3, prior=[[1.0, 3.0, 9.0]])
    assert found.indices.tolist() == [[1, 0, -1]]
    torch.testing.assert_close(found.probabilities, torch.tensor([[0.6, 0.4, 0.0]]))


def test_patterns_that_no_query_may_mean_are_never_scored():
    patterns, queries = noise(5000, 3), noise(40, 3, seed=1)
    mask = torch.zeros(40, 5000, dtype=torch.bool)
    mask[torch.arange(40), torch.arange(40) * 100] = mask[torch.arange(40), torch.arange(40) * 100 + 7] = True
    allowed = set(patterns[mask.any(0), 0].tolist())
    for prior in (mask, mask.float(), mask.to_sparse(), lambda rows: mask[rows]):
        memory, record = counting(patterns)
        memory.recall(queries, prior=prior)
        assert set(torch.cat(record.patterns).tolist()) == allowed
        memory.retrieve(queries, prior=prior)
        assert set(torch.cat(record.patterns).tolist()) == allowed


def test_most_pairs_that_are_scored_are_candidates():
    # Candidates of a query stand anywhere; those of one class are shared.
    anywhere, classes = some(50, 20_000, share=0.1), torch.arange(20_000) % 10 == torch.arange(50)[:, None] % 10
    for mask in (anywhere, classes, anywhere | classes):
        memory, record = counting(noise(20_000, 3))
        memory.recall(noise(50, 3, seed=1), prior=mask)
        assert sum(record.pairs) <= 2 * int(mask.sum())
    assert len(record.pairs) < 50


def test_the_answers_do_not_depend_on_how_queries_are_grouped():
    memory, queries = ModernHopfield(noise(3000, 4)), noise(300, 4, seed=1)
    prior = some(300, 3000, share=0.05) * noise(300, 3000, seed=4).exp()
    expected = memory.recall(queries, 3, prior=prior)
    asked = []
    with memory_budget(2**20):
        alike(memory.recall(queries, 3, prior=prior), expected)
        alike(memory.recall(queries, 3, prior=lambda rows: (asked.append(rows), prior[rows])[1]), expected)
    assert len(asked) > 10
    assert [row for part in asked for row in range(part.start, part.stop)] == list(range(300))
    for row in (0, 17):
        alike(memory.recall(queries[row], 3, prior=prior[row]), ahop.Recall(*(one[row] for one in expected)))


@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 8), (0, 8)])
def test_shapes_follow_the_queries(shape):
    memory = ModernHopfield(noise(6, 8), values=noise(6, 3))
    prior = torch.ones(*shape[:-1], 6)
    found = memory.recall(noise(*shape), k=2, prior=prior)
    assert found.indices.shape == found.probabilities.shape == (*shape[:-1], 2)
    assert memory.retrieve(noise(*shape), prior=prior).shape == (*shape[:-1], 3)
    assert memory.recall(noise(*shape), prior=prior.reshape(-1, 6).to_sparse()).indices.shape == (*shape[:-1], 1)


def test_retrieval_reads_out_what_recall_weighs():
    memory, queries = ModernHopfield(noise(30, 8), beta=0.3, values=noise(30, 2, seed=5)), noise(9, 8, seed=1)
    prior = some(9, 30) * noise(9, 30, seed=4).exp()
    found = memory.recall(queries, 30, prior=prior)
    expected = (found.probabilities[..., None] * memory.values[found.indices]).sum(1)
    torch.testing.assert_close(memory.retrieve(queries, prior=prior), expected)
    queries.requires_grad_()
    memory.retrieve(queries, 3, prior=prior).sum().backward()
    assert bool(queries.grad.abs().sum(1).all())


def test_what_was_learned_of_each_pattern_goes_with_it():
    patterns = noise(30, 8)
    memory = ahop.AdaptiveHopfield(patterns, isolated=True)
    memory.similarity.deviation.data.copy_(noise(*memory.similarity.deviation.shape, seed=6))
    mask, queries = some(9, 30), noise(9, 8, seed=1)
    scores = memory.scores(queries).masked_fill(~mask, -torch.inf)
    assert memory.recall(queries, prior=mask).indices.flatten().equal(scores.argmax(1))


def test_missing_values_and_a_prior_go_together():
    memory, queries, mask = BayesianHopfield(noise(30, 8)), noise(9, 8, seed=1), some(9, 30)
    queries[:, 2] = torch.nan
    scores = memory.scores(queries, observed="not-nan").masked_fill(~mask, -torch.inf)
    found = memory.recall(queries, observed="not-nan", prior=mask)
    torch.testing.assert_close(found.probabilities.squeeze(1), scores.softmax(1).amax(1))


@pytest.mark.parametrize(
    "memory",
    [
        ahop.ClassicalHopfield(torch.ones(2, 3)),
        ahop.DenseHopfield(torch.ones(2, 3)),
        UniversalHopfield(torch.ones(2, 3), separation="identity"),
    ],
    ids=["hop", "d-hop", "identity"],
)
def test_weights_that_are_no_probabilities_refuse_it(memory):
    for ask in (memory.recall, memory.retrieve):
        with pytest.raises(ValueError, match="prior needs a separation that can weigh patterns"):
            ask(torch.ones(1, 3), prior=torch.ones(1, 2))


@pytest.mark.parametrize(
    ("prior", "told"),
    [
        (torch.ones(4), r"one number for each query and pattern, shape \(2, 4\), got shape \(4,\)"),
        (torch.ones(2, 3).to_sparse(), r"shape \(2, 4\), got shape \(2, 3\)"),
        (lambda rows: torch.ones(1, 4), r"shape \(2, 4\), got shape \(1, 4\)"),
        (
            [[1, 1, 1, 1], [0, 0, 0, 0]],
            "prior must leave every query at least one pattern; it leaves none for queries 1$",
        ),
        (torch.zeros(2, 4).to_sparse(), "leaves none for queries 0, 1$"),
        ([[1, 1, 1, 1], [1, -2, 0, 0]], "must be counts or probabilities, not negative; got -2"),
        ([[1, 1, 1, 1], [1, float("nan"), 0, 0]], "prior must be finite, got 1 NaN or infinite values"),
        (torch.ones(2, 4) * 1j, "prior must be real"),
        ("often", "prior must be a tensor or an array of numbers, got str"),
    ],
)
def test_a_prior_that_makes_no_sense_is_refused(prior, told):
    with pytest.raises(ValueError, match=told):
        ModernHopfield(noise(4, 3)).recall(noise(2, 3), prior=prior)


def test_two_priors_that_leave_nothing_between_them_are_refused():
    memory = ModernHopfield(noise(4, 3), prior=[0, 1, 1, 1])
    with pytest.raises(ValueError, match="beside the memory's own; it leaves none for queries 1"):
        memory.recall(noise(2, 3), prior=[[1, 1, 0, 0], [1, 0, 0, 0]])


def test_sets_that_were_calibrated_without_it_promise_nothing_with_it():
    with pytest.raises(ValueError, match="coverage must be None where queries have a prior"):
        BayesianHopfield(noise(4, 3)).recall(noise(2, 3), coverage=0.9, prior=torch.ones(2, 4))


def test_strangers_are_refused_whatever_the_prior_and_what_nobody_has_checked_is_not_verified():
    memory = BayesianHopfield(torch.rand(60, 6, generator=torch.Generator().manual_seed(0)))
    checked, queries = Noisy(0.2).sample(memory.patterns, 100), Noisy(0.2, seed=7).sample(memory.patterns, 100)
    memory.verify(checked.queries, checked.origins)
    memory.similarity._remember("genuine", memory.familiarity(checked.queries))
    prior = some(100, 60)
    prior[torch.arange(100), queries.origins] = True
    plain, found = (memory.recall(queries.queries, reject=0.2, prior=one) for one in (None, prior))
    assert (found.indices < 0).equal(plain.indices < 0)
    assert 0 < int((found.indices < 0).sum()) < 50
    assert found.refusal == plain.refusal
    assert plain.verified
    assert not found.verified
    right = [int((one.indices[:, 0] == queries.origins).sum()) for one in (plain, found)]
    assert right[1] > right[0]


def test_where_a_query_tells_nothing_its_prior_does():
    memory = BayesianHopfield(noise(4, 3))
    memory.similarity.doubt.fill_(1.0)
    found = memory.recall(noise(1, 3), 4, prior=[[1.0, 3.0, 0.0, 4.0]])
    assert dict(zip(found.indices[0].tolist(), found.probabilities[0].tolist(), strict=True)) == pytest.approx(
        {0: 1 / 8, 1: 3 / 8, 3: 4 / 8, -1: 0.0}
    )


def test_no_index_is_made_for_it(monkeypatch):
    monkeypatch.setattr(indexed, "_MIN_INDEXED_PATTERNS", 10)
    memory = BayesianHopfield(noise(30, 8))
    memory.recall(noise(3, 8), prior=some(3, 30))
    assert memory._index is None
