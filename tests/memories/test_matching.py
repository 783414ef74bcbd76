import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop import BayesianHopfield, memory_budget
from ahop.memories import matching
from ahop.memories.matching import Matching
from ahop.variants import Noisy

PATTERNS = torch.rand(150, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1


def asked(patterns, noise, seed=0):
    """Each pattern once, with noise."""
    return patterns + noise * torch.randn(patterns.shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def learned():
    world = Noisy(0.3)
    return BayesianHopfield(PATTERNS).fit(*world.sample(PATTERNS, 300), hidden_causes=0, verbose=False)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(1, 8))
def test_no_pattern_takes_more_queries_than_it_has_room_for(seed, count, width):
    generator = torch.Generator().manual_seed(seed)
    memory = BayesianHopfield(torch.randn(width, 2, generator=generator))
    room = torch.randint(0, 4, (width,), generator=generator)
    found = memory.match(torch.randn(count, 2, generator=generator), room)
    taken = found.indices[found.indices >= 0]
    assert bool((torch.bincount(taken, minlength=width) <= room).all())
    assert len(taken) == min(count, int(room.sum())) and found.room == int(room.sum())
    assert bool(((found.probabilities >= 0) & (found.probabilities + found.second_probabilities <= 1.0001)).all())


def test_with_room_for_all_the_answers_are_those_of_recall(learned):
    queries = torch.cat([asked(PATTERNS, 0.3), asked(PATTERNS, 3.0)])
    for reject in (None, 0.1):
        found, alone = learned.match(queries, len(queries), reject=reject), learned.recall(queries, reject=reject)
        assert found.indices.equal(alone.indices[:, 0]) and found.alone.equal(found.indices) and not found.changed
        assert not found.strained and found.verified == alone.verified
        assert bool((found.indices < 0).any()) == (reject is not None)
    found, both = learned.match(queries, len(queries)), learned.recall(queries, 2)
    assert found.second.equal(both.indices[:, 1]) and not found.strangers.any()
    torch.testing.assert_close(found.probabilities, both.probabilities[:, 0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.second_probabilities, both.probabilities[:, 1], rtol=1e-4, atol=1e-6)


def test_of_patterns_that_scatter_those_queries_are_refused_that_recall_refuses():
    draw = torch.Generator().manual_seed(0)
    spread = 0.05 + torch.rand(PATTERNS[:40].shape, generator=draw)
    queries = PATTERNS[:40] + spread * torch.randn(40, 16, generator=draw)
    memory = BayesianHopfield(PATTERNS[:40], spread=spread)
    memory.similarity._remember("genuine", memory.familiarity(queries) + 0.01)
    found, alone = memory.match(queries, len(queries), reject=0.3), memory.recall(queries, reject=0.3)
    assert found.alone.equal(alone.indices[:, 0]) and 0 < int((alone.indices < 0).sum()) < 40


def test_one_to_one_data_are_matched_better_together_than_alone(learned):
    queries, own = asked(PATTERNS, 0.45), torch.arange(150)
    found = learned.match(queries)
    right, alone = (float((index == own).double().mean()) for index in (found.indices, found.alone))
    assert found.alone.equal(learned.recall(queries).indices[:, 0])
    assert right > alone + 0.05 and found.indices.sort().values.equal(own)
    assert found.changed == int((found.indices != found.alone).sum()) > 0
    asked_for = torch.bincount(found.alone, minlength=150)
    assert found.strained == {index: int(times) for index, times in enumerate(asked_for) if times > 1}
    assert list(found.strained.values()) == sorted(found.strained.values(), reverse=True)


def test_a_stranger_is_left_out_and_so_is_who_lost_its_pattern_to_a_likelier_query(learned):
    near, nearer = asked(PATTERNS[:1], 0.1, seed=1), PATTERNS[:1]
    queries = torch.cat([near, nearer, torch.rand(1, 16, generator=torch.Generator().manual_seed(5)) * 2 - 1])
    found = learned.match(queries, reject=0.05)
    assert found.indices.tolist() == [-1, 0, -1] and found.alone.tolist() == [0, 0, -1]
    # Two queries that are nearly as good compete for one pattern.
    assert found.strangers[0] > 0.5 > found.strangers[1] and float(found.strangers[2]) > 0.9
    assert found.probabilities[[0, 2]].tolist() == [0, 0] and found.strained == {0: 2}
    # Who says that there are no strangers gets the next best.
    assert int(learned.match(queries[:2]).indices[0]) > 0


def test_more_queries_than_room_leave_out_those_that_are_explained_least(learned):
    queries = torch.cat([asked(PATTERNS, 0.2), asked(PATTERNS[:5], 2.0)])
    found = learned.match(queries)
    assert found.indices[150:].tolist() == [-1] * 5 and int((found.indices < 0).sum()) == 5
    assert float(found.strangers.sum()) == pytest.approx(5, abs=0.1) and float(found.strangers[150:].min()) > 0.9
    assert "left out        5: there is no more room" in str(found)


def test_the_order_of_queries_does_not_matter(learned):
    queries, order = asked(PATTERNS, 0.45), torch.randperm(150, generator=torch.Generator().manual_seed(2))
    for reject in (None, 0.1):
        found, other = learned.match(queries, reject=reject), learned.match(queries[order], reject=reject)
        assert other.indices.equal(found.indices[order])
        assert float((other.probabilities - found.probabilities[order]).abs().max()) < 0.02


@pytest.mark.parametrize("reject", [None, 0.1])
def test_candidates_of_an_index_give_what_all_scores_give(monkeypatch, learned, reject):
    patterns = torch.rand(400, 16, generator=torch.Generator().manual_seed(3)) * 2 - 1
    memory = BayesianHopfield(patterns, similarity=learned.similarity)
    queries = asked(patterns, 0.5 if reject is None else 0.4)
    exact = memory.match(queries, reject=reject)
    with memory_budget(2**20):
        scanned = memory.match(queries, reject=reject)
    monkeypatch.setattr("ahop.memories.indexed._MIN_INDEXED_PATTERNS", 100)
    with memory_budget(2**20):
        listed = memory.match(queries, reject=reject)
    for found in (scanned, listed):
        assert found.indices.equal(exact.indices) and found.alone.equal(exact.alone) and exact.changed
        assert float((found.probabilities - exact.probabilities).abs().max()) < 0.03


def test_a_pattern_that_is_never_asked_for_takes_nobody():
    prior = torch.ones(150)
    prior[:3] = 0
    found = BayesianHopfield(PATTERNS, prior=prior).match(PATTERNS)
    assert not torch.isin(found.indices, torch.arange(3)).any() and int((found.indices < 0).sum()) == 3


def test_a_memory_that_found_nothing_keeps_its_order_and_answers_with_the_prior(learned):
    memory = BayesianHopfield(PATTERNS, similarity=learned.similarity)
    memory.similarity.doubt.fill_(1)
    found, sure = memory.match(PATTERNS), learned.match(PATTERNS)
    assert found.indices.equal(sure.indices) and sure.found and not found.found
    torch.testing.assert_close(found.probabilities, torch.full((150,), 1 / 150))
    assert "probabilities are the prior" in str(found) and "prior" not in str(sure)
    for doubt in (0.5, 1.0):
        # A stranger is no likelier to come from a pattern where queries tell nothing.
        memory.similarity.doubt.fill_(doubt)
        both = memory.match(asked(PATTERNS, 1.0), 150, reject=0.1)
        assert float((both.strangers + both.probabilities + both.second_probabilities).max()) < 1.0001
    refused = memory.match(PATTERNS, reject=0.1)
    assert refused.indices.eq(-1).all() and refused.strangers.eq(1).all() and not refused.probabilities.any()


def test_values_that_are_missing_are_left_out(learned):
    queries = asked(PATTERNS, 0.1)
    queries[:, 3] = math.nan
    assert float((learned.match(queries, observed="not-nan").indices == torch.arange(150)).double().mean()) > 0.9
    with pytest.raises(ValueError, match="queries must be finite"):
        learned.match(queries)


@pytest.mark.parametrize(
    ("room", "got"),
    [
        (0, "0"),
        (-1, "-1"),
        ([1, 2], r"shape \(2,\)"),
        ([1] * 149 + [-2], "-2"),
        (1.0, "torch.float32"),
        (True, "torch.bool"),
        ("all", "str"),
        (None, "NoneType"),
    ],
)
def test_room_that_is_none_is_refused(room, got):
    wanted = "room must be an integer of at least 1, or 150 of at least 0, one for each pattern; got "
    with pytest.raises(ValueError, match=f"^{wanted}{got}$"):
        BayesianHopfield(PATTERNS).match(PATTERNS, room)


def test_other_bad_input_is_refused(learned):
    with pytest.raises(ValueError, match=r"queries must be a matrix, one row each, got shape \(16,\)"):
        learned.match(PATTERNS[0])
    with pytest.raises(ValueError, match="reject must be a number in 0 to 1, got 2"):
        learned.match(PATTERNS, reject=2)
    with pytest.raises(ValueError, match="reject must be None before fit"):
        BayesianHopfield(PATTERNS).match(PATTERNS, reject=0.1)


def test_a_newcomer_reads_what_the_constraint_did():
    indices, zeros = torch.tensor([2, 0, 1, -1, 3]), torch.zeros(5)
    alone = torch.tensor([2, 2, 1, 1, 3])
    found = Matching(indices, zeros, indices, zeros, zeros, alone, {2: 2, 1: 2}, room=4000, converged=False)
    assert str(found).splitlines() == [
        "matched         4 of 5 queries, to patterns that have room for 4,000",
        "left out        1: strangers, or their pattern went to a likelier query",
        "changed         2 answers of recall, which takes each query by itself",
        "strained        2 patterns asked for more often than there is room: 2 (2 queries), 1 (2 queries)",
        "how sure        probabilities had not converged: read them as rough",
    ]


@pytest.mark.slow
def test_twenty_thousand_are_matched_to_twenty_thousand_in_bounded_memory(monkeypatch):
    patterns = torch.randn(20_000, 16, generator=torch.Generator().manual_seed(4))
    memory = BayesianHopfield(patterns).fit(*Noisy(0.5).sample(patterns, 500), hidden_causes=0, verbose=False)
    largest, scanned = [], matching._scanned

    def watched(memory, queries, k):
        largest.append(8 * len(queries) * len(memory))
        return scanned(memory, queries, k)

    monkeypatch.setattr(matching, "_scanned", watched)
    found = memory.match(asked(patterns, 0.5))
    right, alone = (float((index == torch.arange(20_000)).double().mean()) for index in (found.indices, found.alone))
    assert max(largest) <= 256 * 2**20 and right > alone + 0.05 and found.converged
    assert found.indices.sort().values.equal(torch.arange(20_000))
    assert isinstance(found, ahop.Matching)
