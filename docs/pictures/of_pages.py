"""Pictures of pages with code, each from what the code leaves behind."""

import contextlib
import io
import math
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps, rc_context

import ahop
from ahop import plot, separation
from ahop.plot.canvas import _STYLE, BLUE, GREY, ORANGE, figure, legend
from ahop.theory import sequence_capacity

PAGES = Path(__file__).parents[1]
GREEN = "#2a9d74"


def run(page: str) -> dict[str, Any]:
    """All names that the code of a page leaves behind; files that it writes go to a folder of their own."""
    names: dict[str, Any] = {}
    text = (PAGES / f"{page}.md").read_text()
    before = Path.cwd()
    with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
                exec(block, names)
        finally:
            os.chdir(before)
    return names


def guides() -> None:
    """Stored curves, what came in, and which of them it is."""
    torch.manual_seed(3)
    place = torch.linspace(0, 6, 60)
    stored = sum(torch.randn(40, 1) * torch.sin(rate * place + 6 * torch.rand(40, 1)) for rate in (0.8, 1.5, 2.5))
    incoming = 0.8 * stored + 0.3 * place + 0.15 * torch.randn(40, 60)
    memory = ahop.BayesianHopfield(stored).fit(incoming, verbose=False)
    with figure(1, 7.0, 3.2) as made:
        plot.matches(memory, incoming, [0, 1, 2], ax=made.axes[0])


def attention_layers() -> None:
    """The weights of the same scores under three separations."""
    torch.manual_seed(0)
    scores = torch.randn(24).sort(descending=True).values
    with figure(3, 2.6, 2.6) as made:
        kinds = {
            "softmax": separation.Softmax(),
            "entmax": separation.Entmax(),
            "sparsemax": separation.Sparsemax(),
        }
        for axis, (name, kind) in zip(made.axes, kinds.items(), strict=True):
            axis.bar(range(24), kind(scores).detach(), color=BLUE)
            axis.set(title=name, xlabel="tokens, best first", ylim=(0, 0.7))
        made.axes[0].set_ylabel("weight")


def bags() -> None:
    """What is said of bags that were held out."""
    names = run("guides/bags")
    chances = names["classifier"].predict_proba(names["bags"][80:])[:, 1]
    positive = names["labels"][80:] == 1
    with figure(1, 6.0, 2.8) as made:
        axis = made.axes[0]
        both = (chances[~positive], chances[positive])
        axis.hist(both, 10, range=(0, 1), color=(ORANGE, BLUE), label=("without such an instance", "with one"))
        axis.set(xlabel="probability that a bag is positive", ylabel="bags held out")
        legend(axis)


def changed_embeddings() -> None:
    """Old vectors, new ones, and new ones where the memory puts them."""
    names = run("guides/changed-embeddings")
    old, new, items = names["old"], names["new"], names["items"]
    brought = torch.nn.functional.normalize(names["adapter"](new), dim=1)
    some = torch.arange(40)
    shades = colormaps["viridis"](0.25 + 0.7 * old[items[some], 0].argsort().argsort().numpy() / 40)
    with figure(3, 3.0, 3.0) as made:
        for axis, title in zip(made.axes, ("old model", "new model", "brought to the old space"), strict=True):
            axis.set(title=title, xlabel="first value", xlim=(-1, 1), ylim=(-1, 1))
        made.axes[0].set_ylabel("second value")
        for axis in (made.axes[0], made.axes[2]):
            vectors = old[items[some]]
            axis.scatter(vectors[:, 0], vectors[:, 1], s=70, facecolors="none", edgecolors=shades, linewidths=1.5)
        for axis, vectors in ((made.axes[1], new[some]), (made.axes[2], brought[some])):
            axis.scatter(vectors[:, 0], vectors[:, 1], s=28, c=shades, marker="x")


def from_hflayers() -> None:
    """The association matrix of a layer, a head each."""
    torch.manual_seed(0)
    weights = run("guides/from-hflayers")["weights"][0].detach()
    with figure(len(weights), 2.4, 1.9) as made:
        for head, axis in enumerate(made.axes):
            axis.imshow(weights[head], aspect="auto", cmap="viridis")
            axis.set(title=f"head {head + 1}", xlabel="stored patterns", xticks=(), yticks=())
        made.axes[0].set_ylabel("states")


def from_other_libraries() -> None:
    """The energy of some states on their way down."""
    torch.manual_seed(0)
    memory = ahop.ModernHopfield(torch.randn(20, 16), beta=1.0)
    states = memory.patterns[:6] + torch.randn(6, 16)
    energies = []
    for _ in range(16):
        energies.append(memory.energy(states).detach())
        states = states + 0.4 * (memory.retrieve(states) - states)
    with figure(1, 6.0, 2.8) as made:
        made.axes[0].plot(torch.stack(energies), color=BLUE)
        made.axes[0].set(xlabel="steps", ylabel="energy of a state")


def missing_values() -> None:
    """What is heard, against the survey."""
    names = run("guides/missing-values")
    survey, heard = names["survey"][names["where"]][:12].flatten(), names["heard"][:12].flatten()
    floored = heard == -95
    with figure(1, 6.0, 3.4) as made:
        axis = made.axes[0]
        axis.plot([-95, -40], [-95, -40], color=GREY, linewidth=1, label="as in the survey")
        axis.plot(survey[~floored], heard[~floored], "o", markersize=3, fillstyle="none", color=BLUE, label="heard")
        axis.plot(survey[floored], heard[floored], "x", markersize=4, color=ORANGE, label="at the floor")
        axis.set(xlabel="signal in the survey (dBm)", ylabel="signal heard (dBm)")
        legend(axis)


def sensors() -> None:
    """What was learned of each sensor."""
    memory = run("guides/sensors")["memory"]
    with figure(1, 6.5, 3.2) as made:
        plot.corruption(memory, [f"sensor {place + 1}" for place in range(16)], ax=made.axes[0])


def spectra() -> None:
    """One item by both instruments, and the one that lies nearest."""
    names = run("guides/spectra")
    wrong = (names["nearest"] != names["items"]).nonzero()[0, 0]
    library, item = names["library"], names["items"][wrong]
    with figure(1, 7.0, 3.0) as made:
        for spectrum, line, colour, label in (
            (library[item], "-", BLUE, "the item in the library"),
            (names["second"][item], "--", ORANGE, "the item by the second instrument"),
            (library[names["nearest"][wrong]], ":", GREY, "nearest in the library: another item"),
        ):
            made.axes[0].plot(names["wavelength"], spectrum, line, color=colour, label=label)
        made.axes[0].set(xlabel="wavelength (nm)", ylabel="absorbance (arbitrary units)")
        legend(made.axes[0])


def strangers() -> None:
    """Familiarity of those that are stored and those that are not."""
    names = run("guides/strangers")
    memory = names["memory"]
    with figure(1, 6.0, 3.0) as made:
        axis = made.axes[0]
        for queries, hatch, colour, label in (
            (names["strangers"], "///", ORANGE, "strangers"),
            (names["genuine"], None, BLUE, "genuine queries"),
        ):
            drawn = {"hatch": hatch, "color": colour, "alpha": 0.7, "edgecolor": GREY, "label": label}
            axis.hist(memory.familiarity(queries), 24, **drawn)
        level = float(memory.similarity.least_familiar(0.05))
        axis.axvline(level, color=GREY, linestyle="--", label="refused to the left")
        axis.set(xlabel="familiarity (natural logarithm of a ratio)", ylabel="queries")
        legend(axis)


def stream() -> None:
    """Right first choices, month by month."""
    names = run("guides/stream")
    months = range(1, 1 + len(names["followed"]))
    with figure(1, 6.0, 3.0) as made:
        axis = made.axes[0]
        axis.plot(months, names["followed"], "o-", color=BLUE, label="follows the drift")
        axis.plot(months, names["stayed"], "s--", color=ORANGE, fillstyle="none", label="learned once")
        axis.set(xlabel="months", ylabel="share of right first choices", ylim=(0, 1.05), xticks=list(months))
        legend(axis)


def tables() -> None:
    """How much each column mattered, for rows that were held out."""
    names = run("guides/tables")
    shares = names["classifier"].explain(names["people"][300:])
    with figure(1, 6.0, 2.2) as made:
        axis = made.axes[0]
        for place, column in enumerate(shares):
            across = np.asarray(shares[column])
            axis.plot(across, np.full(len(across), place), "|", markersize=14, color=BLUE, alpha=0.5)
        axis.set(
            xlabel="how much a column mattered, a mark for each held-out row", ylim=(-0.6, len(shares.columns) - 0.4)
        )
        axis.set_yticks(range(len(shares.columns)), shares.columns)
        axis.invert_yaxis()


def trust() -> None:
    """How often first choices are right, by how sure the memory is."""
    torch.manual_seed(0)
    patterns = torch.rand(150, 24) * 2 - 1
    world = ahop.variants.Mixed(mask=0.4, noise=0.4, bias=0.3)
    memory = ahop.BayesianHopfield(patterns).fit(world.sample(patterns, 200).queries, verbose=False)
    drawn = world.sample(patterns, 600)
    with figure(2, 4.6, 3.4) as made:
        plot.reliability(memory, drawn.queries, drawn.origins, ax=made.axes[0])
        plot.risk_coverage(memory, drawn.queries, drawn.origins, ax=made.axes[1])


def zoo_by_products() -> None:
    """The energy of memories that go by dot products or angles, and where queries roll."""
    _energies(slice(8))


def zoo_by_distances() -> None:
    """The same of those that go by distances or likelihoods."""
    _energies(slice(8, None))


def _energies(some: slice) -> None:
    names = run("results/zoo")
    memories = list(names["memories"].items())[some]
    with figure(4, 2.7, 5.6) as made, rc_context(_STYLE):
        made.clear()
        places = made.subplots(2, 4, sharex=True, sharey=True)
        for axis, (title, memory) in zip(places.flat, memories, strict=True):
            kept = hasattr(memory, "patterns")
            plot.energy(memory, names["queries"][::13], patterns=None if kept else names["patterns"], ax=axis)
            axis.get_legend().remove()
            axis.set(title=title, xlabel="", ylabel="")
        for axis in places[1]:
            axis.set_xlabel("first value")
        for axis in places[:, 0]:
            axis.set_ylabel("second value")


def sequences() -> None:
    """How many transitions are known by heart, beside what the paper derives."""
    kinds = (
        ("overlaps as they are", GREY, "o", (20, 40, 80, 160), 1),
        ("their squares", ORANGE, "s", (20, 40, 80, 120), 2),
        ("their cubes", BLUE, "D", (20, 30, 45, 60), 3),
        ("their exponentials", GREEN, "^", (8, 10, 12, 14, 16), None),
    )
    with figure(1, 7.0, 3.2) as made:
        axis = made.axes[0]
        for label, colour, mark, dims, power in kinds:
            kind = separation.Exponential() if power is None else separation.Power(power)
            across = range(dims[0], dims[-1] + 1)
            theirs = [sequence_capacity(dim, power) for dim in across]
            axis.plot(across, theirs, "--", color=colour, linewidth=1)
            found = [_transitions(dim, kind, sequence_capacity(dim, power)) for dim in dims]
            axis.plot(dims, found, mark, color=colour, fillstyle="none", markersize=5, label=label)
        axis.set(xlabel="units", ylabel="transitions known by heart", xscale="log", yscale="log")
        axis.set_xticks([10, 20, 50, 100], ["10", "20", "50", "100"])
        axis.minorticks_off()
        legend(axis, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _transitions(dim: int, kind: separation.Separation, expected: float) -> float:
    """As many as leave the share right that the paper's capacity does."""
    wanted = math.exp(-1 / math.sqrt(4 * math.pi * math.log(dim)))
    low, high = expected / 16, 16 * expected
    for _ in range(9):
        count = max(2, round(math.sqrt(low * high)))
        right = np.mean([_replayed(dim, count, kind, seed) for seed in range(20)])
        low, high = (count, high) if right >= wanted else (low, count)
    return math.sqrt(low * high)


def _replayed(dim: int, count: int, kind: separation.Separation, seed: int) -> float:
    """The share of transitions that are right in every unit."""
    draw = torch.Generator().manual_seed(seed)
    states = torch.randint(0, 2, (count + 1, dim), generator=draw) * 2.0 - 1
    memory = ahop.SequenceHopfield(states[:-1], values=states[1:], separation=kind)
    asked = torch.randperm(count, generator=draw)[:100]
    return float((memory.retrieve(states[asked]) == states[asked + 1]).all(1).double().mean())


def random_features() -> None:
    """How far f-hop's sum is off, by how many features it has."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(5, 16, generator=draw)
    patterns = centres[torch.arange(1000) % 5] + 0.2 * torch.randn(1000, 16, generator=draw)
    queries = patterns[:200] + 0.1 * torch.randn(200, 16, generator=draw)
    sizes = [2**power for power in range(7, 16)]
    with figure(1, 6.0, 3.2) as made:
        axis = made.axes[0]
        for beta, mark, colour in ((1.0, "o-", BLUE), (4.0, "s-", GREEN), (16.0, "^-", ORANGE)):
            exact = (-beta / 2 * torch.cdist(queries, patterns).square()).exp().sum(1)
            off = []
            for features in sizes:
                memory = ahop.FourierHopfield(16, features=features, beta=beta).add(patterns)
                angles = queries @ memory.frequencies.T
                real, imaginary = memory.total.float() * 2 / features
                gaps = angles.cos() @ real + angles.sin() @ imaginary - exact
                off.append(float((gaps / exact).square().mean().sqrt()))
            axis.plot(sizes, off, mark, color=colour, fillstyle="none", markersize=5, label=f"beta {beta:g}")
        axis.axhline(1, color=GREY, linestyle="--", linewidth=1)
        axis.set(xlabel="features", ylabel="error, as a share of the sum", xscale="log", yscale="log")
        legend(axis)


DRAWN = (
    guides, attention_layers, bags, changed_embeddings, from_hflayers, from_other_libraries, missing_values, sensors,
    spectra, strangers, stream, tables, trust, zoo_by_products, zoo_by_distances,
    sequences, random_features,
)  # fmt: skip
