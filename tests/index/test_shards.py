"""Shards on a real Ray cluster of two nodes: the answers of one memory, whatever dies."""

import threading
import time

import pytest
import torch

import ahop
from ahop import BayesianHopfield
from ahop.index import PartialRecall, ShardError, Shards

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

COUNT, DIM = 4000, 12
WORLD = ahop.variants.Mixed(0.2, 0.2, 0.2)


@pytest.fixture(scope="module")
def ray():
    library = pytest.importorskip("ray", reason="needs ahop[ray]")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    cluster.add_node(num_cpus=4)
    library.init(address=cluster.address, log_to_driver=False)
    assert len([node for node in library.nodes() if node["Alive"]]) == 2
    yield library
    library.shutdown()
    cluster.shutdown()


PATTERNS = torch.rand(COUNT, DIM, generator=torch.Generator().manual_seed(0)) * 2 - 1
QUERIES = WORLD.sample(PATTERNS, 60).queries


def memory_of(prior=False):
    some = BayesianHopfield(PATTERNS[:500]).fit(*WORLD.sample(PATTERNS[:500], 200), hidden_causes=0)
    counts = torch.rand(COUNT, generator=torch.Generator().manual_seed(1)) if prior else None
    return BayesianHopfield(PATTERNS, similarity=some.similarity, prior=counts)


@pytest.fixture
def shards(ray):
    made = Shards(memory_of(), 2, timeout=60)
    yield made
    made.close()


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_answers_are_those_of_one_memory(ray, count, prior):
    memory = memory_of(prior)
    shards = Shards(memory, count)
    # Every pattern a candidate: what is left is the merging, which is exact.
    found, exact = shards.recall(QUERIES, 5, candidates=COUNT), memory.recall_exactly(QUERIES, 5)
    assert found.indices.equal(exact.indices)
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=1e-5, rtol=1e-4)
    few = shards.recall(QUERIES, 5)
    assert few.indices.equal(exact.indices)
    torch.testing.assert_close(few.probabilities, exact.probabilities, atol=5e-3, rtol=0)
    shards.close()


def test_a_killed_shard_is_started_again_while_queries_run(ray, shards):
    wanted = shards.recall(QUERIES, 3)
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answers.append(shards.recall(QUERIES, 3))

    asking = threading.Thread(target=ask)
    asking.start()
    for shard in shards.actors:
        time.sleep(1)
        ray.kill(shard, no_restart=False)
    time.sleep(8)
    stop.set()
    asking.join(120)
    assert len(answers) > 5
    for answer in answers:
        assert answer.indices.equal(wanted.indices)
        assert answer.probabilities.equal(wanted.probabilities)


def test_a_shard_that_stays_dead_is_an_error_and_no_part_of_an_answer(ray, shards):
    ray.kill(shards.actors[1], no_restart=True)
    began = time.monotonic()
    with pytest.raises(ShardError, match="shard 1 of 2 is dead"):
        shards.recall(QUERIES)
    assert time.monotonic() - began < shards.timeout
    part = shards.recall(QUERIES, partial=True)
    assert isinstance(part, PartialRecall) and part.asked == 0.5
    assert int(part.indices.max()) < COUNT // 2


def test_a_shard_that_hangs_is_an_error_within_the_timeout(ray, shards):
    shards.actors[0].__ray_call__.remote(lambda self: time.sleep(15))
    shards.timeout, began = 2.0, time.monotonic()
    with pytest.raises(ShardError, match="shard 0 of 2 did not answer within 2 s"):
        shards.recall(QUERIES)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("labelled", [True, False])
def test_shards_learn_and_remember_when_they_are_started_again(ray, labelled):
    memory = memory_of()
    fresh = BayesianHopfield(memory.patterns)
    shards = Shards(fresh, 2)
    queries, origins = WORLD.sample(memory.patterns, 300)
    shards.fit(queries, origins if labelled else None, hidden_causes=0, verbose=False)
    test = WORLD.sample(memory.patterns, 200)
    right = (shards.recall(test.queries).indices.squeeze(1) == test.origins).double().mean()
    best = (memory.recall_exactly(test.queries).indices.squeeze(1) == test.origins).double().mean()
    assert right > best - 0.05
    wanted = shards.recall(test.queries)
    ray.kill(shards.actors[0], no_restart=False)
    again = shards.recall(test.queries)
    assert again.indices.equal(wanted.indices) and again.probabilities.equal(wanted.probabilities)
    shards.close()


def same(found, memory, k=3):
    exact = memory.recall_exactly(QUERIES, k)
    assert found.indices.equal(exact.indices)
    torch.testing.assert_close(found.probabilities, exact.probabilities, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("prior", [False, True])
def test_shards_grow_and_shrink_as_one_memory_does(ray, prior):
    memory = memory_of(prior)
    shards = Shards(memory, 3)
    # Far outside what codes were made for.
    far = 3 * torch.rand(200, DIM, generator=torch.Generator().manual_seed(7))
    for more in (WORLD.sample(memory.patterns, 50).queries.clamp(-1, 1), far):
        counts = torch.rand(len(more)) if prior else None
        memory.add(more, prior=counts)
        shards.add(more, prior=counts)
        same(shards.recall(QUERIES, 3, candidates=len(memory)), memory)
    # Some of the first and the last, and the whole of the second.
    gone = torch.cat([torch.arange(10), torch.arange(COUNT // 3, 2 * COUNT // 3), torch.tensor([len(memory) - 1])])
    memory.remove(gone)
    shards.remove(gone)
    assert len(shards) == len(memory) and len(shards.actors) == 2
    same(shards.recall(QUERIES, 3, candidates=len(memory)), memory)
    for shard in shards.actors:
        ray.kill(shard, no_restart=False)
    same(shards.recall(QUERIES, 3, candidates=len(memory)), memory)
    shards.close()


def test_many_changes_are_forgotten_but_for_what_they_led_to(ray, monkeypatch):
    monkeypatch.setattr("ahop.index.shards._MOST_CHANGES", 4)
    memory = memory_of()
    shards = Shards(memory, 2)
    for number in range(6):
        more = WORLD.sample(memory.patterns, 3).queries.clamp(-1, 1)
        memory.add(more).remove([number])
        shards.add(more).remove([number])
    assert max(map(len, shards._held.changes)) <= 5
    ray.kill(shards.actors[1], no_restart=False)
    same(shards.recall(QUERIES, 3, candidates=len(memory)), memory)
    shards.close()


def test_a_change_that_fails_changes_nothing(ray, shards):
    wanted = shards.recall(QUERIES, 3)
    ray.kill(shards.actors[1], no_restart=True)
    for change in (lambda: shards.remove([0, COUNT - 1]), lambda: shards.add(torch.zeros(2, DIM))):
        with pytest.raises(ShardError, match="shard 1 of 2 is dead"):
            change()
    assert len(shards) == COUNT
    # The first shard had forgotten one already.
    part = shards.recall(QUERIES, 3, partial=True)
    kept = wanted.indices[:, 0] < COUNT // 2
    assert part.indices[kept, 0].equal(wanted.indices[kept, 0])
    for bad, match in (
        (torch.zeros(2, 3), "patterns must have 12 values"),
        (torch.full((1, DIM), torch.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=match):
            shards.add(bad)
    with pytest.raises(ValueError, match="prior must not be given"):
        shards.add(torch.zeros(1, DIM), prior=[1.0])
    with pytest.raises(ValueError, match="indices must be between"):
        shards.remove([COUNT])
    with pytest.raises(ValueError, match="must leave at least one"):
        shards.remove(torch.arange(COUNT))


def test_every_answer_is_of_one_moment_while_patterns_come_and_go(ray, shards):
    more, answers, stop = memory_of().patterns[:300] * 0.9, [], threading.Event()
    queries = torch.cat([QUERIES[:20], WORLD.sample(more, 20).queries])

    def ask():
        while not stop.is_set():
            answers.append(shards.recall(queries, 3))

    moments = [shards.recall(queries, 3)]
    readers = [threading.Thread(target=ask) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(5):
        moments.append(shards.add(more).recall(queries, 3))
        shards.remove(torch.arange(COUNT, COUNT + len(more)))
        time.sleep(0.2)
    stop.set()
    for reader in readers:
        reader.join(120)
    assert len(answers) > 5
    for answer in answers:
        assert any(
            answer.indices.equal(moment.indices)
            and torch.allclose(answer.probabilities, moment.probabilities, atol=5e-3)
            for moment in moments[:2]
        )


def test_a_shard_that_is_let_go_answers_first_what_it_was_asked(ray, shards):
    wanted, answers = shards.recall(QUERIES), []
    shards.actors[1].__ray_call__.remote(lambda self: time.sleep(2))
    asking = threading.Thread(target=lambda: answers.append(shards.recall(QUERIES)))
    asking.start()
    time.sleep(0.5)
    shards.remove(torch.arange(COUNT // 2, COUNT))
    asking.join(60)
    assert answers[0].indices.equal(wanted.indices) and answers[0].probabilities.equal(wanted.probabilities)


def test_threads_learn_ask_add_and_let_whole_shards_go_at_once(ray):
    memory = memory_of()
    memory.remove(torch.arange(600, COUNT))
    shards, done, wrong = Shards(memory, 4), [], []
    kept = WORLD.sample(memory.patterns[:100], 40)

    def over_and_over(work):
        try:
            while not done:
                work()
        except BaseException as error:
            wrong.append(error)

    def ask():
        found = shards.recall(kept.queries, 3)
        assert int(found.indices.max()) < 640 and float(found.probabilities.sum(1).max()) < 1.001

    def learn():
        shards.fit(*kept, hidden_causes=0, verbose=False)

    threads = [threading.Thread(target=over_and_over, args=(work,)) for work in (ask, ask, learn)]
    for thread in threads:
        thread.start()
    try:
        for left in (450, 300, 150):
            shards.add(memory.patterns[:40] * 0.9)
            # The last shard goes as a whole, with what was added to it.
            shards.remove(torch.arange(left, len(shards)))
            time.sleep(1)
    finally:
        done.append(True)
        for thread in threads:
            thread.join(120)
    assert not wrong and len(shards) == 150 and len(shards.actors) == 1
    shards.close()
    with pytest.raises(ShardError, match="these shards are closed"):
        shards.recall(kept.queries)


def test_bad_input_gets_one_clear_error(ray, shards):
    with pytest.raises(ValueError, match="shards must be between 1 and"):
        Shards(memory_of(), COUNT + 1)
    with pytest.raises(ValueError, match="k must be between 1 and"):
        shards.recall(QUERIES, COUNT + 1)
    with pytest.raises(ValueError, match="queries must have 12 values"):
        shards.recall(QUERIES[:, :3])
