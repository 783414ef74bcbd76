import copy
import math

import pytest
import torch

import ahop
from ahop.memories import evidence_by_column
from ahop.similarity import Bent, Correlated, Moved, Nearest, Transformed


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


PATTERNS, QUERY = noise(6, 5), noise(5, seed=1)


def correlated():
    model = Correlated(5, 2).double()
    with torch.no_grad():
        model.loading.copy_(noise(5, 2, seed=2))
    return ahop.BayesianHopfield(PATTERNS, similarity=model)


MEMORIES = [
    ahop.ModernHopfield(PATTERNS, beta=3.0),
    ahop.AdaptiveHopfield(PATTERNS),
    ahop.BayesianHopfield(PATTERNS),
    ahop.BayesianHopfield(PATTERNS, prior=[1, 2, 3, 4, 5, 6]),
    ahop.BayesianHopfield(PATTERNS, similarity=Moved(5)),
    ahop.BayesianHopfield(PATTERNS.float()),
    correlated(),
]


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: f"{memory.name}")
def test_columns_prior_and_what_they_say_together_are_the_log_odds_of_the_recall(memory):
    found, (indices, probabilities) = evidence_by_column(memory, QUERY), memory.recall(QUERY, 2)
    assert [found.first, found.second] == indices.tolist()
    assert found.total == pytest.approx(float(probabilities[0].log() - probabilities[1].log()), abs=1e-4)
    assert float(found.columns.sum()) + found.prior + found.together == pytest.approx(found.total, abs=1e-9)


def test_each_column_of_a_sum_over_columns_says_its_own_term_and_nothing_is_left_to_say_together():
    memory = ahop.AssociativeMemory(PATTERNS, "distance", "softmax")
    found = evidence_by_column(memory, QUERY)
    terms = -(PATTERNS - QUERY).square()
    torch.testing.assert_close(found.columns, terms[found.first] - terms[found.second])
    assert abs(found.together) < 1e-9 and found.prior == 0


def test_two_columns_that_say_the_same_are_heard_together():
    model = Correlated(2, 1).double()
    with torch.no_grad():
        model.loading.copy_(torch.tensor([[3.0], [3.0]]))
        model.log_psi.fill_(-4.0)
    memory = ahop.BayesianHopfield(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]).double(), similarity=model)
    found = evidence_by_column(memory, [2.0, 2.0])
    assert found.total > 0 and found.together > 0.5 * found.total


def test_the_prior_speaks_for_itself():
    even, uneven = ahop.BayesianHopfield(PATTERNS), ahop.BayesianHopfield(PATTERNS, prior=[1, 1, 1, 1, 1, 20])
    found, other = evidence_by_column(even, PATTERNS[5]), evidence_by_column(uneven, PATTERNS[5])
    assert (found.first, found.second) == (other.first, other.second) == (5, other.second)
    assert (found.prior, other.prior) == (0, pytest.approx(math.log(20)))
    torch.testing.assert_close(found.columns, other.columns)


def test_a_column_that_was_not_observed_says_nothing():
    query = QUERY.clone()
    query[1] = torch.nan
    found = evidence_by_column(ahop.BayesianHopfield(PATTERNS), query, observed="not-nan")
    assert found.columns[1] == 0 and bool((found.columns[[0, 2, 3, 4]] != 0).all())


def test_the_memory_stays_as_it_was():
    memory = ahop.BayesianHopfield(PATTERNS.float())
    before = copy.deepcopy(memory.state_dict())
    evidence_by_column(memory, QUERY)
    assert all(torch.equal(value, before[name]) for name, value in memory.state_dict().items())
    assert memory.patterns.dtype == torch.float32 and all(p.dtype == torch.float32 for p in memory.parameters())


def test_where_no_column_can_be_left_out_it_says_so():
    ranks = Transformed(Correlated(5, 0), scale="rank")
    for memory in (
        ahop.BayesianHopfield(PATTERNS, similarity=ranks),
        ahop.BayesianHopfield(PATTERNS, similarity=Nearest(5, mapped=True)),
        ahop.BayesianHopfield(PATTERNS, similarity=Bent(5)),
        ahop.Oracle(PATTERNS, ahop.variants.Noisy(0.1)),
    ):
        with pytest.raises(ValueError, match="memory must be able to leave a column out for evidence by column"):
            evidence_by_column(memory, QUERY)


@pytest.mark.parametrize(
    ("memory", "query", "message"),
    [
        (ahop.UniversalHopfield(PATTERNS), QUERY, "memory must separate by a softmax to have log odds, got 'argmax'"),
        (ahop.ModernHopfield(PATTERNS[:1]), QUERY, "memory must hold at least two patterns, got one"),
        (ahop.ModernHopfield(PATTERNS), PATTERNS, r"query must be one row of 5 values, got shape \(6, 5\)"),
        (ahop.ModernHopfield(PATTERNS), QUERY[:3], "queries must have 5 values each"),
    ],
)
def test_what_has_no_evidence_is_refused(memory, query, message):
    with pytest.raises(ValueError, match=message):
        evidence_by_column(memory, query)
