"""How much longer a training step of the image transformer takes with each kind of Hopfield layer than with dot layers.

Dot layers with softmax are PyTorch's fused attention. Ratios of medians measured in one run:
``python benchmarks/layers.py --device cuda``. Writes ``results/layers-{cpu,cuda}.json``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from ahop.datasets import Photos
from ahop_paper import images, report, vision

REPETITIONS = {"cpu": 3, "cuda": 20}
BATCH = {"cpu": 16, "cuda": 512}


def photos(count: int) -> Photos:
    draw = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 32, 32, 3), dtype=torch.uint8, generator=draw)
    labels = torch.arange(count) % 10
    return Photos(pixels, labels, pixels, labels, [str(kind) for kind in range(10)])


def step_times(model: str, device: torch.device) -> list[float]:
    """Milliseconds of single steps, after those that compile and record."""
    torch.manual_seed(0)
    some = photos(BATCH[device.type])
    network = images.build(model, images.Config(device=str(device)), some).to(device)
    pixels, labels = some.train.to(device), some.train_labels.to(device)
    spread = (torch.full((3,), 0.5, device=device), torch.full((3,), 0.25, device=device))
    step = images.Step(network, images.RECIPES["transformer"], pixels, labels, spread, classes=10)
    batch, times = torch.arange(len(pixels), device=device), []
    for _ in range(2):
        step(batch, 1e-4)
    for _ in range(REPETITIONS[device.type]):
        if device.type == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        step(batch, 1e-4)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = torch.device(parser.parse_args().device)
    config = {"batch": BATCH[device.type], "repetitions": REPETITIONS[device.type], "device": device.type, "seed": 0}
    head = report.stamp("layers", config, __file__)
    rows, plain = [], None
    for model in vision.MODELS:
        middle = statistics.median(step_times(model, device))
        plain = plain or middle
        row = {"model": model, "ratio": round(middle / plain, 2)}
        # Only a GPU's times mean something elsewhere.
        rows.append(row | ({"milliseconds": round(middle, 2)} if device.type == "cuda" else {}))
        print(rows[-1], flush=True)
    target = Path(__file__).parent.parent / "results" / f"layers-{device.type}.json"
    report.write({**head, "rows": rows}, target)
    print(f"report: {target.name}")


if __name__ == "__main__":
    main()
