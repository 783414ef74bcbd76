"""Memories of every kind of likelihood, for an index to be made of."""

import math

import torch

from ahop import BayesianHopfield
from ahop.similarity import Correlated, Floor, Likelihood, Moved, Regimes, Transformed

COUNT, DIM = 3000, 12


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def likelihood(sigma=0.6):
    model = Likelihood(DIM, low=-4, high=4, components=2)
    model.log_sigma.data.fill_(math.log(sigma))
    model.bias.data.copy_(drawn(DIM, seed=1))
    return model


def correlated(tails):
    model = Correlated(DIM, 2, tails=tails)
    model.loading.data.copy_(drawn(DIM, 2, seed=2))
    model.log_psi.data.fill_(-1.0)
    model.bias.data.copy_(drawn(DIM, seed=3))
    return model


def moved():
    return Moved.around(drawn(DIM, DIM, seed=4), drawn(DIM, seed=5), 0.3 * torch.eye(DIM), 8.0, 0.9)


def floored(regimes):
    model = Floor(DIM, 0.0, regimes=regimes, levels=3, bins=4)
    for number, parameter in enumerate(model.parameters()):
        parameter.data.add_(0.5 * drawn(*parameter.shape, seed=10 + number))
    return model


MODELS = {
    "likelihood": likelihood,
    "regimes": lambda: Regimes([likelihood(0.4), likelihood(1.0)]),
    "hidden causes": lambda: correlated(math.inf),
    "hidden causes, heavy tails": lambda: correlated(5.0),
    "a moved space": moved,
    "a floor": lambda: floored(1),
    "a floor, regimes": lambda: floored(3),
    "logarithms": lambda: Transformed(likelihood(), "logarithm", low=-5.0),
}


def memory_of(name, prior=False, log_beta=-0.3):
    patterns = drawn(COUNT, DIM, seed=6)
    if "floor" in name:
        patterns = (patterns.clamp_min(0) / 3).clamp_max(0.99)
    counts = drawn(COUNT, seed=7).exp() if prior else None
    memory = BayesianHopfield(patterns, similarity=MODELS[name](), prior=counts)
    memory.similarity.log_beta.fill_(log_beta)
    queries = patterns[::60] + 0.5 * drawn(50, DIM, seed=8)
    if "floor" in name:
        queries = queries.clamp(0, 0.99)
    if name == "a moved space":
        queries = queries @ memory.similarity.model.matrix.data.mT + memory.similarity.model.bias.data
    return memory, queries
