"""Recall by an index: the answers of exact scoring, whatever the likelihood, and in step with the memory."""

import copy
import threading

import pytest
import torch
from tests.index.models import COUNT, DIM, MODELS, drawn, memory_of, moved

import ahop
from ahop import BayesianHopfield
from ahop._queries import Queries
from ahop.index import view as module
from ahop.index.products import Products
from ahop.index.scan import Scan
from ahop.similarity import Likelihood
from ahop.similarity.codes import NoCodesError


def engine(index, kind):
    """The index, searching in this way."""
    if kind is Products:
        index.view.engine = Products(index.engine.rough, torch.device("cpu"))
        index.engine.add(index.memory.patterns, index.memory._log_prior())
    return index


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("kind", [Scan, Products])
@pytest.mark.parametrize("name", MODELS)
def test_answers_are_those_of_exact_scoring(name, kind, prior):
    pytest.importorskip("faiss")
    memory, queries = memory_of(name, prior)
    index = engine(memory.index(), kind)
    found, exact = index.recall(queries, k=5), memory.recall_exactly(queries, k=5)
    assert found.indices[:, 0].equal(exact.indices[:, 0])
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=5e-3, rtol=0)
    agreement = index.agreement(queries)
    assert agreement.first == 1 and agreement.all > 0.99 and agreement.probability < 5e-3


def test_sums_over_dimensions_are_searched_by_four_bits_each():
    pytest.importorskip("faiss")
    for name in ("likelihood", "a floor"):
        memory, _ = memory_of(name)
        assert isinstance(memory.index().engine, Scan)
        assert memory.index().engine.packed.nbytes == COUNT * DIM // 2


def test_everything_works_without_faiss(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    memory, queries = memory_of("likelihood")
    assert isinstance(memory.index().engine, Products)
    assert memory.index().recall(queries).indices.equal(memory.recall_exactly(queries).indices)


@pytest.mark.parametrize("name", ["likelihood", "regimes", "a floor"])
@pytest.mark.parametrize("kind", [Scan, Products])
def test_values_that_were_not_observed_are_ignored(name, kind):
    pytest.importorskip("faiss")
    memory, queries = memory_of(name)
    index = engine(memory.index(), kind)
    observed = torch.rand(queries.shape, generator=torch.Generator().manual_seed(1)) < 0.8
    found, exact = (recall(queries, observed=observed) for recall in (index.recall, memory.recall_exactly))
    assert found.indices.equal(exact.indices)
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=5e-3, rtol=0)
    garbage = torch.where(observed, queries, 100.0)
    assert index.recall(garbage, observed=observed).indices.equal(found.indices)


def test_codes_that_mix_dimensions_refuse_masks_and_the_memory_goes_around(monkeypatch):
    memory, queries = memory_of("hidden causes")
    observed = torch.ones_like(queries, dtype=torch.bool)
    observed[:, 0] = False
    with pytest.raises(ValueError, match="observed is not supported by Whitened"):
        memory.index().recall(queries, observed=observed)
    monkeypatch.setattr("ahop.memories.indexed._MIN_INDEXED_PATTERNS", 1)
    assert memory.recall(queries, observed=observed).indices.equal(
        memory.recall_exactly(queries, observed=observed).indices
    )


def test_a_noise_too_sharp_for_codes_is_scored_exactly(monkeypatch):
    memory, queries = memory_of("likelihood")
    memory.similarity.model.log_sigma.data.fill_(-9.0)
    with pytest.raises(NoCodesError, match="too sharp"):
        memory.index()
    monkeypatch.setattr("ahop.memories.indexed._MIN_INDEXED_PATTERNS", 1)
    assert memory.recall(queries).indices.equal(memory.recall_exactly(queries).indices)


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("kind", [Scan, Products])
def test_it_follows_what_is_added_and_removed(kind, prior):
    pytest.importorskip("faiss")
    memory, queries = memory_of("likelihood", prior)
    index = engine(memory.index(), kind)
    more = drawn(200, DIM, seed=20)
    memory.add(more, prior=torch.ones(200) if prior else None)
    memory.remove(torch.arange(0, 1000, 3))
    assert memory.index() is index
    asked = torch.cat([queries, more[:20] + 0.1 * drawn(20, DIM, seed=21)])
    found, exact = index.recall(asked), memory.recall_exactly(asked)
    assert len(index) == len(memory) == len(index.engine) == COUNT + 200 - 334
    assert found.indices.equal(exact.indices)
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=5e-3, rtol=0)


def test_what_is_added_or_removed_is_not_encoded_again(monkeypatch):
    memory, _ = memory_of("likelihood")
    index = memory.index()
    monkeypatch.setattr(module, "build_engine", lambda memory: pytest.fail("made anew"))
    memory.add(drawn(10, DIM))
    memory.remove([3])
    assert len(index.engine) == COUNT + 9
    index.recall(drawn(2, DIM))


@pytest.mark.slow
@pytest.mark.parametrize("change", ["fit", "in place", "cast"])
def test_codes_are_made_anew_when_the_memory_learns_or_changes(change):
    memory, queries = memory_of("likelihood")
    index, before = memory.index(), memory.index().engine
    if change == "fit":
        memory.fit(queries, torch.arange(0, COUNT, 60), hidden_causes=0)
    elif change == "in place":
        memory.patterns.mul_(0.9)
    else:
        memory.half()
    found = index.recall(queries)
    assert index.engine is not before
    assert found.indices.equal(memory.recall_exactly(queries).indices)


def test_large_memories_recall_by_their_index_and_answers_are_the_same(monkeypatch):
    memory, queries = memory_of("likelihood")
    exact = memory.recall(queries, k=3)
    monkeypatch.setattr("ahop.memories.indexed._MIN_INDEXED_PATTERNS", 1)
    for batch in (1, 7, 50):
        parts = [memory.recall(some, k=3) for some in queries.split(batch)]
        assert torch.cat([part.indices for part in parts]).equal(exact.indices)
        torch.testing.assert_close(
            torch.cat([part.probabilities for part in parts]), exact.probabilities, atol=5e-3, rtol=0
        )
    with ahop.memory_budget(2**20):
        assert memory.recall(queries, k=3).indices.equal(exact.indices)


def test_threads_get_answers_of_one_moment_while_another_changes_the_memory():
    memory, queries = memory_of("likelihood")
    index, more = memory.index(), drawn(200, DIM, seed=40)
    without = index.recall(queries, k=3)
    memory.add(more)
    with_more = index.recall(queries, k=3)
    assert not without.probabilities.equal(with_more.probabilities)
    memory.remove(torch.arange(COUNT, COUNT + 200))
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answers.append(index.recall(queries, k=3))

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(15):
        memory.add(more)
        memory.remove(torch.arange(COUNT, COUNT + 200))
    stop.set()
    for reader in readers:
        reader.join()
    assert len(answers) > 3
    for answer in answers:
        gaps = [(answer.probabilities - one.probabilities).abs().max() for one in (without, with_more)]
        assert min(gaps) < 2e-3 and any(answer.indices.equal(one.indices) for one in (without, with_more))


@pytest.mark.parametrize("kind", [Scan, Products])
def test_queries_that_tell_nothing_are_as_likely_from_any(kind):
    pytest.importorskip("faiss")
    memory, queries = memory_of("likelihood")
    index = engine(memory.index(), kind)
    found = index.recall(queries[:3], k=4, observed=torch.zeros(3, DIM, dtype=torch.bool))
    torch.testing.assert_close(found.probabilities, torch.full((3, 4), 1 / COUNT), atol=1e-4, rtol=0)
    assert all(len(set(row)) == 4 and min(row) >= 0 for row in found.indices.tolist())


@pytest.mark.parametrize("patterns", [drawn(1, DIM), drawn(1, DIM).expand(2000, -1), drawn(90, 7)])
def test_few_or_equal_patterns_have_an_index_too(patterns):
    memory = BayesianHopfield(patterns, similarity=Likelihood(patterns.shape[1]))
    queries = drawn(5, patterns.shape[1], seed=3)
    found, exact = memory.index().recall(queries), memory.recall_exactly(queries)
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=1e-3, rtol=0)
    assert bool((found.indices >= 0).all())


@pytest.mark.parametrize("kind", [Scan, Products])
def test_patterns_that_are_never_asked_for_are_never_found(kind):
    pytest.importorskip("faiss")
    memory, queries = memory_of("likelihood")
    counts = torch.zeros(COUNT)
    counts[-40:] = 1.0
    memory = BayesianHopfield(memory.patterns, similarity=memory.similarity, prior=counts)
    found, exact = (recall(queries, k=5) for recall in (engine(memory.index(), kind).recall, memory.recall_exactly))
    assert found.indices.equal(exact.indices)
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=1e-4, rtol=0)


@pytest.mark.parametrize("new", [drawn(2 * COUNT, DIM, seed=50), 9 + drawn(50, DIM, seed=51)])
def test_codes_are_made_anew_for_many_more_patterns_and_for_others(new):
    memory, _ = memory_of("likelihood")
    index, before = memory.index(), memory.index().engine.rough
    memory.add(new)
    asked = new[:20] + 0.1
    assert index.recall(asked).indices.equal(memory.recall_exactly(asked).indices)
    assert index.engine.rough is not before


def test_another_model_in_the_same_place_is_noticed():
    memory, queries = memory_of("likelihood")
    index = memory.index()
    memory.similarity.model = moved()
    assert index.recall(queries).indices.equal(memory.recall_exactly(queries).indices)


def test_a_copy_has_an_index_of_its_own():
    memory, queries = memory_of("likelihood")
    memory.index()
    other = copy.deepcopy(memory)
    assert other.index() is not memory.index()
    assert other.index().recall(queries).indices.equal(memory.index().recall(queries).indices)


def test_shapes_are_those_of_the_memory_and_all_patterns_can_be_asked_for():
    memory, queries = memory_of("likelihood")
    index = memory.index()
    assert index.recall(queries[0], k=2).indices.shape == (2,)
    assert index.recall(queries[:6].view(2, 3, DIM), k=2).probabilities.shape == (2, 3, 2)
    assert index.recall(queries[:0]).indices.shape == (0, 1)
    every = index.recall(queries[:2], k=COUNT)
    torch.testing.assert_close(every.probabilities.sum(1), torch.ones(2), atol=1e-4, rtol=0)
    assert every.indices.sort(1).values.equal(torch.arange(COUNT).expand(2, -1))


def test_values_and_doubt_are_the_memorys():
    memory, queries = memory_of("likelihood")
    memory.similarity.doubt.fill_(0.5)
    found = memory.index().recall(queries)
    assert found.probabilities.max() <= 0.5 + 1 / COUNT
    torch.testing.assert_close(found.probabilities, memory.recall_exactly(queries).probabilities, atol=5e-3, rtol=0)


@pytest.mark.parametrize("count", [1, 5, 64, COUNT])
@pytest.mark.parametrize("stored", [1, 63, 64, 1000, COUNT])
def test_a_search_by_groups_finds_the_best_of_all(count, stored):
    memory, queries = memory_of("likelihood")
    rough = memory.index().engine.rough
    engine = Products(rough, torch.device("cpu"))
    engine.add(memory.patterns[:stored], None)
    question = rough.ask(Queries(queries))
    scores = rough.logits(question, [question[0].codes @ rough.encode(memory.patterns[:stored])[0].mT])
    for budget in (2**20, 2**28):
        with ahop.memory_budget(budget):
            found = engine.search(Queries(queries), count, None)
        wanted = scores.topk(min(count, stored))
        assert found.listed.sort().values.equal(wanted.indices.sort().values)
        torch.testing.assert_close(found.scores.sort(descending=True).values, wanted.values)
        total = torch.logaddexp(found.log_rest, found.scores.logsumexp(1))
        torch.testing.assert_close(total, scores.logsumexp(1))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"k": 0}, "k must be"),
        ({"k": COUNT + 1}, f"k must be between 1 and {COUNT}"),
        ({"candidates": 0}, "candidates must be"),
    ],
)
def test_bad_input_gets_one_clear_error(arguments, message):
    memory, queries = memory_of("likelihood")
    with pytest.raises(ValueError, match=message):
        memory.index().recall(queries, **arguments)
    with pytest.raises(ValueError, match="queries must have"):
        memory.index().recall(queries[:, :3])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_gives_the_same_answers(name, prior):
    memory, queries = memory_of(name, prior)
    exact = memory.recall_exactly(queries, k=5)
    memory.cuda()
    found = memory.index().recall(queries.cuda(), k=5)
    assert found.indices[:, 0].cpu().equal(exact.indices[:, 0])
    torch.testing.assert_close(found.probabilities.cpu(), exact.probabilities, atol=5e-3, rtol=0)
    # One by one, which is recorded and run again.
    for row in (0, 1, 2, 0):
        one = memory.index().recall(queries[row].cuda(), k=5)
        assert one.indices[0] == found.indices[row, 0]
        torch.testing.assert_close(one.probabilities, found.probabilities[row], atol=1e-3, rtol=0)
    # What was recorded is not run with codes that are gone.
    memory.add(memory.patterns[:7].clone(), prior=memory.prior[:7] if prior else None).remove([1, 2])
    assert len(memory.index()) == COUNT + 5
    again = memory.index().recall(queries[5].cuda(), k=5)
    assert again.indices[0] in (memory.recall_exactly(queries[5].cuda(), k=2).indices)
