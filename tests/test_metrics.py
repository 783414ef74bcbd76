import pytest
import torch

import ahop
from ahop import metrics
from ahop._recall import Recall
from ahop.variants import Noisy, Samples

PATTERNS = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]])
MEMORY = ahop.UniversalHopfield(PATTERNS)
QUERIES = torch.tensor([[0.0, 1.0], [3.0, 0.0], [0.0, 3.0], [1.0, 0.0]])


def test_accuracy_and_error_are_counted_by_hand():
    samples = Samples(QUERIES, torch.tensor([0, 1, 2, 1]))
    assert metrics.retrieval_accuracy(MEMORY, samples) == 0.75
    assert metrics.retrieval_error(MEMORY, samples) == pytest.approx(16 / 2 / 4)
    assert metrics.evaluate(MEMORY, samples) == (0.75, 2.0, 0.75)


def test_a_pattern_stored_twice_counts_as_one():
    assert metrics.retrieval_accuracy(MEMORY, Samples(QUERIES, torch.tensor([0, 1, 3, 0]))) == 1


def test_an_answer_that_says_nothing_is_not_right():
    memory = ahop.ModernHopfield(torch.eye(8))
    assert metrics.retrieval_accuracy(memory, (torch.zeros(8, 8), torch.arange(8))) == 1 / 8


def test_exact_answers_are_found_exact_far_from_the_origin():
    patterns = torch.randn(100, 16, generator=torch.Generator().manual_seed(0))
    patterns[::2] += 1e4
    memory = ahop.UniversalHopfield(patterns)
    assert metrics.retrieval_accuracy(memory, (patterns, torch.arange(100))) == 1
    assert metrics.epsilon_retrieval(memory, (patterns, torch.arange(100)), 1e-6) == 1


def test_epsilon_retrieval_asks_for_any_pattern():
    soft = ahop.ModernHopfield(PATTERNS)
    samples = Samples(QUERIES, torch.tensor([3, 3, 3, 3]))
    assert metrics.epsilon_retrieval(MEMORY, samples, 0.1) == 1
    assert metrics.epsilon_retrieval(soft, samples, 0.1) < 1


def test_top_k_looks_further_down():
    samples = Samples(QUERIES[:2], torch.tensor([2, 0]))
    assert metrics.top_k_accuracy(MEMORY, samples, k=1) == 0
    assert metrics.top_k_accuracy(MEMORY, samples, k=2) == 1


def test_the_oracle_is_all_of_the_ceiling():
    world = Noisy(1.5)
    samples = world.sample(PATTERNS[:3], 500)
    oracle = ahop.Oracle(PATTERNS[:3], world)
    assert metrics.fraction_of_ceiling(oracle, oracle, samples) == 1
    assert metrics.fraction_of_ceiling(ahop.ModernHopfield(PATTERNS[:3]), oracle, samples) < 1


def test_being_too_sure_does_not_beat_the_ceiling():
    # Where the posterior is flat its mean is near no pattern, which costs the Oracle's soft readout but not its choice.
    patterns = torch.rand(400, 24, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Noisy(1.3)
    samples = world.sample(patterns, 2000)
    oracle = ahop.Oracle(patterns, world)
    sure = ahop.UniversalHopfield(patterns, similarity="distance", separation="argmax")
    assert metrics.retrieval_accuracy(sure, samples) > metrics.retrieval_accuracy(oracle, samples) + 0.01
    assert metrics.fraction_of_ceiling(sure, oracle, samples) == pytest.approx(1, abs=0.005)


def test_heteroassociation_is_judged_by_its_values():
    values = torch.eye(4)
    memory = ahop.UniversalHopfield(PATTERNS, values=values)
    assert metrics.retrieval_error(memory, Samples(QUERIES, torch.tensor([0, 1, 2, 0]))) == 0


def test_origins_out_of_range_are_refused():
    with pytest.raises(ValueError, match="origins must be between 0 and 3"):
        metrics.retrieval_accuracy(MEMORY, Samples(QUERIES, torch.tensor([0, 1, 2, 4])))


def test_doubt_in_one_place_does_not_make_up_for_rashness_in_another():
    """Nine of ten are right where it said .3, and three of ten where it said .9: on average it is right."""
    sure = torch.tensor([0.3] * 10 + [0.9] * 10)
    right = torch.tensor(([True] * 9 + [False]) + ([True] * 3 + [False] * 7))
    assert metrics.calibration_gap(sure, right) == pytest.approx(0.6)
    assert metrics.calibration_gap(sure, right, bins=1) == pytest.approx(0.0, abs=1e-6)


def test_the_calibration_of_a_memory_is_that_of_its_first_choices(monkeypatch):
    sure = torch.tensor([0.3, 0.3, 0.9, 0.9])
    monkeypatch.setattr(MEMORY, "recall", lambda queries: Recall(torch.tensor([[0], [1], [2], [0]]), sure[:, None]))
    samples = Samples(QUERIES, torch.tensor([0, 1, 1, 1]))
    right = torch.tensor([True, True, False, False])
    assert metrics.calibration_error(MEMORY, samples) == metrics.calibration_gap(sure, right) == pytest.approx(0.8)
