"""What anyone would try first on items that were measured twice, and what the fields of these data use.

Each brings patterns and queries to one space and compares them there. What learns, learns from pairs: queries
``(n, e)`` and the patterns ``(N, d)`` that their origins ``(n,)`` name. All in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop.memories.base import AssociativeMemory
from ahop.similarity import Cosine, Distance, Manhattan

Move = Callable[[Tensor], Tensor]
Score = Callable[[Tensor, Tensor], Tensor]
METRICS: dict[str, Score] = {"distance": Distance(), "L1": Manhattan(), "cosine": Cosine()}
# What one of them learns from.
NOTHING, ALONE, BOTH = "nothing", "queries alone", "queries and origins"
# A choice is settled by so many of the pairs held out, at most.
_MAX_SELECTION_PAIRS = 500


class Compared(NamedTuple):
    """Patterns as they are stored, how a query comes to them, and the score of each pair, ``(n, N)``."""

    patterns: Tensor
    move: Move
    score: Score

    @torch.no_grad()
    def first(self, queries: Tensor) -> Tensor:
        """The pattern of the highest score for each query, ``(n,)``."""
        moved = self.move(queries.double())
        parts = split(len(moved), len(self.patterns) * moved.element_size())
        return torch.cat([self.score(self.patterns, moved[part]).argmax(1) for part in parts])


def tuned(
    make: Callable[..., Compared],
    options: Sequence[tuple[Any, ...]],
    patterns: Tensor,
    queries: Tensor,
    origins: Tensor,
    seed: int,
) -> Compared:
    """Fit a baseline with the option that is right most often on origins held out.

    Args:
        make: Called as ``make(patterns, queries, origins, *option)``.
        options: What to choose from.
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
        seed: Seed of the hold-out split.

    Example:
        >>> patterns, origins = torch.eye(10), torch.arange(10)
        >>> found = tuned(ridge, [(1e-6, "distance"), (1e6, "distance")], patterns, 1 - patterns, origins, seed=0)
        >>> bool((found.first(1 - patterns) == origins).all())
        True
    """
    patterns, queries = patterns.double(), queries.double()
    items = origins.unique()
    items = items[torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))]
    held = torch.isin(origins, items[: max(1, len(items) // 5)])
    asked, wanted = queries[held], origins[held]
    some = torch.randperm(len(asked), generator=torch.Generator().manual_seed(seed))[:_MAX_SELECTION_PAIRS]

    def right(option: tuple[Any, ...]) -> int:
        found = make(patterns, queries[~held], origins[~held], *option)
        return int((found.first(asked[some]) == wanted[some]).sum())

    return make(patterns, queries, origins, *max(options, key=right))


# --- anyone's -------------------------------------------------------------------------------------------------


def centred(patterns: Tensor, queries: Tensor, metric: str) -> Compared:
    """Each side around its own mean.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d)``.
        metric: A name of ``METRICS``.
    """
    return _standardised(patterns.double(), queries.double(), metric, lambda rows: torch.ones_like(rows[0]))


def z_scored(patterns: Tensor, queries: Tensor, metric: str) -> Compared:
    """Each side around its own mean, in units of its own deviation."""

    def deviation(rows: Tensor) -> Tensor:
        found = rows.std(0)
        return torch.where(found > 0, found, 1.0)

    return _standardised(patterns.double(), queries.double(), metric, deviation)


def _standardised(patterns: Tensor, queries: Tensor, metric: str, unit: Move) -> Compared:
    mean, scale = queries.mean(0), unit(queries)
    stored = (patterns - patterns.mean(0)) / unit(patterns)
    return Compared(stored, lambda asked: (asked - mean) / scale, METRICS[metric])


def ridge(patterns: Tensor, queries: Tensor, origins: Tensor, strength: float, metric: str) -> Compared:
    """The linear map from query to pattern, drawn to zero in units of the queries' mean square.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
        strength: How strongly the map is drawn to zero.
        metric: A name of ``METRICS``.
    """
    wanted, centre, mean = patterns[origins], queries.mean(0), patterns[origins].mean(0)
    gaps = queries - centre
    gram = gaps.T @ gaps
    # Queries that are all alike have no mean square.
    unit = gram.diagonal().mean().clamp_min(1e-20)
    slope = torch.linalg.solve(gram + strength * unit * torch.eye(len(gram)).to(gram), gaps.T @ (wanted - mean))
    return Compared(patterns, lambda asked: (asked - centre) @ slope + mean, METRICS[metric])


RIDGES = list(product((1e-6, 1e-4, 1e-2, 1e-1, 1.0), METRICS))


def whitened(patterns: Tensor, queries: Tensor, origins: Tensor) -> AssociativeMemory:
    """The usual metric learning: distances after whitening by the shrunk covariance of what queries differ by.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d)``.
        origins: The pattern of each query, ``(n,)``.
    """
    return AssociativeMemory(patterns.double(), "mahalanobis", "softmax").fit(queries, origins)


def whitening(patterns: Tensor, queries: Tensor, origins: Tensor) -> Compared:
    """The nearest neighbour after whitening, as :func:`whitened` has it.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d)``.
        origins: The pattern of each query, ``(n,)``.
    """
    memory = whitened(patterns, queries, origins)
    return Compared(memory.patterns, lambda asked: asked, memory.similarity)


def csls(found: Compared, queries: Tensor, origins: Tensor | None = None, count: int = 10) -> Compared:
    r"""Cross-domain similarity local scaling (Conneau and others, 2018), by queries ``(n, e)`` that need no origins.

    .. math:: 2 s(\xi, x) - \tfrac{1}{k} \sum_{x' \in N_k(\xi)} s(\xi, x')

    A hub, which is near to many queries, is the nearest of too many. How near patterns are to the query is the same
    for all of them, and left out. With ``origins`` a pattern's own query does not count: else patterns of learned
    items are worse off than those of scored ones, which is no help but how the items were split.

    Args:
        found: The comparison to correct.
        queries: ``(n, e)``.
        origins: The pattern of each query, ``(n,)``, if its own query is not to count.
        count: k, the number of nearest queries.
    """
    near = torch.cat([rows.topk(min(count, rows.shape[1]), 1).values.mean(1) for rows in _to(found, queries, origins)])
    return found._replace(score=lambda patterns, asked: 2 * found.score(patterns, asked) - near)


def inverted_softmax(found: Compared, queries: Tensor, origins: Tensor | None, temperature: float) -> Compared:
    r"""The softmax over queries instead of patterns (Smith and others, 2017); ``origins`` as in :func:`csls`.

    .. math:: s(\xi, x) - \tau \log \sum_{x'} e^{s(\xi, x') / \tau}

    Args:
        found: The comparison to correct.
        queries: ``(n, e)``.
        origins: As in :func:`csls`.
        temperature: The temperature :math:`\tau`.
    """
    sums = [(rows / temperature).logsumexp(1) for rows in _to(found, queries, origins)]
    hubness = temperature * torch.cat(sums)
    return found._replace(score=lambda patterns, asked: found.score(patterns, asked) - hubness)


def _to(found: Compared, queries: Tensor, origins: Tensor | None) -> Iterator[Tensor]:
    """Scores of each pattern with all queries, block by block; its own query out of reach where origins are given."""
    moved = found.move(queries.double())
    for part in split(len(found.patterns), 3 * len(moved) * moved.element_size()):
        rows = found.score(found.patterns[part], moved).T
        if origins is not None:
            own = torch.arange(len(found.patterns), device=rows.device)[part]
            rows = rows.masked_fill(own[:, None] == origins, -math.inf)
        yield rows


class Plain(NamedTuple):
    """A baseline for any data: how it is made of patterns, queries, origins and a seed, and what it learns from."""

    make: Callable[[Tensor, Tensor, Tensor, int], Compared]
    learns: str


# Those that every table of retrieval has, by the names that tables have for them.
PLAIN: dict[str, Plain] = {}


def _add_metric(metric: str) -> None:
    def raw(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int) -> Compared:
        return Compared(patterns.double(), lambda asked: asked, METRICS[metric])

    PLAIN[metric] = Plain(raw, NOTHING)
    PLAIN[f"centred {metric}"] = Plain(lambda patterns, queries, *_: centred(patterns, queries, metric), ALONE)
    PLAIN[f"z-scored {metric}"] = Plain(lambda patterns, queries, *_: z_scored(patterns, queries, metric), ALONE)


for _metric in METRICS:
    _add_metric(_metric)
PLAIN["whitening"] = Plain(lambda patterns, queries, origins, _: whitening(patterns, queries, origins), BOTH)
PLAIN["ridge"] = Plain(lambda *given: tuned(ridge, RIDGES, *given), BOTH)


# --- of embeddings --------------------------------------------------------------------------------------------


def procrustes(patterns: Tensor, queries: Tensor, origins: Tensor) -> Compared:
    """The rotation (between spaces of unlike width: the matrix of orthonormal rows or columns) nearest to the pairs.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
    """
    left, _, right = torch.linalg.svd(queries.T @ patterns[origins], full_matrices=False)
    rotation = left @ right
    return Compared(patterns, lambda asked: asked @ rotation, METRICS["cosine"])


def perceptron(
    patterns: Tensor, queries: Tensor, origins: Tensor, strength: float, steps: int, seed: int, width: int = 256
) -> Compared:
    """Ridge, and a small network trained to say what it leaves of the pattern.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
        strength: That of the ridge regression.
        steps: The number of training steps.
        seed: Seed of initial weights and batches.
        width: The width of the hidden layer.
    """
    start = ridge(patterns, queries, origins, strength, "cosine")
    unit = queries.std()
    inputs, targets = (queries / unit).float(), (patterns[origins] - start.move(queries)).float()
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        last = nn.Linear(width, targets.shape[1])
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        network = nn.Sequential(nn.Linear(inputs.shape[1], width), nn.GELU(), nn.Dropout(0.2), last).to(inputs)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
        for _ in range(steps):
            rows = torch.randint(len(inputs), (256,))
            loss = (network(inputs[rows]) - targets[rows]).square().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    network.eval()
    return start._replace(move=lambda asked: start.move(asked) + network((asked / unit).float()))


# --- of spectrometers that measure light ----------------------------------------------------------------------


def normal_variates(spectra: Tensor) -> Tensor:
    """Standard normal variates (Barnes and others, 1989): each spectrum around its own mean, by its own deviation."""
    spectra = spectra.double()
    return (spectra - spectra.mean(1, keepdim=True)) / spectra.std(1, keepdim=True)


def derivatives(spectra: Tensor) -> Tensor:
    """The slope of the parabola nearest to 15 channels (Savitzky and Golay, 1964)."""
    from scipy.signal import savgol_filter

    slopes = savgol_filter(spectra.double().cpu().numpy(), window_length=15, polyorder=2, deriv=1, mode="nearest")
    return torch.from_numpy(slopes).to(spectra.device)


def prepared(patterns: Tensor, queries: Tensor, prepare: Move, metric: str) -> Compared:
    """Each side around its own mean, after its rows were prepared.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d)``.
        prepare: What is done to rows.
        metric: A name of ``METRICS``.
    """
    found = centred(prepare(patterns), prepare(queries), metric)
    return found._replace(move=lambda asked: found.move(prepare(asked)))


def direct(patterns: Tensor, queries: Tensor, origins: Tensor, rank: int, metric: str) -> Compared:
    """Direct standardisation (Wang and others, 1991): regression on the leading components of the queries.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
        rank: The number of components.
        metric: A name of ``METRICS``.
    """
    wanted, centre, mean = patterns[origins], queries.mean(0), patterns[origins].mean(0)
    left, values, right = (part[..., :rank] for part in _components(queries - centre))
    slope = right / values @ (left.T @ (wanted - mean))
    return Compared(patterns, lambda asked: (asked - centre) @ slope + mean, METRICS[metric])


def piecewise(patterns: Tensor, queries: Tensor, origins: Tensor, reach: int, strength: float, metric: str) -> Compared:
    """Piecewise direct standardisation: each channel from those of the queries within ``reach`` of it.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d)``.
        origins: The pattern of each query, ``(n,)``.
        reach: How many channels to either side are looked at.
        strength: How strongly each map is drawn to zero.
        metric: A name of ``METRICS``.
    """
    wanted, mean = patterns[origins], patterns[origins].mean(0)

    def windows(rows: Tensor) -> Tensor:
        return nn.functional.pad(rows[:, None], (reach, reach), "replicate")[:, 0].unfold(1, 2 * reach + 1, 1)

    near = windows(queries)
    centre = near.mean(0)
    gaps = near - centre
    gram = torch.einsum("ndi,ndj->dij", gaps, gaps)
    penalty = strength * gram.diagonal(dim1=1, dim2=2).mean(1)[:, None, None] * torch.eye(2 * reach + 1).to(gram)
    slope = torch.linalg.solve(gram + penalty, torch.einsum("ndi,nd->di", gaps, wanted - mean))
    return Compared(
        patterns, lambda asked: torch.einsum("ndi,di->nd", windows(asked) - centre, slope) + mean, METRICS[metric]
    )


def orthogonal(patterns: Tensor, queries: Tensor, origins: Tensor, count: int, metric: str) -> Compared:
    """Transfer by orthogonal projection (Andrew and Fearn, 2004): both sides without what differs most in pairs.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d)``.
        origins: The pattern of each query, ``(n,)``.
        count: The number of directions to project out.
        metric: A name of ``METRICS``.
    """
    gaps = queries - patterns[origins]
    bias = gaps.mean(0)
    away = _components(gaps - bias)[2][:, :count]

    def project(rows: Tensor) -> Tensor:
        return rows - rows @ away @ away.T

    return Compared(project(patterns), lambda asked: project(asked - bias), METRICS[metric])


def _components(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Left vectors ``(n, k)``, values ``(k,)`` and right vectors ``(d, k)``, largest first, none of them noise."""
    left, values, right = torch.linalg.svd(rows, full_matrices=False)
    sound = values > 1e-10 * values[0]
    return left[:, sound], values[sound], right.T[:, sound]


# --- of phones ------------------------------------------------------------------------------------------------


def sorensen(patterns: Tensor, power: float) -> Compared:
    """Sørensen's distance of powers of strengths (Torres-Sospedra and others, 2015), which are -1 where unheard."""

    def strengths(rows: Tensor) -> Tensor:
        return ((rows.double() + 1) / 2) ** power

    def score(stored: Tensor, asked: Tensor) -> Tensor:
        both = asked.sum(1, keepdim=True) + stored.sum(1)
        return METRICS["L1"](stored, asked) / both.clamp_min(torch.finfo(both.dtype).tiny)

    return Compared(strengths(patterns), strengths, score)


def ranked(patterns: Tensor) -> Compared:
    """L1 of ranks within each row, which no phone's own scale changes; equal values share their mean rank."""

    def ranks(rows: Tensor) -> Tensor:
        from scipy.stats import rankdata

        return torch.from_numpy(rankdata(rows.double().cpu().numpy(), axis=1)).to(rows.device)

    return Compared(ranks(patterns), ranks, METRICS["L1"])


# --- of spectrometers that weigh ------------------------------------------------------------------------------


def weighted_cosine(patterns: Tensor, mass: float, intensity: float) -> Compared:
    """The cosine of m/z^mass * intensity^intensity, from square roots of intensities at nominal masses.

    Args:
        patterns: Square roots of intensities, ``(N, d)``.
        mass, intensity: Both exponents.
    """
    masses = torch.arange(1, patterns.shape[1] + 1).to(patterns).double()

    def weigh(roots: Tensor) -> Tensor:
        return roots.double() ** (2 * intensity) * masses**mass

    return Compared(weigh(patterns), weigh, METRICS["cosine"])


def spectral_entropy(patterns: Tensor, power: float) -> Compared:
    """Weighted spectral entropy (Li and others, 2021) of square roots of intensities to this power."""

    def weigh(roots: Tensor) -> Tensor:
        peaks = _to_one(roots.double() ** power)
        entropy = -_log_times(peaks).sum(1, keepdim=True)
        return _to_one(torch.where(entropy < 3, peaks ** (0.25 + 0.25 * entropy), peaks))

    return Compared(weigh(patterns), weigh, shared_entropy)


def shared_entropy(patterns: Tensor, queries: Tensor) -> Tensor:
    r"""One minus the Jensen-Shannon divergence in bits, which only masses with a peak on both sides add to.

    .. math:: s(\xi, x) = \tfrac{1}{\ln 4} \sum_i (\xi_i + x_i) \ln(\xi_i + x_i) - \xi_i \ln \xi_i - x_i \ln x_i

    Example:
        >>> shared_entropy(torch.eye(2), torch.tensor([[1.0, 0.0]]))
        tensor([[1., 0.]])
    """
    scores = queries.new_zeros(len(queries), len(patterns))
    for stored, asked in zip(patterns.T, queries.T, strict=True):
        here, there = asked.nonzero(), stored.nonzero().squeeze(1)
        mine, theirs = asked[here], stored[there]
        scores[here, there] += _log_times(mine + theirs) - _log_times(mine) - _log_times(theirs)
    return scores / math.log(4)


def _log_times(values: Tensor) -> Tensor:
    return torch.special.xlogy(values, values)


def _to_one(rows: Tensor) -> Tensor:
    return rows / rows.sum(1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)
