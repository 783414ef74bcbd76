"""Tables of the page on real data: items that were measured twice."""

from __future__ import annotations

from collections.abc import Callable

from ahop_paper.pages.markdown import Grid, Report, bold, figure, interval, with_spread
from ahop_paper.pages.tables.registry import Row, by, cells_of, each, set_title, shown
from ahop_paper.real import law
from ahop_paper.real_models import MODELS as MEASURED
from ahop_paper.spread import paired, spread

# Of these, the benchmark of moved spaces has rows of newer code; pages show its alone.
MEASURED_ANEW = ("embeddings-new", "embeddings-new-photo", "embeddings-wide")


def _elsewhere(report: Report) -> Report:
    """The report without rows of sets that another one has newer rows of."""
    return {**report, "rows": [row for row in report["rows"] if row["data"] not in MEASURED_ANEW]}


@shown("real", "real")
def real_on_page(report: Report) -> Grid:
    """As :func:`real`, without what was measured anew."""
    return real(_elsewhere(report))


def real(report: Report) -> Grid:
    """Items measured twice: ours, the best other with no more labels, 95 % confidence interval of the difference;
    bold is better."""
    rows = [row for row in report["rows"] if row["model"] in MEASURED and MEASURED[row["model"]].ours]
    found = by(rows, "model", "data")
    names = each(rows, "data")
    columns: list[tuple[str, list[str]]] = []
    before: list[str] = []
    for model in sorted(each(rows, "model"), key=list(MEASURED).index):
        places = [(model, data) for data in names]
        others = cells_of(found, places, _other)
        # Where a few labels give no other model a chance to be better, it stands there already.
        if others != before:
            columns.append((f"best other for {MEASURED[model].learns}", others))
        columns.append((f"**{model}**", cells_of(found, places, _ours)))
        before = others
    lines = [[set_title(data), *(cells[place] for _, cells in columns)] for place, data in enumerate(names)]
    return Grid(["", *(head for head, _ in columns)], lines)


def _ours(row: Row) -> str:
    accuracy, difference = with_spread(row["accuracy"]), row.get("difference", {})
    where = interval(difference)
    return f"{bold(accuracy, bool(row.get('ahead')))} ({where})" if where else accuracy


def _other(row: Row) -> str:
    if "best_other" not in row:
        return ""
    best, high = row["best_other"], row["difference"]["high"]
    return f"{bold(with_spread(best['accuracy']), high is not None and high < 0)} {best['model']}"


def _in_order(models: list[str]) -> list[str]:
    """As the experiment has them; those that nobody knows any more come last."""
    return [*(model for model in MEASURED if model in models), *(model for model in models if model not in MEASURED)]


@shown("real-models", "real")
def real_models_on_page(report: Report) -> Grid:
    """As :func:`real_models`, without what was measured anew."""
    return real_models(_elsewhere(report))


def real_models(report: Report) -> Grid:
    """All models on items measured twice: first choices that are right, on items that were not learned from."""
    rows = report["rows"]
    found = by(rows, "model", "data")
    names, models = each(rows, "data"), each(rows, "model")
    lines = []
    for model in _in_order(models):
        ours, learns = (MEASURED[model].ours, MEASURED[model].learns) if model in MEASURED else (False, "")
        cells = cells_of(found, [(model, data) for data in names], lambda row: with_spread(row["accuracy"]))
        lines.append([bold(model, ours), learns, *cells])
    return Grid(["", "learns from", *map(set_title, names)], lines)


@shown("real-law", "real")
def never_behind_on_page(report: Report) -> Grid:
    """As :func:`never_behind`, without what was measured anew."""
    return never_behind(_elsewhere(report))


def never_behind(report: Report) -> Grid:
    """A law: ours beside the best of the plain metrics, whitening and ridge with no more labels; how far it may be
    behind on average, and whether splits tell."""
    rows = [row for row in report["rows"] if "plain" in row]
    lines = [
        [
            set_title(row["data"]),
            f"**{row['model']}**",
            with_spread(row["accuracy"]),
            f"{with_spread(row['plain']['accuracy'])} {row['plain']['model']}",
            _signed(row["plain"]["difference"]["mean"]),
            interval(row["plain"]["difference"]),
            figure(-row["plain"]["slack"], 2),
            _verdict(**law(row["plain"]["difference"], row["plain"]["slack"])),
        ]
        for row in rows
    ]
    head = ["", "", "ours", "best plain", "mean difference", "confidence interval", "allowed", "holds"]
    return Grid(head, lines)


def _signed(value: float) -> str:
    # A rounded difference may be minus zero, which is none.
    return ("+" if value >= 0 else "") + figure(value + 0.0)


def _verdict(holds: bool, told: bool) -> str:
    if not holds:
        return "**no**"
    return "yes" if told else "cannot be told"


@shown("real-calibration", "real")
def calibration_on_page(report: Report) -> Grid:
    """As :func:`calibration`, without what was measured anew."""
    return calibration(_elsewhere(report))


def calibration(report: Report) -> Grid:
    """Items measured twice: expected calibration error; in brackets how sure, and how often right."""
    rows = [row for row in report["rows"] if "calibration_error" in row]
    found = by(rows, "model", "data")
    names, models = each(rows, "data"), _in_order(each(rows, "model"))

    def cell(row: Row) -> str:
        error, sure, right = (row[key]["mean"] for key in ("calibration_error", "confidence", "accuracy"))
        return f"{figure(error)} ({figure(sure, 2)}, {figure(right, 2)})"

    lines = [[set_title(data), *cells_of(found, [(model, data) for model in models], cell)] for data in names]
    return Grid(["", *models], lines)


@shown("hubness", "hubness")
def hubness(report: Report) -> Grid:
    """Who is found by how hubness is measured; in brackets the wrong answers that were learned."""
    rows = report["rows"]
    found, methods = by(rows, "counted", "method"), each(rows, "method")

    def cell(row: Row) -> str:
        return f"{with_spread(row['accuracy'])} ({figure(row['wrong_to_learned']['mean'], 2)})"

    lines = [
        [counted, *cells_of(found, [(counted, method) for method in methods], cell)]
        for counted in each(rows, "counted")
    ]
    return Grid(["reference set", *methods], lines)


# Of the benchmark of moved spaces: the methods that are ours, and those for which a pattern's own query counts, too.
ADAPTED = "b-hop, query_adapter"
OURS = ("b-hop", ADAPTED)
OWN_QUERY_COUNTED = tuple(
    f"{method}, own query counted" for method in ("ridge and CSLS", "ridge and inverted softmax", "VecMap")
)
# How many pairs a method of the benchmark of moved spaces learned from, as a reader would say it.
PAIRS = {"0": "none", "5": "five", "10": "ten", "100": "100", "500": "500", "all": "all, 5,000"}


@shown("spaces", "spaces")
def spaces(report: Report) -> Grid:
    """Queries of another embedding model: who is found; of ours, in brackets, the expected calibration error."""

    def cell(row: Row) -> str:
        if "found" not in row:
            return with_spread(row["right"])
        missed = f", {row['found']} of {row['fits']} found" if row["found"] < row["fits"] else ""
        return f"{with_spread(row['right'])} ({figure(row['calibration']['mean'])}{missed})"

    return _by_pairs(report, cell)


@shown("spaces-together", "spaces")
def together(report: Report) -> Grid:
    """Queries of another embedding model, those of all items at once, one a pattern: who of the scored is found."""
    rows = [row for row in report["rows"] if "together" in row]
    return _by_pairs({**report, "rows": rows}, lambda row: with_spread(row["together"]))


def _by_pairs(report: Report, cell: Callable[[Row], str]) -> Grid:
    """A line for each method and number of pairs, ours first, and a column for each pair of models."""
    rows = report["rows"]
    found, names = by(rows, "method", "labels", "data"), each(rows, "data")
    order = sorted(
        each(rows, "labels", "method"),
        key=lambda key: (list(PAIRS).index(key[0]), key[1] not in OURS, key[1]),
    )
    lines = [
        [
            PAIRS[labels],
            bold(method, method in OURS),
            *cells_of(found, [(method, labels, one) for one in names], cell),
        ]
        for labels, method in order
    ]
    return Grid(["pairs", "", *(set_title(name) for name in names)], lines)


RANKED = ("recall@10", "nDCG@10")


@shown("spaces-search", "spaces")
def search(report: Report) -> Grid:
    """Queries of another embedding model: recall@10 and nDCG@10 against a full re-index by the model that asks."""
    adapted = [
        {**row, "method": ADAPTED, **_adapted(report, row)} for row in report["rows"] if "adapter recall@10" in row
    ]

    def cell(row: Row) -> str:
        return ", ".join(with_spread(row[what]) for what in RANKED)

    return _by_pairs({**report, "rows": [*report["rows"], *adapted]}, cell)


def _adapted(report: Report, row: Row) -> Row:
    """What the row's adapter has, over its splits."""
    same = [one for one in report["done"] if all(one[key] == row[key] for key in ("data", "method", "labels"))]
    return {what: spread([one[f"adapter {what}"] for one in same if f"adapter {what}" in one]) for what in RANKED}


@shown("spaces-ahead", "spaces")
def ahead(report: Report) -> Grid:
    """Queries of another embedding model, all pairs: ours less the best other method, by each figure."""
    figures, names = {"right": "right first choices", **{what: what for what in RANKED}}, each(report["rows"], "data")
    lines = [[set_title(data), *(_ahead(report, data, "all", what) for what in figures)] for data in names]
    return Grid(["", *figures.values()], lines)


@shown("spaces-ahead-by-pairs", "spaces")
def ahead_by_pairs(report: Report) -> Grid:
    """Queries of another embedding model: ours less the best other with as many pairs, in right first choices."""
    names = each(report["rows"], "data")
    lines = [[told, *(_ahead(report, data, count, "right") for data in names)] for count, told in PAIRS.items()]
    return Grid(["pairs", *(set_title(name) for name in names)], [line for line in lines if any(line[1:])])


def _ahead(report: Report, data: str, labels: str, what: str) -> str:
    """Ours less the best other of a set and a number of pairs, own query left out, on the same splits, with its 95 %
    confidence interval; bold above zero."""
    rows = [row for row in report["rows"] if (row["data"], row["labels"]) == (data, labels)]
    others = [row for row in rows if row["method"] not in (*OURS, *OWN_QUERY_COUNTED)]
    for own in (row for row in rows if row["method"] in OURS and others):
        best = max(others, key=lambda row: row[what]["mean"])
        # As many items are scored as are learned from.
        difference = paired(own[what]["runs"], best[what]["runs"], ratio=1.0)
        sure = difference["low"] is not None and difference["low"] > 0
        return f"{bold(_signed(difference['mean'] or 0.0), sure)} ({interval(difference)}) {best['method']}"
    return ""
