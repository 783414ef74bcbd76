"""Worlds of every kind that can be drawn: patterns, what happens to queries, and how many there are."""

import math

import torch

from ahop_paper.drawing import Draw, World

PATTERNS = ["uniform", "normal", "binary", "lognormal", "sparse", "lowrank", "clusters", "smooth", "integers"]
NOISES = [
    "normal",
    "laplace",
    "uniform",
    "student",
    "masked",
    "zeroed",
    "shifted",
    "moved",
    "gain",
    "unequal",
    "outliers",
    "rounded",
    "causes",
    "rotated",
    "clipped",
    "regimes",
    "scaled",
    "lognormal",
]


class Choices(Draw):
    """Numbers of one seed, and choices."""

    def one_of(self, names):
        return names[int(self.below(len(names)))]

    def between(self, low, high):
        """A whole number, small ones as often as large ones."""
        return round(low * math.exp(float(self.uniform()) * math.log(high / low)))


def patterns_of(kind, count, dim, draw):
    if kind == "uniform":
        return draw.uniform(count, dim) * 2 - 1
    if kind == "binary":
        return (draw.uniform(count, dim) > 0.5).float() * 2 - 1
    if kind == "lognormal":
        return draw.normal(count, dim).exp()
    if kind == "sparse":
        return draw.uniform(count, dim) * (draw.uniform(count, dim) < 0.3)
    if kind == "lowrank":
        return draw.normal(count, 3) @ draw.normal(3, dim) / 2 + 0.2 * draw.normal(count, dim)
    if kind == "clusters":
        return 2 * draw.normal(5, dim)[draw.below(5, count)] + 0.5 * draw.normal(count, dim)
    if kind == "smooth":
        return draw.normal(count, dim).cumsum(1) / math.sqrt(dim)
    if kind == "integers":
        return draw.below(6, count, dim).float()
    return draw.normal(count, dim)


def corrupted(kind, rows, patterns, level, draw):
    """What becomes of rows ``(m, d)`` of the patterns; all of them suffer the same."""
    (count, dim), spread = rows.shape, float(patterns.std(0, unbiased=False).mean()) or 1.0
    noise = 0.5 * level * spread * draw.normal(count, dim)
    wide = level * spread
    if kind == "laplace":
        return rows - 0.7 * wide * draw.normal(count, dim).sign() * draw.uniform(count, dim).clamp_min(1e-9).log()
    if kind == "uniform":
        return rows + 2 * wide * (2 * draw.uniform(count, dim) - 1)
    if kind == "student":
        return rows + 0.6 * wide * draw.normal(count, dim) / draw.normal(count, dim, 2).square().mean(-1).sqrt()
    if kind == "masked":
        others = patterns.flatten()[draw.below(patterns.numel(), count, dim)]
        return torch.where(draw.uniform(count, dim) < 0.7 * level, others, rows + 0.2 * noise)
    if kind == "zeroed":
        return torch.where(draw.uniform(count, dim) < 0.7 * level, 0.0, rows + 0.2 * noise)
    if kind == "shifted":
        return rows + 3 * wide * float(draw.uniform()) + noise
    if kind == "moved":
        return rows + 2 * wide * draw.normal(dim) + noise
    if kind == "gain":
        return rows * (level * draw.normal(count, 1)).exp() + 0.5 * noise
    if kind == "unequal":
        return rows + noise * (0.8 * draw.normal(dim)).exp()
    if kind == "outliers":
        return rows + noise * (1 + 20 * (draw.uniform(count, dim) < 0.1))
    if kind == "rounded":
        return torch.round((rows + noise) / spread) * spread
    if kind == "causes":
        return rows + 2 * wide * draw.normal(count, 2) @ draw.normal(2, dim) + 0.5 * noise
    if kind == "rotated":
        rotation = torch.linalg.qr(torch.eye(dim) + 0.3 * draw.normal(dim, dim)).Q
        return (rows - patterns.mean(0)) @ rotation + patterns.mean(0) + 0.5 * noise
    if kind == "clipped":
        return (rows + 2 * noise).clamp(float(patterns.min()), float(patterns.max()))
    if kind == "regimes":
        return rows + 2 * noise * torch.where(draw.uniform(count, 1) < 0.5, 0.1, 1.5)
    if kind == "scaled":
        return rows * (0.5 * draw.normal(dim)).exp() + noise
    if kind == "lognormal":
        return rows * (0.3 * (1 + level) * draw.normal(count, dim)).exp()
    return rows + 2 * noise


def world(seed, fewest=20, asked=400):
    """A world with 2 to 200 patterns of 1 to 50 dimensions, and ``fewest`` to 400 queries to learn from; its name."""
    draw = Choices(seed)
    count, dim, learned = draw.between(2, 200), draw.between(1, 50), draw.between(fewest, 400)
    stored, noise, level = draw.one_of(PATTERNS), draw.one_of(NOISES), 0.1 + 0.9 * float(draw.uniform())
    patterns = patterns_of(stored, count, dim, draw) * 10 ** (4 * float(draw.uniform()) - 2)
    patterns = patterns + (10 * float(draw.uniform()) - 5) * float(draw.uniform() < 0.3)
    origins = draw.below(count, learned + asked)
    queries = corrupted(noise, patterns[origins], patterns, level, draw)
    name = f"{seed}: {stored} {noise} {level:.2f}, {count} x {dim}, {learned} queries"
    return World(patterns, queries[:learned], origins[:learned], queries[learned:], origins[learned:]), name
