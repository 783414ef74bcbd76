"""Two small kernels for an NVIDIA GPU: scores of a likelihood, and what is left of a tile of scores.

What PyTorch needs ten passes over memory for is done in registers. See ``text/mixture.cu`` and ``text/fold.cu``.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ahop._queries import Queries
from ahop.kernels import cuda, cuda_text

_THREADS = 128
# Queries that a thread takes at once where all are scored with the same patterns.
_QUERIES_PER_THREAD = 4
# Rows of a grid that a GPU has at most.
_MOST_ROWS = 65535


def runs_on(like: Tensor) -> bool:
    """Whether these kernels can run where this float32 tensor is."""
    compiles = not torch.version.hip and hasattr(torch.cuda, "_compile_kernel")
    return like.is_cuda and like.dtype == torch.float32 and compiles


def scores(
    patterns: Tensor,
    centre: float,
    chosen: Tensor | None,
    queries: Tensor,
    lost: Tensor,
    gain: Tensor,
    sigma: Tensor,
    level: Tensor,
    observed: Tensor | None,
) -> Tensor:
    r"""The scores of all pairs, or of some patterns for each query,
    :math:`\sum_i \log(e^{f_i} + \sum_j e^{l_{ji} - (x_i - a_j (\xi_i - c))^2 / 2 \sigma_{ji}^2})`.

    Args:
        patterns: ``(N, d)``, as they are.
        centre: What they are counted from, c.
        chosen: Those to score, ``(Q, C)``; None scores all.
        queries: ``(Q, d)``, counted from the centre and the bias.
        lost: The log density f of each value as lost, ``(Q, d)``.
        gain, sigma, level: ``(J,)``, ``(J, d)`` and ``(J, d)``.
        observed: ``(Q, d)``, or None.

    Shape:
        ``(Q, N)``, or ``(Q, C)``.
    """
    columns, each = (len(patterns), _QUERIES_PER_THREAD) if chosen is None else (chosen.shape[1], 1)
    table = queries.new_empty(len(queries), columns)
    if not table.numel():
        return table
    seen = Queries(queries, observed).mask
    given = {
        "patterns": patterns,
        "centre": queries.new_full((1,), centre),
        "chosen": queries.new_empty(0, dtype=torch.long) if chosen is None else chosen,
        "queries": queries,
        "lost": lost,
        "gain": gain,
        "inverse": 0.5**0.5 / sigma,
        "level": level,
        "seen": seen,
    }
    sizes = {"columns": columns, "dims": patterns.shape[1], "kinds": len(gain), "query_count": len(queries)}
    grid = -(-columns // _THREADS), min(_MOST_ROWS, -(-len(queries) // each))
    numbers = {"QUERIES_PER_THREAD": each, "CHOSEN": int(chosen is not None)}
    _launch("mixture", numbers, grid, given | {"out": table} | sizes)
    return table


def fold(tile: Tensor, scale: Tensor, group: int, best: Tensor, offset: int) -> Tensor:
    """Put the best of each group of scores where they belong, and give the logs of what parts of a row sum up to.

    A group is what stands in one column when a row is laid out in ``group`` lines, the last perhaps not full.

    Args:
        tile: ``(Q, n)``.
        scale: What the scores of each query are in units of, ``(Q,)``.
        group: How many are a group.
        best: ``(Q, G)``, which takes them from column ``offset`` on.

    Shape:
        ``(Q, parts)``.
    """
    rows, width = tile.shape
    columns = -(-width // group)
    logs = tile.new_empty(rows, -(-columns // _THREADS))
    given = {"tile": tile, "scale": scale, "best": best, "logs": logs}
    sizes = {"width": width, "columns": columns, "stride": best.shape[1], "offset": offset}
    _launch("fold", {"GROUP": group}, (rows, logs.shape[1]), given | sizes)
    return logs


def text(kernel: str, **numbers: int) -> str:
    """The source of a kernel for these numbers."""
    head = "".join(f"#define {name} {number}\n" for name, number in {"THREADS": _THREADS, **numbers}.items())
    return head + cuda_text.file(kernel)


def _launch(kernel: str, numbers: dict[str, int], grid: tuple[int, int], arguments: dict[str, Tensor | int]) -> None:
    ordered = [one.contiguous() if isinstance(one, Tensor) else one for one in cuda.in_order(kernel, arguments)]
    with torch.cuda.device(ordered[0].device):  # type: ignore[union-attr]
        compiled = _compile(kernel, tuple(numbers.items()), torch.cuda.current_device())
        compiled(grid=(*grid, 1), block=(_THREADS, 1, 1), args=ordered, shared_mem=0)


@lru_cache(maxsize=64)
def _compile(kernel: str, numbers: tuple[tuple[str, int], ...], device: int) -> cuda.Kernel:
    return cuda.compile_text(text(kernel, **dict(numbers)), kernel)
