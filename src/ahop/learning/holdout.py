"""What is held out while learning, to judge by: a hold-out split, two halves, or the folds of a cross-validation."""

from __future__ import annotations

import torch
from torch import Tensor

# So that halves differ from other draws of the same seed: one half would have none of what those took.
_SEED_OFFSET = 1_000_003


def holdout_split(count: int, seed: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """A random hold-out split, of one row in five.

    Args:
        count: The number of rows.
        seed: Seed of the draw.
        device: Where the indices are needed.

    Returns:
        Indices of the rows to learn from, and of those to judge by.

    Example:
        >>> learn, judge = holdout_split(10, seed=0)
        >>> len(learn), len(judge), sorted(torch.cat([learn, judge]).tolist()) == list(range(10))
        (8, 2, True)
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).to(device)
    return order[count // 5 :], order[: count // 5]


def folds_by_origin(origins: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """The fold of each row ``(n,)``, by chance; no origin is in two, and there are no more folds than origins.

    Args:
        origins: ``(n,)``.
        most: How many folds.
        generator: Where the draw comes from.

    Example:
        >>> folds = folds_by_origin(torch.tensor([4, 4, 7, 7, 9]), 2, torch.Generator().manual_seed(0))
        >>> bool(folds[0] == folds[1]), bool(folds[2] == folds[3]), folds.unique()
        (True, True, tensor([0, 1]))
    """
    known, group = origins.unique(return_inverse=True)
    order = torch.randperm(len(known), generator=generator).to(origins.device)
    return (order % min(most, len(known)))[group]


def hidden_folds(origins: Tensor, folds: int, seed: int) -> list[Tensor]:
    """The rows that each fold of a cross-validation hides, as masks ``(n,)``; no origin is in two folds.

    Rows of unknown origin are hidden by none. Folds are drawn in another order than by :func:`folds_by_origin`:
    published figures rest on both.

    Args:
        origins: ``(n,)``; negative where nobody knows, or where it is none of the patterns.
        folds: How many folds. If there are fewer known origins, some are empty.
        seed: Seed of the draw.

    Example:
        >>> one, other = hidden_folds(torch.tensor([4, 4, 7, -1]), 2, seed=0)
        >>> bool(one[0] == one[1]), (one | other).tolist(), bool((one & other).any())
        (True, [True, True, True, False], False)
    """
    known = origins[origins >= 0].unique()
    known = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(seed)).to(known.device)]
    return [torch.isin(origins, known[fold::folds]) for fold in range(folds)]


def halves(count: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Two random halves.

    Args:
        count: The number of rows.
        seed: Seed of the draw.
        device: Where the indices are needed.

    Returns:
        Indices of both halves.
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed + _SEED_OFFSET)).to(device)
    return order[: count // 2], order[count // 2 :]


def halves_by_origin(origins: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Two halves that share no known origin, unless most rows have the same one; the others by chance.

    Args:
        origins: ``(n,)``, -1 where nobody knows.
        seed: For the draw.
    """
    count, known = len(origins), origins >= 0
    if bool(known.any()):
        # A row of unknown origin is a group by itself.
        alone = int(origins.max()) + 1 + torch.arange(count, device=origins.device)
        _, group = torch.where(known, origins, alone).unique(return_inverse=True)
        draw = torch.rand(int(group.max()) + 1, generator=torch.Generator().manual_seed(seed))
        side = draw.to(origins.device)[group]
        first = side < side.median()
        if bool(first.any()) and not bool(first.all()):
            return first.nonzero().squeeze(1), (~first).nonzero().squeeze(1)
    return halves(count, seed, origins.device)
