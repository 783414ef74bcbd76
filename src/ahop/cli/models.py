"""``ahop models``."""

from __future__ import annotations

from rich.table import Table

from ahop.cli.common import app, console


@app.command("models")
def list_models() -> None:
    """List the networks: what each compares by, and what it learns."""
    table = Table(title="Hopfield networks", title_justify="left")
    for column in ("name", "class", "similarity", "separation", "learns"):
        table.add_column(column, no_wrap=True)
    for row in (
        ("hop", "ClassicalHopfield", "dot", "sign", "-"),
        ("d-hop", "DenseHopfield", "dot", "power, sign", "-"),
        ("e-hop", "ExponentialHopfield", "dot", "exp, sign", "-"),
        ("q-hop", "SequenceHopfield", "any (dot)", "exp, sign", "-"),
        ("m-hop", "ModernHopfield", "dot", "softmax", "-"),
        ("u-hop", "UniversalHopfield", "any (-L1)", "any (argmax)", "-"),
        ("s-hop", "SparseHopfield", "dot", "sparsemax", "-"),
        ("f-hop", "FourierHopfield", "Gaussian", "log of a sum", "-"),
        ("k-hop", "KernelHopfield", "dot after Φ", "softmax", "Φ"),
        ("k2-hop", "KernelHopfield", "dot after Φ", "softmax", "Φ, by labels"),
        ("a-hop", "AdaptiveHopfield", "footprints", "softmax", "ranks, by labels"),
        ("b-hop", "BayesianHopfield", "likelihood", "softmax", "the corruption"),
        ("g-hop", "GaussianHopfield", "normal", "softmax", "bias and noise"),
    ):
        table.add_row(*row)
    console.print(table)
    console.print(
        "k-hop learns to part the stored patterns; k2-hop and a-hop learn from queries whose origins are known, b-hop "
        "and g-hop from queries with or without. q-hop recalls what comes next; f-hop stays of one size, whatever it "
        'stores. Make one with ahop.create("a-hop", patterns), or by its class.',
        highlight=False,
    )
