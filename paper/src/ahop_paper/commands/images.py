"""``ahop-paper images``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import images
from ahop_paper.commands.common import (
    Device,
    Out,
    Seed,
    Workers,
    app,
    as_names,
    console,
    plain_errors,
    show,
)
from ahop_paper.pages import tables

ONE_TOKEN = (
    "An image is one patch here, so the memory holds one pattern: its weight is 1 whatever the similarity,\n"
    "and the figures compare nothing but projections and seeds."
)


@app.command("images")
@plain_errors
def run_images(
    data: Annotated[str, typer.Option(help="cifar10, cifar100 or tiny-imagenet.")] = "cifar10",
    protocol: Annotated[
        str, typer.Option(help="transformer (patches of 4), or published: the paper's, with patches of 32.")
    ] = "transformer",
    models: Annotated[
        str | None, typer.Option(help="Networks to compare, separated by commas; a-hop-1 has one base.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data; 0 is the protocol's own number.")] = 0,
    runs: Annotated[int, typer.Option(help="Repetitions, each with a seed of its own.")] = 3,
    seed: Seed = 0,
    holdout: Annotated[
        int,
        typer.Option(
            help="Hold out this many training images and test on them, to choose a recipe without the test images."
        ),
    ] = 0,
    workers: Workers = 1,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="64 images, twice: only to see that it works.")] = False,
    out: Out = None,
) -> None:
    """Image classification with Hopfield attention: Table 4 of the paper. With --out, a run is resumable."""
    usual = "m-hop,k-hop,a-hop" if protocol == "published" else "m-hop,s-hop,k-hop,a-hop"
    config = images.Config(
        protocol=protocol,
        data=data,
        models=as_names(usual if models is None else models, "models"),
        epochs=epochs,
        runs=runs,
        seed=seed,
        holdout=holdout,
        device=as_device(device),
    )
    if quick:
        config = images.quick(config)
    result = images.run(config, out, workers)
    where = f"on {config.holdout} held-out training images" if config.holdout else "on the test images"
    size = f"{config.passes} epochs, mean ± std of {config.runs} run{'s' * (config.runs > 1)}"
    title = f"{data}, {protocol} protocol: accuracy {where}\n{size}"
    show(tables.trained(result), title)
    used, published = result["images"]["train"], result["images"]["published"]
    if used < published:
        console.print(f"Trained on {used:,} of {published:,} images: not to be compared with figures of all of them.")
    if protocol == "published" and data != "tiny-imagenet":
        console.print(ONE_TOKEN)
    if out:
        console.print(f"report: {out}")
