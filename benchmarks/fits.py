"""How long default fits take, from images of many pixels to thousands of records, beside one product of the same data.

A ratio is the time of a fit over that of queries times patterns, in one run: ``python benchmarks/fits.py``, with
``--device cuda`` on a GPU. Writes ``results/fits-cpu.json`` or ``results/fits-cuda.json``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import ahop
from ahop_paper import report


class Size(NamedTuple):
    """Patterns, queries and dimensions (of queries, too, where they have a space of their own), labels, and what kind
    of data."""

    name: str
    patterns: int
    queries: int
    dim: int
    query_dim: int
    labels: int | None
    kind: str


SIZES = (
    Size("images, all labels", 38, 1179, 1024, 1024, None, "images"),
    Size("images, no labels", 38, 1179, 1024, 1024, 0, "images"),
    Size("few images, all labels", 40, 180, 1024, 1024, None, "images"),
    Size("records, no labels", 5000, 5000, 120, 120, 0, "records"),
    Size("another model, ten labels", 10_000, 5000, 256, 100, 10, "records"),
)


def images(size: Size, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Smooth images in the light of each query's own."""
    side = round(size.dim**0.5)
    noise = torch.randn(size.patterns, 1, side + 4, side + 4, generator=generator)
    patterns = torch.nn.functional.avg_pool2d(noise, 5, stride=1).flatten(1).mul(4).exp()
    origins = torch.randint(size.patterns, (size.queries,), generator=generator)
    line = torch.linspace(-1, 1, side)
    tilt = torch.randn(size.queries, 2, 1, 1, generator=generator)
    light = (tilt[:, 0] * line[:, None] + tilt[:, 1] * line).exp().flatten(1)
    queries = patterns[origins] * light * (1 + 0.2 * torch.randn(size.queries, size.dim, generator=generator))
    return patterns, queries, origins


def records(size: Size, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Shifted, with a few hidden causes and noise; or of another model, which bends what it sees."""
    patterns = torch.randn(size.patterns, size.dim, generator=generator)
    origins = torch.randperm(size.patterns, generator=generator)[: size.queries]
    if size.query_dim == size.dim:
        causes = torch.randn(size.queries, 3, generator=generator) @ torch.randn(3, size.dim, generator=generator)
        seen = patterns[origins] + torch.randn(size.dim, generator=generator) + causes
    else:
        matrix = torch.randn(size.dim, size.query_dim, generator=generator) / size.dim**0.5
        seen = (patterns[origins] @ matrix).tanh()
    return patterns, seen + 0.3 * torch.randn(seen.shape, generator=generator), origins


KINDS = {"images": images, "records": records}


def seconds(work: Callable[[], Any], device: str) -> float:
    """How long it takes once; a GPU is waited for."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measured(size: Size, device: str) -> dict[str, Any]:
    patterns, queries, origins = (part.to(device) for part in KINDS[size.kind](size, torch.Generator().manual_seed(0)))
    known = size.queries if size.labels is None else size.labels
    told = torch.where(torch.arange(size.queries, device=device) < known, origins, -1)
    product = patterns if size.dim == size.query_dim else patterns[:, : size.query_dim]
    plain = min(seconds(lambda: queries @ product.T, device) for _ in range(20))
    memory = ahop.BayesianHopfield(patterns)
    took = seconds(lambda: memory.fit(queries, told if known else None), device)
    assert memory.report is not None
    row = {**size._asdict(), "over_product": round(took / plain), "chosen": memory.report.chosen}
    # An absolute time means something on one kind of machine alone.
    return {**row, "seconds": round(took, 1)} if device == "cuda" else row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    head = report.stamp("fits", {"device": device, "threads": torch.get_num_threads(), "seed": 0}, __file__)
    # Compiles, and loads what is loaded late.
    small = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)).to(device)
    ahop.BayesianHopfield(small).fit(small + 0.1 * torch.randn_like(small), torch.arange(50))
    rows = []
    for size in SIZES:
        rows.append(measured(size, device))
        print(rows[-1])
    target = Path(__file__).parent.parent / "results" / f"fits-{device}.json"
    report.write({**head, "rows": rows}, target)
    print(f"report: {target.name}")


if __name__ == "__main__":
    main()
