import math

import pytest
import torch

import ahop
from ahop import BayesianHopfield, GaussianHopfield, Oracle
from ahop.variants import Biased, Compose, Correlated, Dropped, Either, Growing, Masked, Noisy, Rotated, Scaled

NOISE = 0.15
SHIFT = torch.tensor([0.2, -0.1, 0.3, 0.0, 0.1, 0.2, -0.3, 0.1])
WORLD = Compose([Noisy(NOISE), Biased(SHIFT)])
CLOSED = {
    "noise": Noisy(0.3),
    "bias and noise": Compose([Biased(0.5), Noisy(0.2)]),
    "noise and gain": Compose([Noisy(0.2), Scaled(1.5), Biased(-0.3)]),
    "a mask": Compose([Scaled(-0.7), Masked(0.3), Noisy(0.1)]),
    "a mask of one": Compose([Noisy(0.2), Masked(count=1, fill=(-2.0, 2.0))]),
    "shared noise": Correlated(0.3, 0.7),
    "a rotation": Rotated(40, 0.2),
    "one of two": Either([Noisy(0.4), Compose([Noisy(0.1), Biased(1.0)])], weights=[2.0, 1.0]),
    "one of two that are shared": Either([Rotated(20, 0.3), Correlated(0.3, 0.2)]),
}


def drawn(seed, patterns=60, queries=300):
    """Means, unequal spreads, and measurements of them that have gone through the world; with their origins."""
    draw = torch.Generator().manual_seed(seed)
    means = torch.rand(patterns, 8, generator=draw)
    spread = 0.25 * torch.randn(patterns, 8, generator=draw).exp()
    origins = torch.randint(patterns, (queries,), generator=draw)
    measured = means[origins] + spread[origins] * torch.randn(queries, 8, generator=draw)
    return means, spread, WORLD.corrupt(measured, draw), origins


@pytest.mark.parametrize("world", CLOSED.values(), ids=CLOSED)
def test_a_pattern_that_scatters_is_as_likely_as_the_mean_over_where_it_may_be(world):
    means, spread = torch.tensor([[0.3, -0.2], [-0.5, 0.6]]).double(), torch.tensor([[0.2, 0.4], [0.5, 0.3]]).double()
    queries = torch.tensor([[0.1, 0.2], [0.9, -0.3], [-0.4, 0.5]]).double()
    steps = torch.linspace(-6, 6, 121, dtype=torch.float64)
    weights = torch.softmax(-0.5 * steps.square(), 0)
    weights = (weights[:, None] * weights).flatten().log()
    offsets = torch.cartesian_prod(steps, steps)
    by_hand = [
        torch.logsumexp(weights + world.log_likelihood(mean + scatter * offsets, queries), 1)
        for mean, scatter in zip(means, spread, strict=True)
    ]
    oracle = Oracle(means, world, spread=spread)
    torch.testing.assert_close(oracle.scores(queries), torch.stack(by_hand, 1), atol=1e-5, rtol=0)


def test_g_hop_that_knows_bias_and_noise_is_the_oracle():
    means, spread, queries, _ = drawn(0)
    memory = GaussianHopfield(means.double(), spread=spread)
    memory.similarity.bias.data.copy_(SHIFT)
    memory.similarity.log_noise.data.fill_(math.log(NOISE))
    oracle = Oracle(means.double(), WORLD, spread=spread)
    torch.testing.assert_close(memory.scores(queries), oracle.scores(queries), atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(memory.retrieve(queries), oracle.retrieve(queries), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_no_memory_that_learns_is_right_more_often_than_who_knows():
    ahead = {"g-hop": [], "b-hop": [], "no spread": []}
    for seed in range(3):
        means, spread, queries, origins = drawn(seed)
        learn, asked, truth = (queries[:150], origins[:150]), queries[150:], origins[150:]
        memories = {
            "g-hop": GaussianHopfield(means, spread=spread).fit(*learn),
            "b-hop": BayesianHopfield(means).fit(*learn, verbose=False),
            "no spread": Oracle(means, WORLD),
        }
        knows = Oracle(means, WORLD, spread=spread).recall(asked).indices[:, 0] == truth
        for name, memory in memories.items():
            ahead[name].append(knows.float() - (memory.recall(asked).indices[:, 0] == truth).float())
    ahead = {name: torch.cat(some) for name, some in ahead.items()}
    error = {name: float(some.std()) / math.sqrt(len(some)) for name, some in ahead.items()}
    assert float(ahead["g-hop"].mean()) > -2 * error["g-hop"]
    assert float(ahead["b-hop"].mean()) > 3 * error["b-hop"]
    assert float(ahead["no spread"].mean()) > 3 * error["no spread"]


@pytest.mark.parametrize("world", [Growing(0.1, 0.1), Dropped(1, 0.5), Either([Dropped(1, 0.1), Noisy(0.1)])])
def test_a_world_without_a_closed_form_for_scatter_is_refused(world):
    told = "^variant must have a closed form where patterns have a spread: (Growing|Dropped) cannot be scored"
    with pytest.raises(ValueError, match=told):
        Oracle(torch.eye(4), world, spread=torch.ones(4, 4))
    Oracle(torch.eye(4), world)


def test_its_spread_grows_is_left_out_and_is_kept_in_a_file(tmp_path):
    means, spread, queries, _ = drawn(0)
    whole = Oracle(means, WORLD, spread=spread)
    grown = Oracle(means[:40], WORLD, spread=spread[:40]).add(means[40:], spread=spread[40:])
    assert torch.equal(grown.scores(queries), whole.scores(queries))
    whole.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(queries), whole.scores(queries))
    fewer = whole.recall(queries, prior=(torch.arange(60) < 40).expand(300, 60))
    torch.testing.assert_close(fewer.probabilities, grown.remove(range(40, 60)).recall(queries).probabilities)
