"""A random gain of each value: found with labels and without, and the likelihood that it says it is."""

from itertools import pairwise

import pytest
import torch

import ahop
from ahop import BayesianHopfield
from ahop.similarity import Gain
from ahop.similarity.families import em, gain
from ahop.similarity.families.training import TrainingData


def drawn(seed, queries=1000):
    """Patterns that a gain of 30 % leaves hard to tell, 400 queries to learn from and more to ask."""
    generator = torch.Generator().manual_seed(seed)
    patterns = (0.3 * torch.randn(200, 40, generator=generator)).exp()
    origins = torch.randint(200, (400 + queries,), generator=generator)
    gains = (0.3 * torch.randn(400 + queries, 40, generator=generator)).exp()
    return patterns, patterns[origins] * gains, origins


def share(memory, queries, origins):
    return float((memory.recall(queries).indices.squeeze(1) == origins).double().mean())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("labelled", [True, False])
def test_a_random_gain_is_found_with_labels_and_without(labelled, seed):
    patterns, queries, origins = drawn(seed)
    memory = BayesianHopfield(patterns).fit(queries[:400], origins[:400] if labelled else None)
    assert share(memory, queries[400:], origins[400:]) >= 0.97
    if not labelled:
        assert isinstance(memory.similarity.model, Gain) and memory.report.chosen == "a random gain"
        assert abs(memory.report.accuracy - share(memory, queries[400:], origins[400:])) < 0.05


@torch.no_grad()
def test_it_is_a_density():
    model = Gain(1, zero=0.5).double()
    model.bias.fill_(0.2)
    model.sign_logit.fill_(1.0)
    values = torch.linspace(-60, 60, 1_200_001, dtype=torch.float64)[:, None]
    density = model(torch.tensor([[2.0]]).double(), values).exp()
    assert float(density.sum()) * 1e-4 == pytest.approx(1, abs=1e-3)


def test_its_gradients_are_right():
    patterns, queries = (torch.rand(4, 3, dtype=torch.float64, requires_grad=True) + 0.5 for _ in range(2))
    torch.autograd.gradcheck(lambda p, q: Gain(3).double()(p, q), (patterns, queries))


@pytest.mark.parametrize(("unit", "shift"), [(1e3, 0.0), (0.01, -7.0)])
def test_it_is_the_same_in_other_units(unit, shift):
    patterns, queries, origins = drawn(0, 50)
    model = Gain(40)
    model.fit(patterns, queries[:400], origins[:400])
    moved = model.rescaled(unit, shift)
    density = model(patterns, queries) - 40 * torch.tensor(unit).log()
    torch.testing.assert_close(moved(unit * patterns + shift, unit * queries + shift), density, atol=0.2, rtol=1e-3)


def test_gains_are_transferred_to_other_patterns():
    model, own, others = Gain(2, zero=1.0), torch.tensor([[3.0, 2.0]]), torch.tensor([[2.0, 5.0]])
    assert model.transferred(torch.tensor([[5.0, 0.5]]), own, others).tolist() == [[3.0, -1.0]]


@torch.no_grad()
def test_the_evidence_never_falls():
    patterns, queries, _ = drawn(0, 0)
    data = TrainingData(patterns.double(), queries[:100].double())
    trace = em.iterate(gain._Learner(Gain(40).double(), data), steps=20)
    # One value's worth of belief is no part of the evidence.
    assert min(after - before for before, after in pairwise(trace)) > -1e-2 and trace[-1] > trace[0] + 1


def test_it_is_not_looked_for_where_noise_does_not_grow_with_values():
    patterns, _, origins = drawn(0)
    noisy = patterns[origins[:200]] + 0.3 * torch.randn(200, 40, generator=torch.Generator().manual_seed(1))
    assert not gain.RandomGain().applies(TrainingData(patterns, noisy, origins[:200]), 0)
    assert not gain.RandomGain().applies(TrainingData(patterns, noisy), 0)


@pytest.mark.slow
def test_what_it_learned_is_saved_and_described(tmp_path):
    patterns, queries, _ = drawn(0, 20)
    memory = BayesianHopfield(patterns, similarity="gain").fit(queries[:400], hidden_causes=None)
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(queries[400:]), memory.scores(queries[400:]))
    assert "multiplied by a gain, 1" in memory.similarity.describe()
    assert "a random gain" in str(memory.report)


def test_it_is_not_looked_for_where_values_become_zero():
    """No gain makes a zero of what is none: rounding does."""
    patterns = torch.rand(100, 30, generator=torch.Generator().manual_seed(0)) * 2 - 1
    noise = torch.randn(200, 30, generator=torch.Generator().manual_seed(1))
    queries = 2 * torch.round((patterns[torch.arange(200) % 100] + 0.5 * noise) / 2)
    assert not gain.RandomGain().applies(TrainingData(patterns, queries), 0)
