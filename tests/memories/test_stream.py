"""A corruption that is learned batch by batch, as queries come."""

import pytest
import torch

import ahop
from ahop import BayesianHopfield, metrics
from ahop.metrics import retrieval_accuracy
from ahop.variants import Biased, Mixed, Noisy

PATTERNS = torch.rand(200, 32, generator=torch.Generator().manual_seed(0)) * 2 - 1


# In batches of 256, four of which fill the window that is learned from; and in small ones.
@pytest.mark.parametrize(
    ("labelled", "kept", "size", "batches"),
    [
        (True, 200, 0.6, 5 * [256]),
        pytest.param(False, 60, 0.25, 5 * [256], marks=pytest.mark.slow),
        pytest.param(False, 200, 0.6, [50] + 11 * [100], marks=pytest.mark.slow),
    ],
)
def test_a_stream_is_followed_when_the_corruption_changes(labelled, kept, size, batches):
    patterns = PATTERNS[:kept]
    memory = BayesianHopfield(patterns)
    for bias in (size, -size):
        world = ahop.variants.Compose([Noisy(0.3), Biased(torch.full((32,), bias))])
        for count in batches:
            seen = world.sample(patterns, count)
            memory.partial_fit(seen.queries, seen.origins if labelled else None)
        assert memory.similarity.model.bias.mean().item() == pytest.approx(bias, abs=0.1)
        assert metrics.first_choice_accuracy(memory, world.sample(patterns, 200)) > 0.95


@pytest.mark.slow
def test_a_large_first_batch_is_learned_from_the_start():
    world, few = Mixed(0.3, 0.3, 0.3), PATTERNS[:60, :24]
    memory = BayesianHopfield(few).partial_fit(world.sample(few, 200).queries)
    assert metrics.fraction_of_ceiling(memory, ahop.Oracle(few, world), world.sample(few, 400)) > 0.9


@pytest.mark.slow
def test_a_few_queries_do_not_undo_what_many_taught():
    world = Mixed(0.3, 0.3, 0.3)
    memory = BayesianHopfield(PATTERNS).fit(*world.sample(PATTERNS, 400))
    known = memory.similarity.model.bias.clone()
    memory.partial_fit(world.sample(PATTERNS, 10).queries)
    assert torch.equal(memory.similarity.model.bias, known)
    memory.remove([0]).partial_fit(*world.sample(memory.patterns, 300))
    assert memory.similarity.model.bias.mean().item() == pytest.approx(known.mean().item(), abs=0.1)


def test_one_dimension_can_be_streamed():
    patterns = torch.linspace(-1, 1, 5)[:, None]
    memory = BayesianHopfield(patterns).fit(*Noisy(0.1).sample(patterns, 300))
    assert torch.isfinite(memory.partial_fit(*Noisy(0.1).sample(patterns, 50)).scores(patterns)).all()


@pytest.mark.slow
def test_a_stream_begins_anew_when_labels_come():
    world = Mixed(0.3, 0.3, 0.3)
    memory = BayesianHopfield(PATTERNS).partial_fit(world.sample(PATTERNS, 40).queries)
    memory.partial_fit(*world.sample(PATTERNS, 60)).partial_fit(*world.sample(PATTERNS, 60))
    assert metrics.first_choice_accuracy(memory, world.sample(PATTERNS, 200)) > 0.9


@pytest.mark.slow
def test_a_memory_that_was_never_fitted_learns_after_it_was_saved(tmp_path):
    patterns = torch.rand(50, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Mixed(0.3, 0.2, 0.4)
    few, test = world.sample(patterns, 20), world.sample(patterns, 300)
    memory = ahop.BayesianHopfield(patterns)
    memory.save(tmp_path)
    loaded = ahop.load(tmp_path)
    untaught = retrieval_accuracy(loaded, test)
    for learner in (memory, loaded):
        learner.partial_fit(*few)
    assert torch.equal(loaded.scores(test.queries), memory.scores(test.queries))
    assert retrieval_accuracy(loaded, test) > untaught
    # One that was fitted keeps what it knows, whoever wrote the file.
    memory.fit(*world.sample(patterns, 300)).save(tmp_path)
    taught = ahop.load(tmp_path)
    assert int(taught.similarity.known) == 300
    before = taught.scores(test.queries)
    taught.partial_fit(*few)
    assert torch.equal(taught.scores(test.queries), before)


@pytest.mark.slow
def test_a_stream_may_have_holes():
    patterns = torch.rand(50, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Mixed(0.2, 0.2, 0.4)
    memory = ahop.BayesianHopfield(patterns)
    for size in (40, 300, 40):
        queries, origins = world.sample(patterns, size)
        queries[:, 3] = torch.nan
        memory.partial_fit(queries, origins, observed="not-nan")
        memory.partial_fit(*world.sample(patterns, 5))
    test = world.sample(patterns, 300)
    assert retrieval_accuracy(memory, test) > 0.85
