"""Vector databases: each keeps the contract, and an index over one gives the answers of exact scoring."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.memories.test_threads import at_once

import ahop
from ahop import BayesianHopfield
from ahop.index.stores import FaissStore, MilvusStore, PgVectorStore, StoreError, over
from ahop.similarity import Correlated, Floor, Likelihood, Moved, Regimes
from ahop.similarity.codes import NoCodesError

COUNT, DIM = 1500, 10
_numbers = itertools.count()
SLOW = pytest.mark.slow


@pytest.fixture(params=["faiss", pytest.param("milvus", marks=SLOW), pytest.param("pgvector", marks=SLOW)])
def make(request, tmp_path):
    """A function from a width to an empty store."""
    made = []

    def faiss(width):
        pytest.importorskip("faiss", reason="needs ahop[index]")
        return FaissStore(width)

    def milvus(width):
        pytest.importorskip("pymilvus", reason="needs ahop[milvus]")
        made.append(MilvusStore(str(tmp_path / "milvus.db"), f"codes{next(_numbers)}", width))
        return made[-1]

    def pgvector(width):
        made.append(PgVectorStore(request.getfixturevalue("postgres"), f"codes{next(_numbers)}", width))
        return made[-1]

    yield {"faiss": faiss, "milvus": milvus, "pgvector": pgvector}[request.param]
    for store in made:
        store.close()


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def memory_of(kind, prior=None):
    model = Likelihood(DIM, low=-4, high=4)
    model.log_sigma.data.fill_(math.log(0.6))
    if kind is Correlated:
        model = Correlated(DIM, 2, tails=6.0)
        model.loading.data.copy_(drawn(DIM, 2, seed=2))
        model.log_psi.data.fill_(-1.0)
    memory = BayesianHopfield(drawn(COUNT, DIM), similarity=model, prior=prior)
    return memory, memory.patterns[::50] + 0.5 * drawn(30, DIM, seed=1)


def width_of(memory):
    return memory.as_inner_product(0.1).encode_patterns(memory.patterns[:1]).shape[1]


def test_a_store_keeps_what_it_is_given_and_no_more(make):
    store = make(4)
    vectors = np.eye(4, dtype=np.float32)
    store.upsert(np.array([3, 5, 2**40, 11]), vectors)
    # Once more, as after an interruption: nothing is doubled, and the last one counts.
    store.upsert(np.array([5, 11]), np.stack([2 * vectors[1], vectors[3]]))
    ids, scores = store.search(vectors, 4)
    assert ids[:, 0].tolist() == [3, 5, 2**40, 11]
    assert scores[:, 0].tolist() == [1, 2, 1, 1]
    assert sorted(ids[0].tolist()) == [3, 5, 11, 2**40]
    store.delete(np.array([3, 77]))
    ids, _ = store.search(vectors[:1], 4)
    assert sorted(ids[0].tolist()) == [-1, 5, 11, 2**40]


@pytest.mark.parametrize("kind", [Likelihood, Correlated])
def test_answers_are_those_of_exact_scoring(make, kind):
    memory, queries = memory_of(kind)
    index = over(memory, make(width_of(memory)))
    assert memory.index() is index
    found, exact = index.recall(queries, k=5), memory.recall_exactly(queries, k=5)
    assert found.indices[:, 0].equal(exact.indices[:, 0])
    assert (found.indices == exact.indices).double().mean() > 0.98
    torch.testing.assert_close(found.probabilities[:, 0], exact.probabilities[:, 0], atol=0.02, rtol=0)


def test_it_follows_what_is_added_and_removed(make):
    memory, queries = memory_of(Likelihood)
    index = over(memory, make(width_of(memory)))
    memory.add(drawn(40, DIM, seed=9))
    memory.remove(torch.arange(0, 300, 2))
    asked = torch.cat([queries, memory.patterns[-20:] + 0.1])
    assert index.recall(asked).indices.equal(memory.recall_exactly(asked).indices)
    assert len(index.engine) == len(memory) == COUNT + 40 - 150


def test_every_answer_is_of_one_moment_while_patterns_come_and_go(make):
    memory, queries = memory_of(Likelihood)
    memory.remove(torch.arange(200, COUNT))
    index, queries, more = over(memory, make(width_of(memory))), queries[:4], drawn(30, DIM, seed=9)
    moments = [index.recall(queries, k=3, candidates=200)]
    memory.add(more)
    moments.append(index.recall(queries, k=3, candidates=200))
    memory.remove(torch.arange(200, 230))

    def change(turn):
        memory.add(more)
        memory.remove(torch.arange(200, 230))

    def ask(turn):
        found = index.recall(queries, k=3, candidates=200)
        assert any(found.indices.equal(one.indices) and found.probabilities.equal(one.probabilities) for one in moments)

    at_once([change, ask, ask], 0.2)
    assert len(memory) == len(index.engine) == 200


def test_an_addition_that_the_database_breaks_off_changes_nothing(make):
    memory, queries = memory_of(Likelihood)
    store = make(width_of(memory))
    index = over(memory, store)
    before, upsert = index.recall(queries, k=3), store.upsert

    def breaks(ids, vectors):
        if len(ids) < 1000:
            raise StoreError("gone")
        upsert(ids, vectors)

    store.upsert = breaks
    with pytest.raises(StoreError, match="gone"):
        memory.add(memory.patterns[:1100])
    assert len(memory) == len(index.engine) == COUNT
    after = index.recall(queries, k=3)
    assert after.indices.equal(before.indices) and after.probabilities.equal(before.probabilities)


def test_an_upload_that_broke_off_can_be_repeated(make):
    memory, queries = memory_of(Likelihood)
    store = make(width_of(memory))
    calls, upsert = itertools.count(), store.upsert

    def breaks(ids, vectors):
        if next(calls) == 1:
            raise StoreError("gone")
        upsert(ids, vectors)

    store.upsert = breaks
    with pytest.raises(StoreError, match="gone"):
        over(memory, store)
    index = over(memory, store)
    assert index.recall(queries).indices.equal(memory.recall_exactly(queries).indices)
    ids, _ = store.search(np.zeros((1, width_of(memory)), np.float32), COUNT + 10)
    assert sorted(ids[0][ids[0] >= 0].tolist()) == list(range(COUNT))


def test_a_database_of_patterns_as_they_are_is_asked_by_the_adapter(make):
    patterns = torch.nn.functional.normalize(drawn(COUNT, DIM))
    turn = torch.linalg.qr(drawn(DIM, DIM, seed=3)).Q
    queries = patterns @ turn.mT + 0.1 * drawn(COUNT, DIM, seed=4)
    memory = BayesianHopfield(patterns, similarity=Moved(DIM))
    memory.similarity.model.fit(patterns, queries[:500], torch.arange(500))
    store, ids = make(DIM), 10 * np.arange(COUNT) + 7
    store.upsert(ids, patterns.numpy())
    index = over(memory, store, metric="inner", ids=ids, upload=False)
    found, exact = index.recall(queries[500:600]), memory.recall_exactly(queries[500:600])
    assert (found.indices == exact.indices).double().mean() > 0.97


def test_what_a_store_cannot_do_is_refused_clearly():
    pytest.importorskip("faiss", reason="needs ahop[index]")
    memory, _ = memory_of(Likelihood)
    several = BayesianHopfield(memory.patterns, similarity=Regimes([Likelihood(DIM), Likelihood(DIM)]))
    with pytest.raises(NoCodesError, match="a mixture of 2"):
        over(several, FaissStore(3))
    with pytest.raises(ValueError, match="query_adapter needs a moved space"):
        over(memory, FaissStore(DIM), metric="cosine")
    with pytest.raises(ValueError, match="ids must be 1500 increasing integers"):
        over(memory, FaissStore(width_of(memory)), ids=[1, 2])
    with pytest.raises(ValueError, match="ids must be 1500 increasing integers"):
        over(memory, FaissStore(width_of(memory)), ids=torch.zeros(COUNT, dtype=torch.long))
    with pytest.raises(StoreError, match="vectors must have 3 numbers each"):
        over(memory, FaissStore(3))
    with pytest.raises(ValueError, match="is not saved"):
        over(memory, FaissStore(width_of(memory))).save("nowhere")


def test_a_memory_that_learns_must_be_stored_again():
    pytest.importorskip("faiss", reason="needs ahop[index]")
    memory, queries = memory_of(Likelihood)
    index = over(memory, FaissStore(width_of(memory)))
    memory.patterns.mul_(0.9)
    with pytest.raises(ValueError, match=r"call over\(memory, store\) again"):
        index.recall(queries)


def test_codes_of_every_kind_can_be_stored():
    pytest.importorskip("faiss", reason="needs ahop[index]")
    for model in (Floor(DIM, levels=2, bins=2), Moved(DIM)):
        memory = BayesianHopfield(drawn(300, DIM).clamp_min(0), similarity=model)
        index = over(memory, FaissStore(width_of(memory)))
        queries = memory.patterns[:20]
        assert index.recall(queries).indices.equal(memory.recall_exactly(queries).indices)


def test_ids_that_are_no_patterns_are_refused():
    pytest.importorskip("faiss", reason="needs ahop[index]")
    memory, queries = memory_of(Likelihood)
    store = FaissStore(width_of(memory))
    index = over(memory, store)
    store.upsert(np.array([COUNT + 5]), 1e3 * np.ones((1, width_of(memory)), np.float32))
    with pytest.raises(StoreError, match=f"has the id {COUNT + 5}"):
        index.recall(queries)


@pytest.mark.slow
def test_names_are_never_pasted_into_statements(postgres):
    name = "ro\"bert'); drop table students;--"
    store = PgVectorStore(postgres, name, 2, id_column="order", vector_column='co"de')
    store.upsert(np.array([1]), np.ones((1, 2), np.float32))
    assert store.search(np.ones((1, 2), np.float32), 1)[0].tolist() == [[1]]
    store.close()


@pytest.mark.slow
def test_a_table_that_goes_by_the_cosine_is_asked_for_it(postgres):
    store = PgVectorStore(postgres, "cosines", 2, metric="cosine")
    store.upsert(np.array([1, 2]), np.array([[10, 10], [0.1, 0]], np.float32))
    assert store.search(np.array([[1, 0]], np.float32), 2)[0].tolist() == [[2, 1]]
    store.close()


@pytest.mark.slow
def test_the_documents_table_of_embeddings_is_asked_as_it_stands(postgres):
    import psycopg

    old = torch.nn.functional.normalize(drawn(1000, 16))
    new = old @ torch.linalg.qr(drawn(16, 16, seed=1)).Q + 0.05 * drawn(1000, 16, seed=2)
    ids = [7 * number + 3 for number in range(1000)]
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE items (id bigint PRIMARY KEY, embedding vector(16))")
        texts = [str(row) for row in old.tolist()]
        connection.execute("INSERT INTO items SELECT * FROM unnest(%s::bigint[], %s::text[]::vector[])", [ids, texts])
        connection.execute("CREATE INDEX ON items USING hnsw (embedding vector_cosine_ops)")
    document = (Path(__file__).parents[3] / "docs" / "guides" / "many-patterns.md").read_text()
    (block,) = re.findall(r"```py\n(.*?)```", document, re.DOTALL)
    given = {"address": postgres, "new_queries": new[:200], "origins": torch.arange(200), "more_queries": new[500:600]}
    exec(compile(block, "many-patterns.md", "exec"), given)
    right = given["found"].indices[:, 0] == torch.arange(500, 600)
    assert right.double().mean() > 0.95
    assert given["ids"] == ids
    given["store"].close()


@pytest.mark.slow
def test_trouble_with_postgres_is_one_clear_error(postgres):
    with pytest.raises(ValueError, match="width must be at most 16000"):
        PgVectorStore(postgres, "wide", 20_000)
    with pytest.raises(StoreError, match="PostgreSQL: "):
        PgVectorStore("postgresql://nobody@127.0.0.1:1/none", "t", 2, timeout=2)
    store = PgVectorStore(postgres, "lost", 2)
    store.upsert(np.array([1]), np.ones((1, 2), np.float32))
    with pytest.raises(StoreError, match="expected 2 dimensions, not 3"):
        store.upsert(np.array([2, 3]), np.ones((2, 3), np.float32))
    # After an error everything is as it was.
    assert store.search(np.ones((1, 2), np.float32), 2)[0].tolist() == [[1, -1]]
    other = PgVectorStore(postgres, "lost", 2)
    with other._transaction() as run:
        run("SELECT pg_terminate_backend(%s)", [store.connection.info.backend_pid])
    with pytest.raises(StoreError, match="PostgreSQL: "):
        store.search(np.ones((1, 2), np.float32), 1)
    other.close()


@pytest.mark.slow
def test_trouble_with_milvus_is_one_clear_error(tmp_path):
    pytest.importorskip("pymilvus", reason="needs ahop[milvus]")
    with pytest.raises(ValueError, match="width must be at most 32768"):
        MilvusStore(str(tmp_path / "wide.db"), "wide", 40_000)
    with pytest.raises(StoreError, match="Milvus: "):
        MilvusStore("http://127.0.0.1:1", "t", 2, timeout=2)


def test_without_its_library_a_store_says_which_extra_brings_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"pip install 'ahop\[pgvector\]'"):
        PgVectorStore("postgresql://localhost/x", "t", 2)
    assert ahop.index.stores.Store
