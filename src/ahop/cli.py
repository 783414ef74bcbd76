"""The command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table

from ahop import datasets
from ahop.experiments import plots, real, report, retrieval, timing, worlds

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Associative memory: every Hopfield network in one framework, with similarities that learn.",
)
console = Console()


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Say what was wrong with an argument in one line instead of a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError) as error:
            Console(stderr=True, soft_wrap=True).print(f"error: {error}", style="red", markup=False, highlight=False)
            raise typer.Exit(2) from error

    return run


@app.command()
def models() -> None:
    """The table of networks."""
    table = Table(title="Hopfield networks: similarity, then separation", title_justify="left")
    for column in ("name", "class", "similarity", "separation", "learns", "energy"):
        table.add_column(column)
    for row in (
        ("hop", "ClassicalHopfield", "dot", "identity, then sign", "-", "-1/2 x'ΞΞ'x"),
        ("d-hop", "DenseHopfield", "dot", "power k, then sign", "-", "-Σ (ξ'x)^(k+1)"),
        ("e-hop", "ExponentialHopfield", "dot", "exp, then sign", "-", "-log Σ exp(ξ'x)"),
        ("m-hop", "ModernHopfield", "dot", "softmax", "-", "x'x/2 - lse(βΞ'x)/β"),
        ("u-hop", "UniversalHopfield", "any (-L1)", "any (argmax)", "-", "none"),
        ("s-hop", "SparseHopfield", "dot", "sparsemax", "-", "x'x/2 - Ψ*(βΞ'x)/β"),
        ("k-hop", "KernelHopfield", "dot after Φ", "softmax", "Φ, to part the patterns", "|Φx|²/2 - lse(Ξ'Φ'Φx)"),
        ("k2-hop", "KernelHopfield", "dot after Φ", "softmax", "Φ, from labelled queries", "|Φx|²/2 - lse(Ξ'Φ'Φx)"),
        ("a-hop", "AdaptiveHopfield", "weighted footprints", "softmax", "weights, from labelled queries", "-lse(s)"),
        ("b-hop", "BayesianHopfield", "learned likelihood", "softmax", "the corruption, labels or not", "-lse(s)"),
    ):
        table.add_row(*row)
    console.print(table)
    console.print('Make one with ahop.create("a-hop", patterns), or by its class.')


@app.command("datasets")
def list_datasets() -> None:
    """What data there is, and where it comes from."""
    table = Table(title="Data sets", title_justify="left")
    for column in ("name", "what it is", "where"):
        table.add_column(column)
    for name, entry in sorted(datasets.ENTRIES.items()):
        table.add_row(name, entry.about, entry.where())
    console.print(table)
    console.print('Load one with ahop.datasets.load("digits"). Set AHOP_DATA to a folder that holds the files.')


@app.command("retrieval")
@plain_errors
def run_retrieval(
    models: Annotated[str, typer.Option(help="Networks to compare, with commas between.")] = ",".join(
        retrieval.Config.models
    ),
    data: Annotated[str, typer.Option(help="synthetic, digits or mnist.")] = "synthetic",
    patterns: Annotated[int | None, typer.Option(help="Stored patterns; 2048, or 1024 of the digits.")] = None,
    dim: Annotated[int, typer.Option(help="Dimensions of synthetic patterns.")] = 64,
    preset: Annotated[str, typer.Option(help="Generator: published, literal or std.")] = "published",
    setting: Annotated[
        list[str] | None, typer.Option(metavar="MASK,NOISE,BIAS", help="Intensities; repeat for several.")
    ] = None,
    difficulty: Annotated[
        list[float] | None, typer.Option(help="One intensity for all three; repeat for several.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Labelled queries to learn from.")] = 512,
    queries: Annotated[int, typer.Option(help="Queries to score on.")] = 1000,
    runs: Annotated[int, typer.Option(help="Repetitions, each with a seed of its own.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first run.")] = 0,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...")] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Where to write the report.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Where to draw accuracy over settings.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Where to draw originals, queries and what was recalled (images only)."),
    ] = None,
) -> None:
    """Retrieval under masking, noise and bias: Table 2 and Figure 2 of the paper."""
    defaults = {"synthetic": (0.4, 0.5), "digits": (0.4, 0.5), "mnist": (0.6, 0.7)}
    settings = [_setting(text) for text in setting or []]
    settings += [retrieval.Setting(value, value, value) for value in difficulty or []]
    settings = settings or [retrieval.Setting(value, value, value) for value in defaults.get(data, ())]
    config = retrieval.Config(
        models=_names(models),
        data=data,  # type: ignore[arg-type]
        patterns=(1024 if data == "digits" else 2048) if patterns is None else patterns,
        dim=dim,
        preset=preset,  # type: ignore[arg-type]
        settings=tuple(dict.fromkeys(settings)),
        samples=samples,
        queries=queries,
        runs=runs,
        seed=seed,
        device=_device(device),
    )
    if quick:
        config = retrieval.quick(config)
    if picture and config.data == "synthetic":
        raise ValueError("picture needs images: choose --data digits or --data mnist")
    for path, endings in ((out, {".json"}), (plot, {".png", ".pdf", ".svg"}), (picture, {".png", ".pdf", ".svg"})):
        # Before the work, not after it.
        if path and (path.suffix not in endings or path.is_dir()):
            raise ValueError(f"{path} must be a file that ends in {' or '.join(sorted(endings))}")

    result = retrieval.run(config)
    console.print(_retrieval_table(config, result))
    if out:
        report.write(result, out)
        console.print(f"report: {out}")
    if plot:
        plots.accuracy(result, plot)
        console.print(f"plot: {plot}")
    if picture:
        retrieval.draw(config, picture)
        console.print(f"picture: {picture}")


@app.command("worlds")
@plain_errors
def run_worlds(
    world: Annotated[
        list[str] | None, typer.Option(help="A world by name; repeat for several; all by default.")
    ] = None,
    models: Annotated[str, typer.Option(help="Networks to compare, with commas between.")] = "m-hop,b-hop*,b-hop",
    patterns: Annotated[int, typer.Option(help="Stored patterns.")] = 2048,
    samples: Annotated[int, typer.Option(help="Queries to learn from.")] = 512,
    queries: Annotated[int, typer.Option(help="Queries to score on.")] = 1000,
    runs: Annotated[int, typer.Option(help="Repetitions, each with a seed of its own.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the first run.")] = 0,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...")] = "cpu",
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Where to write the report.")] = None,
) -> None:
    """How close to the Bayes ceiling memories come in many worlds; b-hop* learns without labels."""
    names = _names(models)
    config = worlds.Config(
        tuple(world or worlds.WORLDS),
        names,
        patterns,
        samples=samples,
        queries=queries,
        runs=runs,
        seed=seed,
        device=_device(device),
    )
    result = worlds.run(config)
    table = Table(title=f"Worlds: {patterns} patterns, {samples} samples, mean of {runs} runs", title_justify="left")
    columns = ("first_choice", "fraction_of_oracle", "calibration_error", "rejection_auroc")
    for column in ("world", "model", "1st choice", "of Oracle", "worst run", "calibration error", "strangers AUROC"):
        table.add_column(column, justify="left" if column in ("world", "model") else "right")
    for row in result["rows"]:
        means = [_figure(row[column]["mean"]) if column in row else "" for column in columns]
        means.insert(2, _figure(min(row["fraction_of_oracle"]["runs"])))
        last = row["model"] == "oracle"
        table.add_row(row["world"] if row["model"] == names[0] else "", row["model"], *means, end_section=last)
    console.print(table)
    if out:
        report.write(result, out)
        console.print(f"report: {out}")


@app.command("real")
@plain_errors
def run_real(
    data: Annotated[str, typer.Option(help="Data sets, with commas between.")] = ",".join(real.NAMES),
    models: Annotated[str, typer.Option(help="Models, with commas between; b-hop* sees no labels.")] = ",".join(
        real.MODELS
    ),
    samples: Annotated[int, typer.Option(help="Labelled queries for a-hop and whitening, at most.")] = 2048,
    seed: Annotated[int, typer.Option(help="Seed of what is held out.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Where to write the report.")] = None,
) -> None:
    """Retrieval of items measured twice: tablets by two instruments, drifting sensors, Wi-Fi by many phones."""
    names, chosen = _names(data), _names(models)
    result = real.run(real.Config(names, chosen, samples, seed))
    table = Table(title="First choice is right, on items that were not learned from", title_justify="left")
    for column in ("model", "learns from", *names):
        table.add_column(column, justify="left" if column in ("model", "learns from") else "right")
    found = {(row["data"], row["model"]): row["accuracy"] for row in result["rows"]}
    for model in chosen:
        table.add_row(model, real.LEARNS[model], *(_figure(found[name, model]) for name in names))
    console.print(table)
    _say_whether_adaptation_helps(found, names, chosen)
    if out:
        report.write(result, out)
        console.print(f"report: {out}")


@app.command("timing")
@plain_errors
def run_timing(
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...")] = "cpu",
    samples: Annotated[int, typer.Option(help="Labelled queries to learn from.")] = 512,
    batch: Annotated[int, typer.Option(help="Queries retrieved at once.")] = 1024,
    quick: Annotated[bool, typer.Option("--quick", help="The first size alone, once.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Where to write the report.")] = None,
) -> None:
    """How long a-hop takes to learn and to retrieve, with and without the sort: the paper's timing table."""
    sizes, repetitions = (timing.SIZES[:1], 1) if quick else (timing.SIZES, 5)
    config = timing.Config(sizes, samples, batch, repetitions, device=_device(device))
    result = timing.run(config)
    unit = "relative to the first row" if device.startswith("cpu") else "milliseconds"
    table = Table(title=f"a-hop, {samples} samples, batches of {batch}: {unit}", title_justify="left")
    for column in ("d", "N", "sort", "fit", "paper", "fit by Adam", "a query", "paper"):
        table.add_column(column, justify="right")
    for row in result["rows"]:
        paper = row["paper"]
        figures = (row["fit"], paper["fit"], row["adam"], row["query"], paper["query"])
        size = (str(row["dim"]), str(row["patterns"]), "yes" if row["sort"] else "no")
        table.add_row(*size, *("" if figure is None else str(figure) for figure in figures))
    console.print(table)
    if out:
        report.write(result, out)
        console.print(f"report: {out}")


def _say_whether_adaptation_helps(
    found: dict[tuple[str, str], float], names: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    fixed = [model for model in chosen if real.LEARNS[model] == "nothing"]
    for name in names if fixed and "b-hop*" in chosen else ():
        best, ours = max(found[name, model] for model in fixed), found[name, "b-hop*"]
        verdict = "helps" if ours > 1.1 * best else "hardly helps" if ours >= best else "does harm"
        console.print(f"{name}: learning without labels {verdict} ({_figure(ours)} against {_figure(best)} fixed)")


def _device(name: str) -> str:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be one that PyTorch can use here, got {name!r}") from error
    return name


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _setting(text: str) -> retrieval.Setting:
    try:
        mask, noise, bias = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"setting must be three numbers MASK,NOISE,BIAS, got {text!r}") from None
    return retrieval.Setting(mask, noise, bias)


def _retrieval_table(config: retrieval.Config, result: dict[str, Any]) -> Table:
    size = f"{config.patterns} {config.data} patterns, {config.samples} samples, {config.queries} queries"
    rows = result["rows"]
    compared = any(row["paper"] for row in rows)
    title = f"Retrieval, {size}\npreset {config.preset}, mean ± std of {config.runs} runs"
    table = Table(title=title + ("; paper: accuracy / error" if compared else ""), title_justify="left")
    columns = ["setting", "model", "accuracy", "error", "1st choice", "of Oracle"]
    for column in [*columns, "paper"] if compared else columns:
        table.add_column(column, justify="left" if column in ("setting", "model") else "right", no_wrap=True)
    for name in dict.fromkeys(row["setting"] for row in rows):
        here = [row for row in rows if row["setting"] == name]
        best = max((row["accuracy"]["mean"] for row in here if row["model"] != "oracle"), default=None)
        for place, row in enumerate(here):
            strong = row["model"] != "oracle" and row["accuracy"]["mean"] == best
            accuracy = f"{_figure(row['accuracy']['mean'])} ± {_figure(row['accuracy']['std'])}"
            paper = row["paper"]
            figures = f"{_figure(paper['accuracy'])} / {_figure(paper['error'])}" if paper else ""
            table.add_row(
                "" if place else name,
                row["model"],
                f"[bold]{accuracy}[/bold]" if strong else accuracy,
                f"{_figure(row['error']['mean'])} ± {_figure(row['error']['std'])}",
                _figure(row["first_choice"]["mean"]),
                f"{row['fraction_of_oracle']['mean']:.1%}",
                *([figures] if compared else []),
                end_section=place == len(here) - 1,
            )
    return table


def _figure(value: float) -> str:
    """Three digits, without the zero in front."""
    return f"{value:.3f}".removeprefix("0")
