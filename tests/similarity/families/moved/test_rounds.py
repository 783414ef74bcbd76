"""Labels judge what has not learned from them, while a map is learned from few of them."""

import math

import pytest
import torch
from tests.similarity.families.moved.test_bent import rotated

import ahop
from ahop.learning.report import clopper_pearson
from ahop.similarity.families.calibration import HeldOutLabels
from ahop.similarity.families.moved import rounds
from ahop.similarity.families.moved.family import MovedSpace
from ahop.similarity.families.training import TrainingData


def some_known(count, known, right, seed=0):
    """A world of which some origins are known, rightly or at random, and all others are not."""
    patterns, queries = rotated(count, dim=12, width=16, noise=0.3, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    rows, drawn = (torch.randperm(count, generator=generator)[:known] for _ in range(2))
    origins = torch.full((count,), -1)
    origins[rows] = rows if right else drawn
    return patterns, queries, origins


def test_a_pair_that_is_pinned_is_judged_by_a_map_without_it(monkeypatch):
    patterns, queries, origins = some_known(120, 60, right=True)
    made, asked = rounds.bending.Pairs.model, []

    def watched(pairs, left_out, weights):
        model = made(pairs, left_out, weights)
        kept = set(pairs.origins.tolist()) - set(pairs.origins[left_out].tolist())
        monkeypatch.setattr(model, "forward", lambda _, some: asked.append((kept, some)) or torch.zeros(len(some), 120))
        return model

    known = (origins >= 0).nonzero().squeeze(1)
    believed = rounds._Believed(known, origins[known], origins.clamp_min(0), torch.ones(120))
    monkeypatch.setattr(rounds.bending.Pairs, "model", watched)
    weighed = rounds.bending.Weighed(torch.ones(5), [], known, patterns[known])
    monkeypatch.setattr(rounds.bending, "weigh", lambda *_: weighed)
    rounds._round(patterns, queries, origins, believed, 0)
    place = {query.numpy().tobytes(): row for row, query in enumerate(queries)}
    judged = [(place[query.numpy().tobytes()], kept) for kept, some in asked for query in some]
    assert sorted(row for row, _ in judged) == list(range(120))
    assert all(int(origins[row]) not in kept for row, kept in judged)
    assert all(len(kept) > 30 for _, kept in judged)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no map from the patterns")
@pytest.mark.parametrize(("seed", "noise"), [(0, 0.3), (1, 0.1), (1, 0.4)])
def test_pairs_of_any_number_are_never_worse_than_ignoring_them(seed, noise):
    patterns, queries = rotated(500, dim=16, width=24, noise=noise, seed=seed)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(seed))
    rest, right = order[100:], []
    for count in (0, 1, 2, 5, 20, 100):
        origins = torch.full((500,), -1)
        origins[order[:count]] = order[:count]
        memory = ahop.BayesianHopfield(patterns).fit(queries, origins, verbose=False)
        right.append((memory.recall(queries[rest]).indices[:, 0] == rest).double())
        lost = right[0] - right[-1]
        assert float(lost.mean()) <= 0.02 + 2 * float(lost.std()) / len(rest) ** 0.5, count
    assert float(right[0].mean()) > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no map from the patterns")
@pytest.mark.parametrize("known", [20, 200, 300])
def test_labels_that_are_wrong_at_random_promise_no_more_than_chance(known):
    patterns, queries, origins = some_known(300, known, right=False)
    report = ahop.BayesianHopfield(patterns).fit(queries, origins).report
    # Either they judge, or nothing was found and nothing is promised.
    assert report.labels == (known if report.found else 0)
    assert report.interval[0] <= 1 / 300 and report.confidence < 0.1


@pytest.mark.slow
def test_twenty_right_labels_have_an_interval_that_holds_the_truth():
    held = 0
    for seed in range(6):
        patterns, queries, origins = some_known(400, 20, right=True, seed=seed)
        found = rounds.learn(patterns, queries, origins, seed)
        rest = (origins < 0).nonzero().squeeze(1)
        truth = float((found.model(patterns, queries[rest]).argmax(1) == rest).double().mean())
        low, high = clopper_pearson(found.judged.right, found.judged.labels)
        held += low <= truth <= high
    assert held >= 5


@pytest.mark.slow
def test_labels_alone_say_how_often_a_map_is_right_and_bound_how_sure_it_is():
    patterns, queries, origins = some_known(300, 20, right=False)
    found = rounds.learn(patterns, queries, origins)
    # By its own word it is often right; twenty labels say that it never is.
    assert found.expected > 0.3 and found.judged.accuracy < 0.1
    memory = ahop.BayesianHopfield(patterns).fit(queries, origins)
    assert memory.report.accuracy == found.judged.accuracy and float(memory.recall(queries).probabilities.mean()) < 0.1


@pytest.mark.parametrize(("right", "bound"), [(8, (8 + 10 * 0.9) / 20), (0, 0.9 / 11)])
def test_what_a_map_expects_is_worth_ten_labels_unless_they_refute_it(monkeypatch, right, bound):
    """Two labels in ten that are wrong may be chance; ten in ten are not."""
    patterns = 9 * torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    data = TrainingData(patterns, patterns, torch.where(torch.arange(40) < 10, torch.arange(40), -1))
    model = ahop.similarity.Likelihood(8).requires_grad_(False)
    found = rounds.Alignment(torch.eye(8), 2.0, found=True)
    learned = rounds.SelfLearned(model, found, 0.9, HeldOutLabels(right, 10, 10))
    monkeypatch.setattr(rounds, "learn", lambda *_: learned)
    candidate = MovedSpace().without_labels(data, 0, lambda _: None)
    shares = torch.softmax(math.exp(candidate.log_beta) * model(patterns, patterns), 1)
    assert float(shares.amax(1).mean()) == pytest.approx(bound, abs=0.01)
