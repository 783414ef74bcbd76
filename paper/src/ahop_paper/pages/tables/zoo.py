"""Tables of every memory of the library, side by side."""

from __future__ import annotations

from statistics import fmean, median

from ahop.learning.report import beats_chance
from ahop_paper.pages.markdown import Grid, Report, bold, figure, plain
from ahop_paper.pages.tables.registry import Row, by, cells_of, each, shown
from ahop_paper.spread import with_interval
from ahop_paper.zoo import CAPACITY, CEILING
from ahop_paper.zoo_memories import NEAREST
from ahop_paper.zoo_worlds import TRIALS

_TITLES = {
    CEILING: "**ceiling**",
    "b-hop": "**b-hop**",
    "b-hop*": "**b-hop, no labels**",
    "b-hop, with spread": "**b-hop, with spread**",
}


@shown("zoo-advice", "zoo")
def zoo_advice(report: Report) -> Grid:
    """Who is right most often: with labels, without, and by the nearest pattern; none where that may be chance."""
    rows = _worlds(report)
    found = by(rows, "world", "model")
    # Of equals, what anyone would try first.
    order = [*NEAREST, *(name for name in each(rows, "model") if name != CEILING)]

    def best(world: str, labels: bool) -> str:
        able = [found[world, name] for name in order if (world, name) in found]
        able = [row for row in able if row["labels"] == labels]
        most = max(able, key=lambda row: row["first_choice"]["mean"], default=None)
        if most is None:
            return ""
        if _may_be_chance(most["first_choice"], report["config"]["size"]):
            return f"none {'with' if labels else 'without'} labels"
        return f"{_title(most['model'])} {figure(most['first_choice']['mean'])}"

    lines = []
    for world in each(rows, "world"):
        ceiling, *plain = (
            "".join(cells_of(found, [(world, name)], lambda row: figure(row["first_choice"]["mean"])))
            for name in (CEILING, *NEAREST)
        )
        lines.append([world, ceiling, best(world, True), best(world, False), *plain])
    return Grid(["queries", "ceiling", "best with labels", "best without", *NEAREST], lines)


def _may_be_chance(share: Row, size: Row) -> bool:
    """Whether as many would be right among as few patterns as any world has."""
    fewest, asked = min(size[kind] for kind in ("patterns", "items", "texts")), len(share["runs"]) * size["queries"]
    return not beats_chance(round(share["mean"] * asked), asked, fewest)


@shown("zoo", "zoo")
def zoo(report: Report) -> Grid:
    """Right first choices, with half of a 95 % confidence interval; who is right as often everywhere shares a line."""
    rows = _worlds(report)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, cells in _by_memory(rows, "first_choice").items():
        alike.setdefault(tuple(cells), []).append(name)
    return Grid(["", *each(rows, "world")], [[_joined(names), *cells] for cells, names in alike.items()])


def _joined(names: list[str]) -> str:
    """The names, and separations of the same similarity behind it."""
    parts: dict[str, list[str]] = {}
    for name in names:
        first, _, second = name.partition(", ")
        parts.setdefault(first, []).append(second)
    return "; ".join(", ".join(filter(None, [first, *rest])) for first, rest in parts.items())


@shown("zoo-trust", "zoo")
def zoo_trust(report: Report) -> Grid:
    """Expected calibration error of first choices; and the AUROC by which strangers are told."""
    rows = [row for row in _worlds(report) if "calibration_error" in row or "strangers_auroc" in row]
    worlds = each([row for row in rows if "calibration_error" in row], "world")
    errors, told = _by_memory(rows, "calibration_error"), _by_memory(rows, "strangers_auroc")
    lines = [
        [name, *errors.get(name, [""] * len(worlds)), *told.get(name, [""])] for name in dict.fromkeys([*errors, *told])
    ]
    return Grid(["", *worlds, "strangers told (AUROC)"], lines)


@shown("zoo-capacity", "zoo")
def zoo_capacity(report: Report) -> Grid:
    """How many patterns each holds, and between which ends over seeds; those that hold as many share a line."""
    alike: dict[str, list[str]] = {}
    rows = [row for row in report["rows"] if row["world"] == CAPACITY]
    for row in sorted(rows, key=lambda row: row["capacity"]["mean"]):
        held = _held(row["capacity"]["runs"], report["config"]["most"])
        alike.setdefault(held, []).append(_title(row["model"]))
    return Grid(["", "capacity"], [[_joined(names), held] for held, names in alike.items()])


def _held(runs: list[int], most: int) -> str:
    """The mean of capacities and its range; at least as many where a search ended at ``most``."""
    low, high = min(runs), max(runs)
    or_more = "≥ " * (high == most)
    mean = f"{or_more}{fmean(runs):,.0f}"
    return mean if low == high else f"{mean} ({low:,} to {or_more}{high:,})"


@shown("zoo-costs", "zoo-costs")
@shown("zoo-costs-cuda", "zoo-costs-cuda")
def zoo_costs(report: Report) -> Grid:
    """The time of a query, in that of its dot products with all patterns, and extra KiB; the cheapest first.

    Medians have their quartiles beside them, where these were noted. The first row has the time of the dot products.
    """
    counts = report["config"]["counts"]
    rows = sorted(report["rows"], key=lambda row: row["costs"][-1]["times"])
    lines = [[_title(row["model"]), *(cell for one in row["costs"] for cell in _cost(one))] for row in rows]
    if all("product_seconds" in one for row in rows for one in row["costs"]):
        products = (median(row["costs"][place]["product_seconds"] for row in rows) for place in range(len(counts)))
        lines.insert(
            0, ["dot products alone", *(cell for one in products for cell in (f"1 = {1e6 * one:,.0f} µs", ""))]
        )
    heads = [f"{count:,} patterns: {unit}" for count in counts for unit in ("time", "KiB")]
    return Grid(["", *heads], lines)


def _cost(one: Row) -> tuple[str, str]:
    kib, times = one["bytes"] / 1024, plain(one["times"])
    if "quartiles" in one:
        times += " ({} to {})".format(*map(plain, one["quartiles"]))
    return times, "< 1" if kib < 1 else f"{kib:,.0f}"


def _worlds(report: Report) -> list[Row]:
    return [row for row in report["rows"] if row["world"] in TRIALS]


def _title(model: str) -> str:
    return _TITLES.get(model, model)


def _by_memory(rows: list[Row], what: str) -> dict[str, list[str]]:
    """A line of figures for each memory that has any: the ceiling, then the best in the worlds that all have met."""
    rows = [row for row in rows if what in row]
    if not rows:
        return {}
    found, worlds = by(rows, "world", "model"), each(rows, "world")
    models = [name for name in each(rows, "model") if name != CEILING]
    # Who takes part in one world alone has no say in which all have met.
    often = [name for name in models if sum((world, name) in found for world in worlds) > 1]
    common = [world for world in worlds if all((world, name) in found for name in often)]
    better = 1 if what == "calibration_error" else -1

    def rank(name: str) -> float:
        met = [world for world in worlds if (world, name) in found]
        shared = [world for world in met if world in common]
        return better * fmean(found[world, name][what]["mean"] for world in shared or met)

    models.sort(key=rank)
    signs = {row["model"] for row in rows if row.get("signs")}
    return {
        _title(name) + " (signs)" * (name in signs): cells_of(
            found, [(world, name) for world in worlds], lambda row: _with_interval(row[what])
        )
        for name in ([CEILING, *models] if (worlds[0], CEILING) in found else models)
    }


def _with_interval(figures: Row) -> str:
    """A share and half of its interval; the ends of one that would run past 0 or 1, as it is printed."""
    mean, low, high = (figures[key] for key in ("mean", "low", "high"))
    if low is None:
        return figure(mean)
    shown, half = (round(value, 3) for value in (mean, (high - low) / 2))
    if half <= shown <= 1 - half:
        return f"{figure(mean)} ± {figure(half)}"
    return f"{figure(mean)} ({figure(max(low, 0.0))} to {figure(min(high, 1.0))})"


@shown("blends", "blends")
def blends(report: Report) -> Grid:
    """How often the whole set comes back, a line for each way to find it."""
    rows = report["rows"]
    found, sizes = by(rows, "way", "size"), sorted({row["size"] for row in rows})
    most = {size: max(row["whole"]["mean"] for row in rows if row["size"] == size) for size in sizes}

    def share(row: Row) -> str:
        return bold(_with_interval(with_interval(row["whole"]["runs"])), row["whole"]["mean"] == most[row["size"]])

    lines = [[way, *cells_of(found, [(way, size) for size in sizes], share)] for way in each(rows, "way")]
    return Grid(["found by", *(f"{size} patterns" for size in sizes)], lines)
