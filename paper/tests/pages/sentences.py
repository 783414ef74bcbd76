"""Figures of the results as sentences have them, and the question whether a page has a sentence."""

from pathlib import Path
from statistics import fmean

from ahop_paper.baselines import PLAIN
from ahop_paper.pages.markdown import figure, read
from ahop_paper.retrieval import BASELINES

ROOT = Path(__file__).parents[3]
LEARNED = ("b-hop*", "b-hop")
# Of the first table.
COLUMNS = (("synthetic", 0.4), ("synthetic", 0.5), ("mnist", 0.6), ("mnist", 0.7))
ROUNDED = "noise .5, rounded to -2, 0, 2"


def rows(name, **wanted):
    found = read(ROOT / "results", name)["rows"]
    return [row for row in found if all(row.get(key) == value for key, value in wanted.items())]


def one(name, what, **wanted):
    (row,) = rows(name, **wanted)
    value = row[what]
    return value["mean"] if isinstance(value, dict) else value


def accuracies(models):
    """The best of these models in each column of the first table."""
    return [
        max(one(f"retrieval-{data}", "accuracy", intensities=[level] * 3, model=model) for model in models)
        for data, level in COLUMNS
    ]


def plain(learns):
    return [name for name, baseline in PLAIN.items() if baseline.learns == learns]


def untuned(what, world, model):
    return one("worlds-untuned", what, world=world, model=model)


def best_metric(world):
    return max(
        row["fraction_of_oracle"]["mean"] for row in rows("worlds-untuned", world=world) if row["model"] in BASELINES
    )


def measured(data, model, other=None):
    """A model's accuracy on a set, or that of the best other for it."""
    (row,) = rows("real", data=data, model=model)
    if other is None:
        return figure(row["accuracy"]["mean"])
    assert row["best_other"]["model"] == other
    return figure(row["best_other"]["accuracy"]["mean"])


def percent(share, digits=1):
    return f"{100 * share:.{digits}f} %"


def points(share, digits=1):
    """A difference of percentages."""
    return f"{100 * share:.{digits}f}"


def between(difference, digits=1):
    """Where a difference of percentages lies in 95 % of cases."""
    return " to ".join(f"{100 * difference[end]:+.{digits}f}" for end in ("low", "high"))


def moved(data, method="b-hop", labels="all", what="right"):
    """The share of right first choices of queries of another embedding model, rounded once."""
    (row,) = rows("spaces", data=data, method=method, labels=labels)
    return percent(fmean(row[what]["runs"]))


def on_real_data(data, model, other=None):
    """As :func:`measured`."""
    return percent(float(measured(data, model, other)))


def fair_rows(data, labels="all"):
    """What else learned from as many pairs, without a pattern's own query being counted."""
    found = [row for row in rows("spaces", data=data, labels=labels) if row["method"] != "b-hop"]
    return [{"data": data, "labels": labels, "method": row["method"]} for row in found
            if "own query" not in row["method"]]  # fmt: skip


def says(document, sentence):
    """Whether a page has a sentence, wherever its lines break."""
    return sentence in " ".join((ROOT / document).read_text().split())
