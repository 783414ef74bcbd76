"""Tables of how long things take."""

from __future__ import annotations

from collections.abc import Callable

from ahop_paper.pages.markdown import Grid, Report, figure, plain, short
from ahop_paper.pages.tables.classifiers import a_line_each
from ahop_paper.pages.tables.registry import Row, by, cells_of, each, shown


@shown("times", "tabular-sound", "tabular-cpu")
def times(report: Report, alone: Report) -> Grid:
    """How long classifiers of tables take to fit and to predict: ratios to XGBoost's time."""
    title = "`HopfieldClassifier()`, no GPU"
    rows = [row for row in report["rows"] if "fit" in row and row["model"] != "xgboost"]
    rows += [{**row, "model": title} for row in alone["rows"] if row["model"] == "default"]
    head, lines = ratios_to_trees({"rows": rows})
    return Grid(head, sorted(lines, key=lambda line: line[0] != title))


def ratios_to_trees(report: Report) -> Grid:
    """How long each model took to fit and to predict, as ratios to XGBoost's time."""

    def cell(row: Row) -> str:
        return f"{plain(row['fit'])}, {plain(row['predict'])}" if "fit" in row else "not timed"

    return a_line_each("fit, predict", report["rows"], cell)


@shown("fits", "fits-cuda", "fits-cpu")
def fits(report: Report, on_cores: Report) -> Grid:
    """How long default fits of `b-hop` take."""
    by_name = {row["name"]: row for row in on_cores["rows"]}
    lines = [
        [
            row["name"],
            f"{row['patterns']:,} x {row['dim']:,}",
            f"{row['queries']:,} x {row['query_dim']:,}",
            f"{row['seconds']:.1f}",
            f"{row['over_product']:,}",
            f"{by_name[row['name']]['over_product']:,}" if row["name"] in by_name else "",
        ]
        for row in report["rows"]
    ]
    return Grid(["", "patterns", "queries", "H200, seconds", "H200, products", "two cores, products"], lines)


@shown("timing", "timing-cuda")
def timing(report: Report) -> Grid:
    """The timing table: milliseconds on an H200."""
    return _timing(report, lambda what, own: figure(own, 4 if what == "query" else 0), short)


@shown("ratios", "timing-cpu")
def ratios(report: Report) -> Grid:
    """The timing table on two cores: ratios to its first cell, sorted."""
    return _timing(report, lambda what, own: plain(own), plain)


def _timing(report: Report, ours: Callable[[str, float], str], papers: Callable[[float], str]) -> Grid:
    rows = report["rows"]
    sizes = each(rows, "dim", "patterns")
    found = by(rows, "sort", "dim", "patterns")
    lines = []
    # The paper learns by Adam.
    for what, title, paper in (
        ("fit", "convex fit", None),
        ("adam", "fit by Adam", "fit"),
        ("query", "query", "query"),
    ):

        def cell(row: Row, what: str = what, paper: str | None = paper) -> str:
            printed = row["paper"][paper] if paper else None
            return ours(what, row[what]) + ("" if printed is None else f" ({papers(printed)})")

        for sort, kind in ((True, "sorted"), (False, "not sorted")):
            cells = cells_of(found, [(sort, *size) for size in sizes], cell)
            lines.append([f"{title}, {kind}" + (" (paper)" if paper else ""), *cells])
    return Grid(["d, N", *(f"{dim}, {count}" for dim, count in sizes)], lines)


@shown("kernels", "kernels-arm", "kernels-x86", "kernels-cuda")
def kernels(*reports: Report) -> Grid:
    """How many times faster than what one could write, and how many FAISS searches a recall costs."""
    titles = {
        "scores_ratio": "scores, times the definition (`torch.sort`)",
        "numpy_ratio": "scores, times NumPy's sort",
        "compiled_ratio": "scores, times `torch.compile` of the definition",
        "weight_gradient_ratio": "with the gradient to the weights, times the definition",
        "gradients_ratio": "with all gradients, times the definition",
        "recall_over_faiss": "time to recall the best five, over that of a flat FAISS search",
    }
    timed = [[row for row in report["rows"] if "scores_ratio" in row] for report in reports]
    dims = next((each(rows, "dim") for rows in timed if rows), [])
    lines = []
    for place, rows in zip(("two ARM cores", "two x86 cores", "H200"), timed, strict=True):
        for what, title in titles.items():
            # Each device has others beside it.
            found = by((row for row in rows if row.get(what) is not None), "dim")
            cells = cells_of(found, [(dim,) for dim in dims], lambda row, what=what: plain(row[what]))  # type: ignore[misc]
            if any(cells):
                lines.append([f"{place}: {title}", *cells])
    return Grid(["d", *map(str, dims)], lines)


@shown("scale-speed", "scale-cuda", "scale-cpu")
def scale_speed(gpu: Report, cpu: Report) -> Grid:
    """Recall from many patterns: times the cost of plainer searches."""
    names = {
        "to_dot_product": "dot product, best ten",
        "to_half_precision": "in half precision and in parts",
        "to_product_of_codes": "product of codes",
        "to_faiss_flat": "FAISS, flat",
    }
    lines = []
    for place, report in (("H200", gpu), ("two cores", cpu)):
        for row in [row for row in report["rows"] if "queries" in row and "first" not in row]:
            asked = f"{place}, {row['patterns']:,} patterns, {_queries(row['queries'])}"
            lines.append([asked, *(figure(row[key], 2) if key in row else "" for key in names)])
    return Grid(["", *names.values()], lines)


@shown("scale-agreement", "scale-cuda", "scale-cpu")
def scale_agreement(*reports: Report) -> Grid:
    """Answers by an index beside exact scoring of all patterns."""
    head = ["patterns, d", "difficulty", "right", "first choices alike", "ten alike", "probability off, mean (worst)"]
    lines = []
    for row in [row for report in reports for row in report["rows"] if "first" in row]:
        off = f"{_digits(row['probability_mean'])} ({_digits(row['probability_worst'])})"
        size = f"{row['patterns']:,}, {row['dim']}"
        alike = [figure(row[key], 4) for key in ("first", "ten")]
        lines.append([size, figure(row["difficulty"], 1), figure(row["right"], 3), *alike, off])
    return Grid(head, lines)


def _queries(count: int) -> str:
    return "one query" if count == 1 else f"{count:,} queries"


def _digits(value: float) -> str:
    return figure(value, 4)
