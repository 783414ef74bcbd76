"""Tables of how often memories find the right pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ahop_paper import retrieval as benchmark
from ahop_paper.baselines import ALONE, BOTH, PLAIN
from ahop_paper.pages.markdown import Grid, Report, bold, figure, interval, short, with_spread
from ahop_paper.pages.tables.registry import Row, beside_paper, by, cells_of, each, model_title, set_title, shown
from ahop_paper.real import law
from ahop_paper.real_models import MODELS as MEASURED
from ahop_paper.spread import paired, spread


@shown("retrieval", "retrieval-synthetic", "retrieval-mnist")
def retrieval(*reports: Report) -> Grid:
    """Table 2: accuracy under mixed corruption."""
    return _retrieval(reports, "accuracy")


@shown("calibrated", "retrieval-calibrated")
def calibrated(report: Report) -> Grid:
    """The same where queries are drawn as hard as the paper's: accuracy."""
    return _retrieval([report], "accuracy")


@shown("errors", "retrieval-synthetic", "retrieval-mnist")
def errors(*reports: Report) -> Grid:
    """Table 2: squared error a dimension."""
    return _retrieval(reports, "error")


def _retrieval(reports: Sequence[Report], what: str) -> Grid:
    rows = [
        {**row, "data": report["config"]["data"], "level": row["intensities"][0]}
        for report in reports
        for row in report["rows"]
    ]
    found = by(rows, "model", "data", "level")
    columns = [
        (data, level)
        for data in each(rows, "data")
        for level in sorted(each([row for row in rows if row["data"] == data], "level"))
    ]

    def cell(row: Row) -> str:
        # Adam is ours to compare with, and the paper's figure stands beside the network once.
        paper = row["paper"][what] if row["paper"] and row["model"] != "a-hop-adam" else None
        return with_spread(row[what], paper)

    lines = [
        [model_title(model), *cells_of(found, [(model, *column) for column in columns], cell)]
        for model in each(rows, "model")
    ]
    return Grid(["", *(f"{set_title(data)} {figure(level, 1)}" for data, level in columns)], lines)


def settings(report: Report) -> Grid:
    """One benchmark in full: for each setting, what every network makes of it."""
    rows = report["rows"]
    compared = any(row["paper"] for row in rows)
    lines, before = [], ""
    for row in sorted(rows, key=lambda row: each(rows, "setting").index(row["setting"])):
        paper = f"{figure(row['paper']['accuracy'])} / {figure(row['paper']['error'])}" if row["paper"] else ""
        lines.append(
            [
                row["setting"] if row["setting"] != before else "",
                row["model"],
                with_spread(row["accuracy"]),
                with_spread(row["error"]),
                figure(row["first_choice"]["mean"]),
                f"{row['fraction_of_oracle']['mean']:.1%}",
                *([paper] if compared else []),
            ]
        )
        before = row["setting"]
    head = ["setting", "model", "accuracy", "error", "1st choice", "of Oracle"]
    return Grid([*head, "paper: accuracy / error"] if compared else head, lines)


@shown("twelve", "retrieval-twelve-2048", "retrieval-twelve-4096")
def twelve(*reports: Report) -> Grid:
    """The retrieval figure: accuracy in twelve settings, with 2,048 and with 4,096 patterns."""
    rows = [{**row, "patterns": report["config"]["patterns"]} for report in reports for row in report["rows"]]
    rows = _with_best_baselines(rows, "accuracy", "patterns", "setting")
    found = by(rows, "patterns", "setting", "model")
    models, counts = each(rows, "model"), each(rows, "patterns")
    lines = []
    for setting in each(rows, "setting"):
        pairs = [
            cells_of(found, [(count, setting, model) for count in counts], lambda row: _with_name(row, "accuracy", 2))
            for model in models
        ]
        lines.append([setting, *(", ".join(filter(None, pair)) for pair in pairs)])
    return Grid(["", *("Oracle" if model == "oracle" else model for model in models)], lines)


def _with_best_baselines(rows: list[Row], what: str, *keys: str) -> list[Row]:
    """The rows of networks, and for each place, which the keys name, the best baseline without labels and with."""
    found = [row for row in rows if row["model"] not in PLAIN]
    for learns, title in ((ALONE, "best baseline, no labels"), (BOTH, "best baseline, labels")):
        best: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            place = tuple(row[key] for key in keys)
            if row["model"] in PLAIN and PLAIN[row["model"]].learns == learns:
                best[place] = max(best.get(place, row), row, key=lambda one: one[what]["mean"])
        found += [{**row, "model": title, "baseline": row["model"]} for row in best.values()]
    return found


def _with_name(row: Row, what: str, digits: int = 3) -> str:
    """A figure, and whose it is where it is that of a baseline."""
    return " ".join([figure(row[what]["mean"], digits), *([row["baseline"]] if "baseline" in row else [])])


@shown("generators", "generators-synthetic", "generators-mnist")
def generators(*reports: Report) -> Grid:
    """Networks that learn nothing, by ways of drawing queries; in brackets standard errors away from the paper."""
    return _generators(reports, "accuracy")


@shown("generator-errors", "generators-synthetic", "generators-mnist")
def generator_errors(*reports: Report) -> Grid:
    """The same for squared errors a dimension."""
    return _generators(reports, "error")


def _generators(reports: Sequence[Report], what: str) -> Grid:
    titles = {
        "published": "`published`: noise d, bias 1.5 d, mask",
        "calibrated": "`calibrated`: noise 1.25 d, bias 1.45 d, mask",
        "literal": "`literal`, as the text says: noise √d, mask, bias d",
        "std": "`std`: noise d, mask, bias d",
    }
    rows = [row for report in reports for row in report["rows"]]
    found = by(rows, "preset", "data", "model", "level")
    columns = [
        (data, model, level)
        for data in each(rows, "data")
        for model, level in sorted(each([row for row in rows if row["data"] == data], "model", "level"))
    ]
    papers = by(rows, "data", "model", "level")
    lines = [["**the paper**", *cells_of(papers, columns, lambda row: figure(row[what]["paper"]))]]
    for preset in each(rows, "preset"):
        places = [(preset, *column) for column in columns]
        lines.append([titles.get(preset, preset), *cells_of(found, places, lambda row: _beside(row[what]))])
    return Grid(["", *(f"{set_title(data)} {figure(level, 1)}, {model}" for data, model, level in columns)], lines)


def _beside(figures: Row) -> str:
    return f"{figure(figures['mean'])} ({figures['standard_errors']:+.1f})"


@shown("ablations", "ablations")
def ablations(report: Report) -> Grid:
    """What each part of a-hop is good for."""
    rows = report["rows"]
    found = by(rows, "study", "condition", "difficulty")
    difficulties = each(rows, "difficulty")
    lines, before = [], ""
    for study, condition in each(rows, "study", "condition"):
        places = [(study, condition, difficulty) for difficulty in difficulties]
        cells = cells_of(found, places, beside_paper("accuracy"))
        lines.append([study if study != before else "", condition, *cells])
        before = study
    return Grid(["", "", *(f"difficulty {figure(value, 1)}" for value in difficulties)], lines)


@shown("worlds", "worlds")
def worlds(report: Report) -> Grid:
    """How close to the Oracle's first choices."""
    rows = [row for row in report["rows"] if row["model"] != "oracle"]
    rows = _with_best_baselines(rows, "fraction_of_oracle", "world")
    found = by(rows, "world", "model")
    columns: list[tuple[str, str, Callable[[Row], str]]] = []
    for model in each(rows, "model"):
        title = benchmark.MODELS[model].title if model in benchmark.MODELS else model
        columns.append((model, title, lambda row: _with_name(row, "fraction_of_oracle")))
        if model.endswith("*"):
            columns.append((model, "its worst run", lambda row: figure(min(row["fraction_of_oracle"]["runs"]))))
    lines = [
        [world, *(cell for model, _, write in columns for cell in cells_of(found, [(world, model)], write))]
        for world in each(rows, "world")
    ]
    return Grid(["world", *(title for _, title, _ in columns)], lines)


@shown("worlds-untuned", "worlds-untuned")
def untuned(report: Report) -> Grid:
    """Worlds that nobody tuned on: the Oracle's first choices that are right, and what part of them others find."""
    return _beside_the_best_metric(report, "fraction_of_oracle", min)


@shown("worlds-untuned-calibration", "worlds-untuned")
def untuned_calibration(report: Report) -> Grid:
    """The same: expected calibration error."""
    return _beside_the_best_metric(report, "calibration_error", max)


@shown("worlds-untuned-metrics", "worlds-untuned")
def untuned_metrics(report: Report) -> Grid:
    """The same: what part of the Oracle's first choices the baselines find."""
    rows = [row for row in report["rows"] if row["model"] in benchmark.BASELINES]
    found, models = by(rows, "world", "model"), each(rows, "model")
    cell = _with_worst("fraction_of_oracle", min)
    lines = [[world, *cells_of(found, [(world, model) for model in models], cell)] for world in each(rows, "world")]
    return Grid(["world", *models], lines)


def _beside_the_best_metric(report: Report, what: str, worst: Callable[[list[float]], float]) -> Grid:
    """Networks beside the baseline of the highest first choices in each world, which says nothing of how sure it is."""
    rows = report["rows"]
    found = by(rows, "world", "model")
    models = [model for model in each(rows, "model") if model not in benchmark.BASELINES and model != "oracle"]
    cell, of_oracle = _with_worst(what, worst), "first_choice" if what == "fraction_of_oracle" else what
    lines = []
    for world in each(rows, "world"):
        metrics = [row for row in rows if row["world"] == world and row["model"] in benchmark.BASELINES]
        best = max(metrics, key=lambda row: row["first_choice"]["mean"], default=None)
        simple = f"{cell(best)} {best['model']}" if best and what in best else ""
        ceiling = cells_of(found, [(world, "oracle")], lambda row: figure(row[of_oracle]["mean"]))
        lines.append([world, *ceiling, simple, *cells_of(found, [(world, model) for model in models], cell)])
    titles = [benchmark.MODELS[model].title if model in benchmark.MODELS else model for model in models]
    return Grid(["world", "Oracle", "best baseline", *titles], lines)


def _with_worst(what: str, worst: Callable[[list[float]], float]) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        several = f" ({figure(worst(row[what]['runs']))})" if len(row[what]["runs"]) > 1 else ""
        return figure(row[what]["mean"]) + several

    return cell


def worlds_in_full(report: Report) -> Grid:
    """For each world what every memory finds, its worst run, its calibration, and how it tells strangers."""
    columns = ("first_choice", "fraction_of_oracle", "calibration_error", "rejection_auroc")
    lines, before = [], ""
    for row in report["rows"]:
        means = [figure(row[column]["mean"]) if column in row else "" for column in columns]
        means.insert(2, figure(min(row["fraction_of_oracle"]["runs"])))
        lines.append([row["world"] if row["world"] != before else "", row["model"], *means])
        before = row["world"]
    head = ["world", "model", "1st choice", "of Oracle", "worst run", "calibration error", "strangers AUROC"]
    return Grid(head, lines)


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
    """Who is found by how the crowd around a pattern is counted; in brackets the wrong answers that were learned."""
    rows = report["rows"]
    found, methods = by(rows, "counted", "method"), each(rows, "method")

    def cell(row: Row) -> str:
        return f"{with_spread(row['accuracy'])} ({figure(row['wrong_to_learned']['mean'], 2)})"

    lines = [
        [counted, *cells_of(found, [(counted, method) for method in methods], cell)]
        for counted in each(rows, "counted")
    ]
    return Grid(["the crowd is counted by", *methods], lines)


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
        key=lambda key: (list(PAIRS).index(key[0]), not key[1].startswith("b-hop"), key[1]),
    )
    lines = [
        [
            PAIRS[labels],
            bold(method, method.startswith("b-hop")),
            *cells_of(found, [(method, labels, one) for one in names], cell),
        ]
        for labels, method in order
    ]
    return Grid(["pairs", "", *(set_title(name) for name in names)], lines)


ADAPTED, RANKED = "b-hop, query_adapter", ("recall@10", "nDCG@10")


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
    """Queries of another embedding model, all pairs: ours less the best other method, own query left out, on the same
    splits; 95 % confidence interval."""
    rows = [row for row in report["rows"] if row["labels"] == "all" and "own query counted" not in row["method"]]
    figures, lines = {"right": "right first choices", **dict(zip(RANKED, RANKED, strict=True))}, []
    for data in each(rows, "data"):
        others = [row for row in rows if row["data"] == data and row["method"] != "b-hop"]
        for own in (row for row in rows if row["data"] == data and row["method"] == "b-hop" and others):
            cells = []
            for what in figures:
                best = max(others, key=lambda row: row[what]["mean"])
                # As many items are scored as are learned from.
                difference = paired(own[what]["runs"], best[what]["runs"], ratio=1.0)
                sure = difference["low"] is not None and difference["low"] > 0
                told = f"{bold(_signed(difference['mean'] or 0.0), sure)} ({interval(difference)})"
                cells.append(f"{told} {best['method']}")
            lines.append([set_title(data), *cells])
    return Grid(["", *figures.values()], lines)


@shown("trust", "trust")
def trust(report: Report) -> Grid:
    """How sure and how right a memory is: without labels, with answers that were checked, and with labels."""
    rows = report["rows"]
    found, ways = by(rows, "data", "way"), each(rows, "way")

    def cell(row: Row) -> str:
        if not row["found"]:
            return f"not found ({figure(row['right'], 2)} right)"
        part = "" if row["found"] == row["fits"] else f", {row['found']} of {row['fits']} found"
        return f"{figure(row['sure'], 2)}, right {figure(row['right'], 2)}{part}"

    lines = [[data, *cells_of(found, [(data, way) for way in ways], cell)] for data in each(rows, "data")]
    return Grid(["", *ways], lines)


@shown("modalities", "multimodal")
def modalities(report: Report) -> Grid:
    """Concepts that are found through two modalities."""
    rows = report["rows"]
    found = by(rows, "first", "second", "concepts")
    counts = each(rows, "concepts")
    lines = [
        [
            f"{first}, then {second}",
            *cells_of(found, [(first, second, count) for count in counts], beside_paper("accuracy")),
        ]
        for first, second in each(rows, "first", "second")
    ]
    return Grid(["", *(f"{count} concepts" for count in counts)], lines)


@shown("blends", "blends")
def blends(report: Report) -> Grid:
    """How often the whole set comes back, a line for each way to find it."""
    rows = report["rows"]
    found, sizes = by(rows, "way", "size"), sorted({row["size"] for row in rows})
    most = {size: max(row["whole"]["mean"] for row in rows if row["size"] == size) for size in sizes}

    def share(row: Row) -> str:
        return bold(with_spread(row["whole"]), row["whole"]["mean"] == most[row["size"]])

    lines = [[way, *cells_of(found, [(way, size) for size in sizes], share)] for way in each(rows, "way")]
    return Grid(["found by", *(f"{size} patterns" for size in sizes)], lines)


@shown("claims", "claims")
def claims(report: Report) -> Grid:
    """What the paper proves, as printed and as it holds."""
    lines = [
        [row["where"], row["says"], row["measured"], short(row["printed"]), short(row["corrected"]), row["holds"]]
        for row in report["rows"]
    ]
    return Grid(["where", "the paper says", "measured", "as printed", "corrected", "what holds"], lines)
