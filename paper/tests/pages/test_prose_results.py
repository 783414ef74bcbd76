"""Sentences about measured data and speed: their figures, too, come from the results."""

import pytest
from paper.tests.pages.sentences import LEARNED, ROOT, measured, one, rows, says

from ahop.kernels.network import row_passes
from ahop_paper.pages.markdown import figure, read
from ahop_paper.spread import paired

EMBEDDINGS = ("embeddings-new", "embeddings-new-photo", "embeddings-wide")
OWN = "learned queries, a pattern's own left out"
GAS = (("b-hop", "ridge"), ("b-hop*", "cosine"))


def gaps(data, model):
    """By how much the model is ahead of the best other one, for each split."""
    (row,) = rows("real", data=data, model=model)
    runs = (row["accuracy"]["runs"], row["best_other"]["accuracy"]["runs"])
    return sorted(own - other for own, other in zip(*runs, strict=True))


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


def on_embeddings(model):
    first, second, third = (measured(f"embeddings-{name}", model) for name in ("new", "new-photo", "wide"))
    return f"{first}, {second} and {third}"


def tablets():
    found = {row["model"]: row["accuracy"]["runs"] for row in rows("real", data="tablets")}
    learned, scored = next(
        part["items"] for part in read(ROOT / "results", "real")["done"] if part["data"] == "tablets"
    )
    ours = {model: found.pop(model) for model in (*LEARNED, "b-hop 10")}
    for model in LEARNED:
        ahead = {other: paired(ours[model], theirs, scored / learned)["low"] > 0 for other, theirs in found.items()}
        unsure = {other for other, sure in ahead.items() if not sure}
        assert unsure == {"self-taught projection", "orthogonal projection"}
    best = measured("tablets", "orthogonal projection")
    return (
        "significantly ahead of all others, with labels or without, except for an orthogonal projection with all labels"
        f" ({best})"
    )


def unpaired():
    """What self-learning finds: as a whole, and its turns alone."""
    compared = [row for row in rows("real", model="b-hop*") if row["data"] in EMBEDDINGS]
    assert len(compared) == len(EMBEDDINGS) and all(row["difference"]["high"] < 0 for row in compared)
    whole, turns = on_embeddings("VecMap"), on_embeddings("self-learned rotation")
    return f"needs no pair either and finds {whole}. Its rotations alone find {turns};"


def crowded():
    return (
        f"takes ridge with all labels from {on_embeddings('ridge')} to {on_embeddings('CSLS ridge')}, and with 500"
        f" from {on_embeddings('ridge 500')} to {on_embeddings('CSLS ridge 500')}. Without it ridge is level with"
        f" `b-hop`, and an MLP trained on all labels is ahead ({on_embeddings('residual MLP')})"
    )


def crowd():
    """What is left of CSLS ridge, and of the map of b-hop, by how the crowd is counted."""

    def found(counted, method="ridge"):
        return one("hubness", "accuracy", counted=counted, method=method)

    none, learned, fair = (found(way) for way in ("nothing", "learned queries", OWN))
    assert round(4 * (learned - fair) / (learned - none)) == 1
    ways = ("learned and scored queries", "other patterns")
    more, less = (figure(found(way)) for way in ways)
    labels, without = (
        [figure(found(way, f"b-hop's map{mark}")) for way in ("nothing", "other patterns")] for mark in ("", "*")
    )
    return (
        f"a quarter of what ridge gains is an artefact of the split: {figure(learned)} falls to {figure(fair)} where a"
        f" pattern's own query is left out. Queries that include the scored ones, as a dictionary's do, bring more"
        f" ({more}), and other patterns, which need no queries at all, less ({less}). The straight map of `b-hop`"
        f" gains likewise, from {labels[0]} to {labels[1]} by other patterns and without labels from {without[0]} to"
        f" {without[1]}"
    )


def gas():
    best = [measured("gas", model, f"CSLS {other}") for model, other in GAS]
    ours = [measured("gas", model) for model, _ in GAS]
    ridge, cosine = (measured("gas", model) for model in ("ridge", "centred cosine"))
    return (
        f"{ours[0]} with all labels (ridge {ridge}, CSLS ridge {best[0]}) and {ours[1]} without (centred cosine"
        f" {cosine}, CSLS cosine {best[1]})"
    )


def spectra():
    found = [measured("tablets", name) for name in ("normal variates", "derivatives", "centred L1")]
    return (
        f"normal variates find {found[0]} and derivatives {found[1]}; the best of nine plain distances finds"
        f" {found[2]}; and a projection trained on its own answers (pseudo-labels)"
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
