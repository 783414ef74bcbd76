"""What there is: networks and data sets."""

from __future__ import annotations

from rich.table import Table

from ahop import datasets
from ahop.paper.commands.common import app, console


@app.command()
def models() -> None:
    """List the networks: what each compares by, and what it learns."""
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
    """List the data sets, and where their files are."""
    table = Table(title="Data sets", title_justify="left")
    for column in ("name", "what it is", "where"):
        table.add_column(column)
    for name, entry in sorted(datasets.ENTRIES.items()):
        table.add_row(name, entry.about, entry.where())
    console.print(table)
    console.print('Load one with ahop.datasets.load("digits"). Set AHOP_DATA to a folder that holds the files.')
