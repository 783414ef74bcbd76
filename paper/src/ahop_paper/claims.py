"""What the paper proves, tried on numbers: each statement as printed, and as it holds.

A check draws a small world and gives two figures, for the printed and for the corrected form: mostly the share of
trials in which the statement is true. Where both are alike, nothing had to be corrected.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.energy import unified_step
from ahop.memories.base import AssociativeMemory
from ahop.memories.oracle import Oracle
from ahop.similarity import Decomposable, Distance, Unified
from ahop.theory import Matches, agreement, energy_bound
from ahop.variants import Biased, Masked, Noisy, Variant
from ahop_paper import report as reports

DIM, PATTERNS, TRIALS = 8, 32, 200


class Found(NamedTuple):
    """What the printed and what the corrected form of a statement measure."""

    printed: float
    corrected: float


class Claim(NamedTuple):
    """A statement of the paper and how it is tried."""

    where: str
    says: str
    measured: str
    """What the two figures are."""
    holds: str
    """What is true instead, or that it is true."""
    check: Callable[[], Found]


def _draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def _share(true: Tensor) -> float:
    return float(true.double().mean())


def _triangle(lower: bool) -> Tensor:
    ones = torch.ones(DIM, DIM, dtype=torch.float64)
    return ones.tril() if lower else ones.triu()


# --- footprints -----------------------------------------------------------------------------------------------


def _terms() -> tuple[Tensor, Tensor]:
    """Terms of the distance of many pairs, best first, and the best sum over every number of dimensions."""
    terms = Distance().terms(_draw(TRIALS, DIM), _draw(TRIALS, DIM, seed=1))
    best = torch.stack(
        [
            torch.stack([terms[:, list(some)].sum(1) for some in itertools.combinations(range(DIM), size)]).amax(0)
            for size in range(1, DIM + 1)
        ],
        1,
    )
    return terms.sort(1, descending=True).values, best


def best_subsets() -> Found:
    """Sums of the largest terms against all subsets of dimensions, one by one."""
    terms, best = _terms()
    share = _share(torch.isclose(terms.cumsum(1), best).all(1))
    return Found(share, share)


def orientation() -> Found:
    """U as an upper and as a lower triangle."""
    terms, best = _terms()
    return Found(*(_share(torch.isclose(terms @ _triangle(lower).T, best).all(1)) for lower in (False, True)))


def degeneration() -> Found:
    """All weight on the first and on the last entry of the footprint, against the distance itself."""
    terms, best = _terms()
    return Found(*(_share(torch.isclose(best[:, place], terms.sum(1))) for place in (0, -1)))


# --- the best similarity of a corruption ----------------------------------------------------------------------


class _Weighed(Decomposable):
    """Terms with a weight for each dimension."""

    def __init__(self, weights: Tensor, *, squared: bool) -> None:
        super().__init__()
        self.weights, self.squared = weights, squared

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        apart = queries - patterns
        return self.weights * apart.square() if self.squared else self.weights * apart - apart.square()


def _agreement(similarity: Decomposable, world: Variant) -> float:
    patterns = _draw(PATTERNS, DIM)
    return agreement(similarity, Oracle(patterns, world), world.sample(patterns, TRIALS).queries)


def _order(wanted: Tensor) -> tuple[Tensor, Tensor]:
    """What w' U makes of the printed w, each the difference to the one before, and of differences to the one behind."""
    nothing = wanted.new_zeros(1)
    printed = wanted - torch.cat([nothing, wanted[:-1]])
    corrected = wanted - torch.cat([wanted[1:], nothing])
    return printed @ _triangle(lower=True), corrected @ _triangle(lower=True)


def noise() -> Found:
    """Weights for noise that is larger in some dimensions, by the share of queries answered as the Oracle does."""
    sigma = torch.linspace(0.1, 1.0, DIM, dtype=torch.float64)
    world = Noisy(sigma=sigma)
    return Found(*(_agreement(_Weighed(u, squared=True), world) for u in _order(-1 / sigma.square())))


def masking() -> Found:
    """Counting exact matches, likewise."""
    share = _agreement(Matches(), Masked(0.5, seed=1))
    return Found(share, share)


def bias() -> Found:
    """Weights for a bias, likewise."""
    world = Biased(0.5)
    return Found(*(_agreement(_Weighed(u, squared=False), world) for u in _order(2 * world.shift(DIM).double())))


def total_probability() -> Found:
    """Of one value that is masked with probability .3 by one of four signs: the sum of its likelihoods."""
    masked, signs = 0.3, torch.arange(4)
    kept, drawn = (signs == 0).double(), 1 / len(signs)
    printed = (masked * drawn) ** (1 - kept)
    corrected = (1 - masked) * kept + masked * drawn
    return Found(float(printed.sum()), float(corrected.sum()))


# --- energy ---------------------------------------------------------------------------------------------------


def _memory() -> tuple[AssociativeMemory, Tensor]:
    """One with the similarity for noise and bias, and its b."""
    b = 2 * _draw(DIM, seed=5)
    return AssociativeMemory(_draw(PATTERNS, DIM), Unified(b), "softmax"), b


def rewriting() -> Found:
    """The energy against the difference of two convex functions, with the sign of the constant both ways."""
    (memory, b), states = _memory(), 2 * _draw(TRIALS, DIM, seed=3)
    patterns = memory.patterns
    slope = 2 * patterns + b

    def energy(sign: int) -> Tensor:
        constant = sign * patterns @ b - patterns.square().sum(1)
        return states.square().sum(1) - torch.logsumexp(states @ slope.T + constant, 1)

    return Found(*(_share(torch.isclose(energy(sign), memory.energy(states))) for sign in (1, -1)))


def _falls(shift: float, steps: int = 1) -> float:
    """The share of steps that do not raise the energy, to the readout and so many b; from states that lie about."""
    (memory, b), states = _memory(), 2 * _draw(TRIALS, DIM, seed=3)
    falls = []
    for _ in range(steps):
        after = unified_step(memory, states) + (shift - 0.5) * b
        falls.append(memory.energy(after) <= memory.energy(states) + 1e-9)
        states = after
    return _share(torch.stack(falls))


def descent() -> Found:
    """Half of b taken away, as the proof ends, and added."""
    return Found(_falls(-0.5), _falls(0.5))


def plain_dynamics() -> Found:
    """Five steps of the network's own dynamics, without that half, and with it."""
    return Found(_falls(0.0, steps=5), _falls(0.5, steps=5))


def debiased() -> Found:
    """Half of b added, as the lemma is stated."""
    share = _falls(0.5)
    return Found(share, share)


def bound() -> Found:
    """Where the energy lies above its bound, from states on patterns and far away."""
    memory, b = _memory()
    states = torch.cat([memory.patterns + b / 2, memory.patterns, 10 * _draw(TRIALS, DIM)])
    share = _share(memory.energy(states) >= energy_bound(memory))
    return Found(share, share)


CLAIMS = (
    Claim(
        "Theorem equiv",
        "the best similarity over k dimensions is the sum of the k largest terms",
        "pairs where it is, by brute force",
        "It holds.",
        best_subsets,
    ),
    Claim(
        "ablations",
        "U is the upper-right triangle",
        "pairs whose footprint U gives",
        "The lower-left one, as in the main text; the other goes with terms in rising order.",
        orientation,
    ),
    Claim(
        "Lemma iso-noisy",
        "w_1 = 1 and all else 0 is the distance",
        "pairs where it is",
        "w_d = 1; w_1 = 1 goes with the other U, and is the best single dimension with this one.",
        degeneration,
    ),
    Claim(
        "Lemma noisy",
        "w_1 = -1/v_1, w_i = 1/v_(i-1) - 1/v_i is optimal for variances v",
        "queries answered as by the Oracle",
        "w_d = -1/v_d, w_i = 1/v_(i+1) - 1/v_i: the printed one goes with the other U.",
        noise,
    ),
    Claim(
        "Definition masked",
        "the likelihood of a masked variant",
        "sum over all values of one dimension",
        "A kept value has probability 1 - p, which is left out.",
        total_probability,
    ),
    Claim(
        "Lemma masked",
        "to count exact matches is optimal for a uniform fill",
        "queries answered as by the Oracle",
        "It holds.",
        masking,
    ),
    Claim(
        "Lemma biased",
        "w_1 = 2d_1, w_i = 2d_i - 2d_(i-1) is optimal",
        "queries answered as by the Oracle",
        "w_d = 2d_d, w_i = 2d_i - 2d_(i+1): the printed one goes with the other U.",
        bias,
    ),
    Claim(
        "Lemma rewrite, its proof",
        "E = ‖x‖² - lse(Ax + c) with c_i = ξ_i'b - ‖ξ_i‖²",
        "states where it is",
        "c_i = -ξ_i'b - ‖ξ_i‖²; and no ln N comes on top.",
        rewriting,
    ),
    Claim(
        "Lemma dec, its proof",
        "E falls along x ← Ξp - b/2",
        "steps that do not raise E",
        "Along x ← Ξp + b/2, as Lemma dec has it.",
        descent,
    ),
    Claim(
        "Lemma dec",
        "E falls along x ← Ξp + b/2",
        "steps that do not raise E",
        "It holds.",
        debiased,
    ),
    Claim(
        "after Theorem energy",
        "E falls during iterative retrieval, y = Ξp",
        "of five steps, those that do not raise E",
        "Along x ← Ξp + b/2, the step of Lemma dec; without b they are one.",
        plain_dynamics,
    ),
    Claim(
        "Theorem energy",
        "E is at least -ln N - ‖b‖²/4",
        "states where it is",
        "It holds.",
        bound,
    ),
)


def run() -> dict[str, Any]:
    """Try every claim."""
    head = reports.stamp("claims", {"dim": DIM, "patterns": PATTERNS, "trials": TRIALS, "seed": 0}, __file__)
    rows = []
    for claim in CLAIMS:
        found = claim.check()
        texts = {"where": claim.where, "says": claim.says, "measured": claim.measured, "holds": claim.holds}
        rows.append({**texts, "printed": round(found.printed, 3), "corrected": round(found.corrected, 3)})
    return {**head, "rows": rows}
