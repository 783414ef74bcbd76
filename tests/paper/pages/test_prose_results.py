"""Sentences about measured data, classifiers and speed: their figures, too, come from the results."""

import pytest
from tests.paper.pages.sentences import LEARNED, ROOT, measured, one, rows, says

from ahop.paper.pages.markdown import figure, read

BOOSTED = ("xgboost", "lightgbm", "catboost")
TABLES = ("adult", "bank", "vaccine", "purchase", "heart")


def lead(name, what="accuracy", model="ours"):
    """By how much the model is ahead of the best boosted trees, for each table."""
    best = {data: max(one(name, what, data=data, model=other) for other in BOOSTED) for data in TABLES}
    return {data: round(one(name, what, data=data, model=model) - best[data], 4) for data in TABLES}


def gaps(data, model):
    """By how much the model is ahead of the best other one, for each split."""
    ((_, best),) = [(row["data"], row["best_other"]["model"]) for row in rows("real", data=data, model=model)]
    done = read(ROOT / "results", "real")["done"]
    found = {(part["model"], part["split"]): part["accuracy"] for part in done if part["data"] == data}
    return sorted(found[model, split] - found[best, split] for split in range(5))


def splits():
    without, labels = gaps("tablets", "b-hop*"), gaps("tablets", "b-hop")
    ahead = {model: sum(gap > 0 for gap in gaps("gas", model)) for model in LEARNED}
    assert ahead == {"b-hop*": 2, "b-hop": 1}
    (row,) = rows("real", data="tablets", model="b-hop")
    assert row["difference"]["low"] < 0
    return (
        f"ahead of the best other in all five, by {figure(without[0])} to {figure(without[-1])} without labels and by"
        f" {figure(labels[0])} to {figure(labels[-1])} with all (an interval that still includes zero"
    )


def bags():
    compared = [row for row in rows("mil") if "difference" in row]
    assert compared and all(row["difference"]["low"] <= 0 <= row["difference"]["high"] for row in compared)
    best, sets = {row["best_other"]["model"] for row in compared}, {row["data"] for row in compared}
    assert len(sets) == 6
    return f"every interval includes zero, and the best other is {' or '.join(sorted(best, key=len))} on all six sets"


def bags_with_the_max_beside():
    ahead = [
        one("mil", "auc", data=data, model="attention and max") - one("mil", "auc", data=data, model="a-hop")
        for data in {row["data"] for row in rows("mil")}
    ]
    return f"attention is {figure(max(ahead))} ahead of `a-hop` at most, and {figure(-min(ahead))} behind at most"


def likelihood():
    easy, hard = rows("likelihood")
    return (
        f"takes {1 / easy['fit_ratio']:.1f} times as long as the convex fit of `a-hop` at difficulty .4 and"
        f" {1 / hard['fit_ratio']:.1f} times at .5, and scoring by codes that keep {100 * hard['kept']:.1f} % of first"
        f" choices costs {hard['codes_over_product']:.0f} plain dot products of queries and patterns"
    )


def under_load():
    index, shards = rows("load")
    assert not index["wrong"] and not shards["wrong"]
    return (
        f"no answer of {index['answers']:,} is wrong; a recall takes {index['p50']:.1f} times as long as on an idle"
        f" machine, one in a hundred {index['p99']:.1f} times (idle {index['idle_p99']:.1f}), and the peak of memory"
        f" grows by {100 * (index['peak_memory_ratio'] - 1):.0f} %. Two shards on the same two cores:"
        f" {shards['p50']:.1f} and {shards['p99']:.1f} times, none of {shards['answers']} answers wrong"
    )


def long_training():
    return f"`m-hop` reaches {figure(one('images-cifar10-long', 'accuracy', model='m-hop'))} (one seed)"


def scoring():
    (row,) = rows("kernels-cuda", dim=64)
    return (
        f"takes {row['scores_ms']:.1f} ms ({row['tera_min_max']} T minima and maxima a second) instead of"
        f" {row['eager_ms']:.0f} ms"
    )


def first_use():
    found = rows("kernels-cuda")
    plain, learning = (max(row[what] for row in found) for what in ("first_use_s", "first_gradients_s"))
    return f"costs at most {plain:.1f} s, and {learning:.1f} s with gradients"


def beside_trees(what):
    """Where the difference of the vote of memories to the best trees lies, for each table."""
    return {row["data"]: row["beside"][what]["difference"] for row in rows("tabular-sound", model="ours")}


def sound_tables():
    gaps = beside_trees("accuracy").values()
    assert len(gaps) == len(TABLES) and all(gap["low"] < 0 < gap["high"] for gap in gaps)
    means = [gap["mean"] for gap in gaps]
    return f"The vote of memories is {figure(-min(means), 4)} behind at most, {figure(max(means), 4)} ahead at most"


def areas():
    gaps = beside_trees("auc").values()
    assert len(gaps) == len(TABLES) and all(gap["low"] < 0 < gap["high"] for gap in gaps)
    behind = [-gap["mean"] for gap in gaps]
    return f"it is {figure(min(behind), 4)} to {figure(max(behind), 4)} behind, and every interval includes zero"


def votes_of_trees():
    gains = [
        one("tabular-sound", "accuracy", data=data, model="vote of xgboost")
        - one("tabular-sound", "accuracy", data=data, model="xgboost")
        for data in TABLES
    ]
    return f"A vote changes XGBoost's accuracy by {min(gains):+.4f} to {max(gains):+.4f}".replace("0.", ".")


def slow_to_learn():
    found = [one("tabular-sound", "fit", data=data, model="ours") for data in TABLES]
    votes = [one("tabular-sound", "fit", data=data, model="vote of xgboost") for data in TABLES]
    return (
        f"it needs {min(found):.0f} to {max(found):.0f} times as long to learn as XGBoost on one core"
        f" (whose vote needs {min(votes):.0f} to {max(votes):.0f} times as long)"
    )


def papers_tables():
    ahead = lead("tabular-benchmark")
    assert [data for data, value in ahead.items() if value > 0] == ["purchase"]
    return f"ahead of the best boosted trees on Purchase alone, and at most {figure(-min(ahead.values()), 4)} behind"


def papers_a_hop():
    papers = {data: one("tabular-benchmark", "paper", data=data, model="a-hop") for data in TABLES}

    def met(model):
        return [data for data in TABLES if one("tabular-benchmark", "accuracy", data=data, model=model) >= papers[data]]

    assert met("a-hop") == ["heart"] and met("a-hop-cases") == list(TABLES)
    return "figure on Heart alone. With all rows as cases and a vote it is above the paper's on all five"


def kernelized():
    ahead = {
        data: one("tabular-benchmark", "accuracy", data=data, model="k2-hop")
        - one("tabular-benchmark", "accuracy", data=data, model="a-hop")
        for data in TABLES
    }
    assert min(ahead.values()) >= 0
    return f"ahead on all five, by {figure(ahead['vaccine'])} on Vaccine and {figure(ahead['bank'])} on Bank"


def alone():
    own, trees = (one("tabular-cpu", "accuracy", data="adult", model=model) for model in ("default", "xgboost"))
    times = one("tabular-cpu", "fit", data="adult", model="default")
    return (
        f"needs {times:.0f} times as long as a tuned XGBoost to learn Adult"
        f" (accuracy {figure(own, 4)} against {figure(trees, 4)}"
    )


def unpaired():
    """What the turns of self-learning find."""
    theirs = [measured(f"embeddings-{name}", "self-learned rotation") for name in ("new", "new-photo", "wide")]
    return f"(Artetxe, Labaka and Agirre, 2018) find {theirs[0]}, {theirs[1]} and {theirs[2]}"


def spectra():
    found = [measured("tablets", name) for name in ("normal variates", "derivatives", "centred L1")]
    return (
        f"normal variates find {found[0]} and derivatives {found[1]}; the best of nine plain distances finds"
        f" {found[2]}; and a projection that takes its own answers as labels"
        f" {measured('tablets', 'self-taught projection')}"
    )


SENTENCES = {
    "docs/results/real-data.md": (
        splits,
        unpaired,
        spectra,
    ),
    "docs/results/tables.md": (
        sound_tables,
        areas,
        votes_of_trees,
        slow_to_learn,
        papers_tables,
        papers_a_hop,
        kernelized,
        alone,
    ),
    "docs/results/bags.md": (
        bags,
        bags_with_the_max_beside,
    ),
    "docs/results/images.md": (long_training,),
    "docs/results/speed.md": (
        likelihood,
        scoring,
        first_use,
        under_load,
    ),
}


@pytest.mark.parametrize(
    ("document", "sentence"), [(document, sentence) for document, found in SENTENCES.items() for sentence in found]
)
def test_sentences_say_what_the_results_say(document, sentence):
    assert says(document, sentence())
