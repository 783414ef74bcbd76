"""Rotations to begin with, where pairs are not known, or few.

*Components*: independent components of either side are matched by how their squares go together, which is a quadratic
assignment. Models of one world find like components, be their spaces ever so different. *Fingerprints*: where the
spaces are alike, so are the similarities of items to the others of their own side, sorted. *Pairs*: items are alike
that are alike to the same known ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.families.moved.turns import directions, nearest, nearest_rotation

# Items whose fingerprints are compared, at how many places, and how sharply.
_FINGERPRINTS, _PLACES, _REGULARISATION = 5000, 100, 3e-3
# Known pairs that items are described by, at most.
_MAX_PAIRS = 2000
# Numbers of components, items that they are found by, and assignments that are tried for each kind of moments.
_COMPONENTS, _ITEMS, _TRIES = (30, 40, 50, 60), 5000, 8
_TINY = 1e-30


def by_pairs(stored: Tensor, asked: Tensor, pairs: tuple[Tensor, Tensor]) -> Iterator[Tensor]:
    """Rotations that known pairs of directions suggest: ``(m, d')`` of queries, ``(m, d)`` of patterns."""
    some = slice(0, _MAX_PAIRS)
    x, y = (directions(rows @ own[some].mT) for rows, own in zip((asked, stored), pairs, strict=True))
    yield nearest_rotation(asked.mT @ stored[nearest(x, y)])
    yield nearest_rotation(pairs[0].mT @ pairs[1])


def by_fingerprints(stored: Tensor, asked: Tensor) -> Tensor:
    """The rotation nearest to a plan between the fingerprints of some items of both sides, which no rotation changes.

    Args:
        stored: Directions of patterns ``(N, d)``, in random order.
        asked: Those of queries ``(n, d')``.
    """
    count = min(len(stored), len(asked), _FINGERPRINTS)
    x, k = asked[:count], stored[:count]
    return nearest_rotation(x.mT @ (_plan(_fingerprints(x), _fingerprints(k)) @ k))


def by_components(stored: Tensor, asked: Tensor, seed: int) -> Iterator[Tensor]:
    """Rotations under which independent components of both sides go together in the same way.

    Args:
        stored: Directions of patterns ``(N, d)``, in random order.
        asked: Those of queries ``(n, d')``.
        seed: Where the search for components begins, which decides what is found.
    """
    white = [_whitened(side) for side in (asked, stored)]
    most = min(rows.shape[1] for rows in white)
    if most < 2:
        # One component has nothing to go together with.
        return
    for count in sorted({min(count, most) for count in _COMPONENTS}):
        there, here = (_components(rows[:, :count], seed + side) for side, rows in enumerate(white))
        for moments in (_squares, _tails, _joint_tails):
            matched = _assigned(moments(there), moments(here), seed)
            x, y = (directions(torch.from_numpy(rows).to(stored)) for rows in (there, here[:, matched]))
            yield nearest_rotation(asked.mT @ stored[nearest(x, y)])


# --- fingerprints ----------------------------------------------------------------------------------------------


def _fingerprints(items: Tensor) -> Tensor:
    """The similarities of each item to the others, sorted, at a hundred places."""
    every = max(1, len(items) // _PLACES)
    parts = split(len(items), 4 * len(items) * items.element_size())
    return torch.cat([(items[part] @ items.mT).sort(1).values[:, ::every] for part in parts])


def _plan(left: Tensor, right: Tensor, rounds: int = 40) -> Tensor:
    """The entropic transport plan between equally many fingerprints; rows sum to one."""
    plan = -torch.cdist(left, right).square_() / _REGULARISATION
    # A few rounds on logarithms, where nothing vanishes; from there on, plain products are as good and much faster.
    for _ in range(3):
        plan -= plan.logsumexp(1, keepdim=True)
        plan -= plan.logsumexp(0, keepdim=True)
    plan.exp_()
    columns = torch.ones_like(plan[0])
    for _ in range(rounds):
        rows = 1 / (plan @ columns).clamp_min(_TINY)
        columns = 1 / (rows @ plan).clamp_min(_TINY)
    return plan.mul_(rows[:, None]).mul_(columns)


# --- components ------------------------------------------------------------------------------------------------


def _whitened(items: Tensor) -> np.ndarray:
    """The leading principal components of items, ``(n, k)``, each of variance one; no more than there are."""
    rows = (items - items.mean(0)).double().cpu()
    variances, vectors = torch.linalg.eigh(rows.mT @ rows / len(rows))
    real = int((variances > 1e-9 * variances[-1]).sum())
    most = min(max(_COMPONENTS), real, len(rows))
    leading = slice(len(variances) - most, None)
    return (rows @ (vectors[:, leading] / variances[leading].sqrt())).flip(1).numpy()


def _components(white: np.ndarray, seed: int) -> np.ndarray:
    """Independent components of whitened rows, ``(n, count)``: of variance one, with their longer tails above."""
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Components that have not quite settled are as good a start.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = FastICA(whiten=False, max_iter=200, tol=1e-3, random_state=seed)
        found.fit(white[:_ITEMS])
    rows = found.transform(white)
    rows = rows * np.sign((rows**3).mean(0))
    return rows / (rows.std(0) + _TINY)


def _squares(rows: np.ndarray) -> np.ndarray:
    """How the squares of components go together."""
    squares = np.clip(rows, -6, 6) ** 2
    return squares.T @ squares / len(rows)


def _tails(rows: np.ndarray) -> np.ndarray:
    """How far components are large together, more than by chance."""
    return np.asarray(np.corrcoef((rows > 1.5).T.astype(float) + 1e-6 * rows.T))


def _joint_tails(rows: np.ndarray) -> np.ndarray:
    """How much oftener than by chance two components are among their own largest."""
    large = (rows > np.quantile(rows, 0.9, axis=0)).astype(float)
    return np.log(large.T @ large / len(rows) + 1e-4)


def _assigned(there: np.ndarray, here: np.ndarray, seed: int) -> np.ndarray:
    """The component here for each one there under which two tables of moments are most alike."""
    from scipy.optimize import quadratic_assignment

    there, here = (_standardised(table) for table in (there, here))
    rng, count = np.random.default_rng(seed), len(there)
    best = None
    for attempt in range(_TRIES):
        start = rng.random((count, count))
        for _ in range(30):
            start /= start.sum(0)
            start /= start.sum(1, keepdims=True)
        options = {"maximize": True, "rng": rng, "P0": (1 / count + start) / 2 if attempt else "barycenter"}
        found = quadratic_assignment(there, here, method="faq", options=options)
        best = found if best is None or found.fun > best.fun else best
    assert best is not None
    return np.asarray(best.col_ind)


def _standardised(table: np.ndarray) -> np.ndarray:
    """A table with its diagonal and the rest each of mean nought and variance one."""
    off = ~np.eye(len(table), dtype=bool)
    diagonal, rest = table.diagonal(), table[off]
    own = np.diag((diagonal - diagonal.mean()) / (diagonal.std() + _TINY))
    return np.where(off, (table - rest.mean()) / (rest.std() + _TINY), own)
