"""Sentences about measured data, classifiers and speed: their figures, too, come from the results."""

from collections import defaultdict

import pytest
from tests.paper.pages.sentences import LEARNED, ROOT, measured, one, rows, says

from ahop.kernels.network import row_passes
from ahop.paper.pages.markdown import figure, interval, read
from ahop.paper.spread import paired

EMBEDDINGS = ("embeddings-new", "embeddings-new-photo", "embeddings-wide")
OWN = "learned queries, a pattern's own left out"
GAS = (("b-hop", "ridge"), ("b-hop*", "cosine"))
TABLES = ("adult", "bank", "vaccine", "purchase", "heart")
PAPERS = read(ROOT / "results", "tabular-benchmark")["done"]


def gaps(data, model):
    """By how much the model is ahead of the best other one, for each split."""
    ((_, best),) = [(row["data"], row["best_other"]["model"]) for row in rows("real", data=data, model=model)]
    done = read(ROOT / "results", "real")["done"]
    found = {(part["model"], part["split"]): part["accuracy"] for part in done if part["data"] == data}
    return sorted(found[model, split] - found[best, split] for split in range(5))


def splits():
    without, labels = gaps("tablets", "b-hop*"), gaps("tablets", "b-hop")
    ahead = {model: sum(gap > 0 for gap in gaps("gas", model)) for model in LEARNED}
    assert ahead == {"b-hop*": 1, "b-hop": 1}
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


def beside_m_hop(name, model):
    """The difference of an image network to m-hop, seed by seed."""
    done = read(ROOT / "results", name)["done"]
    found = {(part["model"], part["seed"]): part["accuracy"] for part in done}
    return paired(*([found[each, seed] for seed in range(3)] for each in (model, "m-hop")), ratio=0.0)


def in_a_transformer():
    level = [beside_m_hop("images-cifar10", model) for model in ("k-hop", "a-hop")]
    assert all(gap["low"] < 0 < gap["high"] for gap in level)
    below = beside_m_hop("images-cifar10", "s-hop")
    assert below["high"] < 0
    return (
        f"intervals of the paired difference include zero: {interval(level[0])} and {interval(level[1])}."
        f" `s-hop` is {figure(-below['mean'])} below ({interval(below)})"
    )


def one_token():
    for data in ("cifar10", "cifar100", "tiny-imagenet"):
        for model in ("k-hop", "a-hop"):
            gap = beside_m_hop(f"images-published-{data}", model)
            assert gap["low"] < 0 < gap["high"]
    return "every interval of a paired difference to `m-hop` includes zero"


def scoring():
    (row,) = rows("kernels-cuda", dim=64)
    return (
        f"takes {row['scores_ms']:.1f} ms ({row['tera_min_max']} T minima and maxima a second) instead of"
        f" {row['compiled_ms']:.0f} ms under `torch.compile` and {row['eager_ms']:.0f} ms as it is"
    )


def networks():
    """Where the kernels are less than three times as fast as NumPy's sort, and their comparators a value."""
    dims = (16, 32, 64, 128, 256)
    behind = {
        machine: {dim: ratio for dim in dims if (ratio := one(f"kernels-{machine}", "numpy_ratio", dim=dim)) < 3}
        for machine in ("arm", "x86")
    }
    assert list(behind["arm"]) == [64] and list(behind["x86"]) == [128, 256]
    ratios = [row["numpy_ratio"] for row in rows("kernels-x86") if "numpy_ratio" in row]
    assert ratios == sorted(ratios, reverse=True)
    few, some, many = (
        f"{sum(len(shape) * len(groups) for one in row_passes(dim) for shape, groups in one.items()) / dim:.1f}"
        for dim in (16, 64, 256)
    )
    return (
        f"d 64 on ARM ({behind['arm'][64]}; there NumPy's sort keeps all values in registers, too), and d 128 and d 256"
        f" on x86 ({behind['x86'][128]} and {behind['x86'][256]}). On x86 the ratio falls from d 16 to d 784, and what"
        f" stands in the way is the network itself: it has {few} comparators a value at d 16, {some} at d 64 and {many}"
        " at d 256, while NumPy's sort grows more slowly"
    )


def first_use():
    found = rows("kernels-cuda")
    plain, learning = (max(row[what] for row in found) for what in ("first_use_s", "first_gradients_s"))
    return f"costs at most {plain:.1f} s, and {learning:.1f} s with gradients"


def beside_trees(what, name="tabular-sound"):
    """Where the difference of the vote of memories to the best trees lies, for each table."""
    gaps = {row["data"]: row["beside"][what]["difference"] for row in rows(name, model="ours")}
    assert list(gaps) == list(TABLES)
    return gaps


def level(gaps):
    return all(gap["low"] <= 0 <= gap["high"] for gap in gaps.values())


def behind_and_ahead(gaps):
    means = [gap["mean"] for gap in gaps.values()]
    return f"is {figure(-min(means), 4)} behind at most, {figure(max(means), 4)} ahead at most, and"


def sound_tables():
    gaps = beside_trees("accuracy")
    assert level(gaps)
    return f"The vote of memories {behind_and_ahead(gaps)} every interval includes zero"


def areas():
    gaps = beside_trees("auc")
    assert level(gaps)
    behind = [-gap["mean"] for gap in gaps.values()]
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
    gaps = beside_trees("accuracy", "tabular-benchmark")
    assert level(gaps)
    return f"The vote of memories {behind_and_ahead(gaps)} every interval includes zero. By the area"


def papers_areas():
    gaps = beside_trees("auc", "tabular-benchmark")
    assert [data for data, gap in gaps.items() if gap["high"] < 0] == ["vaccine"]
    return f"it {behind_and_ahead(gaps)} on Vaccine behind by more than chance"


def papers_a_hop():
    def accuracy(model, data):
        return one("tabular-benchmark", "accuracy", data=data, model=model)

    papers = {data: one("tabular-benchmark", "paper", data=data, model="a-hop") for data in TABLES}
    above = {model: [data for data in TABLES if accuracy(model, data) > papers[data]] for model in ("a-hop", "default")}
    assert above == {"a-hop": ["heart"], "default": list(TABLES)}
    (bank,) = rows("tabular-benchmark", data="bank", model="a-hop")
    assert abs(bank["accuracy"]["mean"] - papers["bank"]) < bank["accuracy"]["std"]
    return (
        "above the paper's figure on Heart alone, and on Bank within a standard deviation of it; `HopfieldClassifier()`"
        " is above that figure on all five"
    )


def between(model, other, what="accuracy"):
    """The paired difference of two networks with prototypes, for each table."""
    found = {}
    for data in TABLES:
        tested = [part for part in PAPERS if part["data"] == data and "auc" in part]
        ((learned, scored),) = {tuple(part["rows"]) for part in tested}
        runs = [
            [part[what] for split in range(5) for part in tested if (part["model"], part["split"]) == (name, split)]
            for name in (model, other)
        ]
        found[data] = paired(*runs, ratio=scored / learned)
    return found


def papers_gap():
    ours = between("a-hop", "m-hop")
    assert level(ours)
    adult, heart = (
        one("tabular-benchmark", "paper", data=data, model="a-hop")
        - one("tabular-benchmark", "paper", data=data, model="m-hop")
        for data in ("adult", "heart")
    )
    return (
        f"The paper has {figure(adult)} on Adult and {figure(heart)} on Heart, ours {figure(ours['adult']['mean'])} and"
        f" {figure(ours['heart']['mean'])}; every interval includes zero"
    )


def kernelized():
    found = between("k2-hop", "a-hop")
    assert level(found)
    ahead = [gap["mean"] for gap in found.values()]
    return f"is {figure(min(ahead))} to {figure(max(ahead))} ahead of `a-hop`, and every interval includes zero"


def gaps_by_area():
    adaptive, kernels = between("a-hop", "m-hop", "auc"), between("k2-hop", "a-hop", "auc")
    purchase, vaccine = adaptive.pop("purchase"), kernels.pop("vaccine")
    assert level(adaptive) and level(kernels)
    return (
        f"By the area `a-hop` is {figure(purchase['mean'])} ahead of `m-hop` on Purchase ({interval(purchase)}), and"
        f" `k2-hop` {figure(vaccine['mean'])} ahead of `a-hop` on Vaccine ({interval(vaccine)}); all other intervals"
        " include zero"
    )


def printed_as_areas():
    def figures(data):
        found = [one("tabular-benchmark", what, data=data, model="xgboost") for what in ("paper", "accuracy", "auc")]
        return [figure(value) for value in found]

    (bank, own, area), (purchase, same, other) = map(figures, ("bank", "purchase"))
    return (
        f"XGBoost has {bank} on Bank in the paper, and in our runs an accuracy of {own} and an area of {area};"
        f" on Purchase {purchase}, and in our runs {same} and {other}"
    )


def gap_not_found():
    gaps, kernels = between("a-hop", "m-hop"), between("k2-hop", "a-hop")
    assert level(gaps) and level(kernels)
    (area,) = (gap for gap in between("a-hop", "m-hop", "auc").values() if gap["low"] > 0)
    return (
        f"ours is {figure(gaps['adult']['mean'])} and {figure(gaps['heart']['mean'])} above, which five splits cannot"
        " tell from chance, and k2-hop is level with a-hop. By the area, which the text announces for Purchase, ours is"
        f" {figure(area['mean'])} above m-hop there, by more than chance"
    )


def alone():
    own, trees = (one("tabular-cpu", "accuracy", data="adult", model=model) for model in ("default", "xgboost"))
    times = one("tabular-cpu", "fit", data="adult", model="default")
    return (
        f"needs {times:.0f} times as long as a tuned XGBoost to learn Adult"
        f" (accuracy {figure(own, 4)} against {figure(trees, 4)}"
    )


def on_embeddings(model):
    first, second, third = (measured(f"embeddings-{name}", model) for name in ("new", "new-photo", "wide"))
    return f"{first}, {second} and {third}"


def tablets():
    done = [part for part in read(ROOT / "results", "real")["done"] if part["data"] == "tablets"]
    found = defaultdict(dict)
    for part in done:
        found[part["model"]][part["split"]] = part["accuracy"]
    ours = {model: found.pop(model) for model in ("b-hop*", "b-hop", "b-hop 10")}
    learned, scored = done[0]["items"]
    for model in LEARNED:
        gaps = {
            other: paired(*([runs[split] for split in range(5)] for runs in (ours[model], theirs)), scored / learned)
            for other, theirs in found.items()
        }
        unsure = {other for other, gap in gaps.items() if gap["low"] <= 0}
        assert unsure == {"self-taught projection", "orthogonal projection"}
    best = measured("tablets", "orthogonal projection")
    return f"ahead by more than chance, but for an orthogonal projection with all labels ({best})"


def unpaired():
    """What self-learning finds: as a whole, and its turns alone."""
    compared = [row for row in rows("real", model="b-hop*") if row["data"] in EMBEDDINGS]
    assert len(compared) == len(EMBEDDINGS) and all(row["difference"]["high"] < 0 for row in compared)
    whole, turns = on_embeddings("self-learned map"), on_embeddings("self-learned rotation")
    return f"needs no pair either and finds {whole}. Its turns alone find {turns};"


def crowded():
    return (
        f"takes ridge with all labels from {on_embeddings('ridge')} to {on_embeddings('uncrowded ridge')}, and with 500"
        f" from {on_embeddings('ridge 500')} to {on_embeddings('uncrowded ridge 500')}. Without it ridge is level with"
        f" `b-hop`, and a perceptron from all labels is ahead ({on_embeddings('residual MLP')})"
    )


def crowd():
    """What is left of an uncrowded ridge, and of the map of b-hop, by how the crowd is counted."""

    def found(counted, method="ridge"):
        return one("crowding", "accuracy", counted=counted, method=method)

    none, learned, fair = (found(way) for way in ("nothing", "learned queries", OWN))
    assert round(4 * (learned - fair) / (learned - none)) == 1
    ways = ("learned and scored queries", "other patterns")
    more, less = (figure(found(way)) for way in ways)
    labels, without = (
        [figure(found(way, f"b-hop's map{mark}")) for way in ("nothing", "other patterns")] for mark in ("", "*")
    )
    return (
        f"a quarter of what ridge gains is made by the split: {figure(fair)} is left of {figure(learned)} where no"
        f" pattern's own query is counted. Queries that include the scored ones, as a dictionary's do, bring more"
        f" ({more}), and other patterns, which need no queries at all, less ({less}). The map of `b-hop` gains"
        f" likewise, from {labels[0]} to {labels[1]} by other patterns and without labels from {without[0]} to"
        f" {without[1]}"
    )


def gas():
    best = [measured("gas", model, f"uncrowded {other}") for model, other in GAS]
    ours = [measured("gas", model) for model, _ in GAS]
    ridge, cosine = (measured("gas", model) for model in ("ridge", "centred cosine"))
    return (
        f"{ours[0]} with all labels (ridge {ridge}, uncrowded ridge {best[0]}) and {ours[1]} without (centred cosine"
        f" {cosine}, uncrowded cosine {best[1]})"
    )


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
        tablets,
        unpaired,
        crowded,
        crowd,
        gas,
        spectra,
    ),
    "docs/results/tables.md": (
        sound_tables,
        areas,
        votes_of_trees,
        slow_to_learn,
        papers_tables,
        papers_areas,
        papers_a_hop,
        papers_gap,
        kernelized,
        gaps_by_area,
        alone,
    ),
    "docs/what-we-found.md": (
        printed_as_areas,
        gap_not_found,
    ),
    "docs/results/bags.md": (
        bags,
        bags_with_the_max_beside,
    ),
    "docs/results/images.md": (
        in_a_transformer,
        long_training,
        one_token,
    ),
    "docs/results/speed.md": (
        likelihood,
        scoring,
        networks,
        first_use,
        under_load,
    ),
}


@pytest.mark.parametrize(
    ("document", "sentence"), [(document, sentence) for document, found in SENTENCES.items() for sentence in found]
)
def test_sentences_say_what_the_results_say(document, sentence):
    assert says(document, sentence())
