"""Sentences about measured data and speed: their figures, too, come from the results."""

import pytest
from paper.tests.pages.sentences import (
    LEARNED,
    ROOT,
    fair_rows,
    moved,
    on_real_data,
    one,
    percent,
    points,
    rows,
    says,
)

from ahop.kernels.network import row_passes
from ahop_paper.pages.markdown import figure, read
from ahop_paper.real_models import MODELS
from ahop_paper.spread import paired

EMBEDDINGS, TEXT = ("embeddings-new", "embeddings-new-photo", "embeddings-wide"), ("text-glove", "text-llama")
INVERTED = "ridge and inverted softmax"
OWN = "learned queries, a pattern's own left out"
WITH_LABELS = ("20 answers checked", "20 labels", "100 labels")
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
    assert all(row["difference"]["low"] < 0 for model in LEARNED for row in rows("real", data="tablets", model=model))
    return (
        f"ahead of the best other in all five, by {points(without[0])} to {points(without[-1])} points without labels"
        f" and by {points(labels[0])} to {points(labels[-1])} with all. But the splits share most of their tablets, so"
        " both intervals are wide and still include zero"
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
    best = on_real_data("tablets", "orthogonal projection")
    return (
        "significantly ahead of all others, with labels or without, except for that projection and an orthogonal"
        f" projection with all labels ({best})"
    )


def without_pairs():
    """What a new model finds with no pair and with all."""
    none, every = ([one("spaces", "right", data=data, method="b-hop", labels=count) for data in EMBEDDINGS]
                   for count in ("0", "all"))  # fmt: skip
    assert all(0 < more - few < 0.01 for few, more in zip(none, every, strict=True))
    assert {row["found"] for row in rows("spaces", method="b-hop")} == {5}
    # As the table rounds them.
    first, second, third = (percent(float(figure(share))) for share in none)
    glove, llama = (moved(data) for data in TEXT)
    return (
        f"Among 10,000 old vectors of images, {first}, {second} and {third} of the 5,000 scored queries find theirs,"
        f" and 5,000 pairs add less than a point. On text they find {moved(TEXT[0], labels='0')} one way and"
        f" {moved(TEXT[1], labels='0')} the other, and 5,000 pairs bring {glove} and {llama}. Every fit found its map"
    )


def self_learning():
    """VecMap without pairs and with some, a pattern's own query counted and not."""
    other = "VecMap, own query counted"
    new, photos = ([moved(data, other, "0"), moved(data, labels="0")] for data in EMBEDDINGS[:2])
    gaps = [difference("right", data, other, "0") for data in EMBEDDINGS[:2]]
    assert gaps[0]["low"] < 0 < gaps[0]["high"] and gaps[1]["high"] < 0
    assert all(moved_less(data) for data in (*EMBEDDINGS, *TEXT))
    fair = [moved(data, "VecMap", "0") for data in EMBEDDINGS[:2]]
    texts = {
        labels: [right for data in TEXT for right in one_row(data, "VecMap", labels)["right"]["runs"]]
        for labels in ("0", "10", "100")
    }
    assert {labels: sum(right > 0.1 for right in found) for labels, found in texts.items()} == {
        "0": 3, "10": 8, "100": 10
    }  # fmt: skip
    theirs, ours = ([moved(data, method, "100") for data in TEXT] for method in ("VecMap", "b-hop"))
    return (
        f"it finds {new[0]} on `embeddings, new`, where `b-hop` finds {new[1]}, not significantly less, and "
        f"{photos[0]} on the new photos, where `b-hop` finds {photos[1]}, which is less. With the own query left out it"
        f" finds {fair[0]} and {fair[1]}, less than `b-hop` on every set. Between the text models it found the map in"
        " three fits of ten without pairs, in eight with ten pairs and in all with 100, with which it finds"
        f" {theirs[0]} and {theirs[1]} where `b-hop` finds {ours[0]} and {ours[1]}"
    )


def moved_less(data):
    """Whether VecMap without own queries finds less than ours does without pairs."""
    return one("spaces", "right", data=data, method="VecMap", labels="0") < one(
        "spaces", "right", data=data, method="b-hop", labels="0"
    )


def own_query():
    counted, fair = (moved("embeddings-new", f"{INVERTED}{also}") for also in (", own query counted", ""))
    return f"has {counted} from all pairs with a pattern's own query counted, and {fair} without"


def difference(what, data, method, labels="all"):
    """Ours less another method on the same splits."""
    ours, theirs = (one_row(data, name, labels)[what]["runs"] for name in ("b-hop", method))
    return paired(ours, theirs, ratio=1.0)


def one_row(data, method, labels):
    (row,) = rows("spaces", data=data, method=method, labels=labels)
    return row


def lead(data, labels):
    """By how much ours is ahead of the best other with as many pairs."""
    best = max(fair_rows(data, labels), key=lambda row: one("spaces", "right", **row))
    return difference("right", data, best["method"], labels)


def ahead_of_all():
    """By how much ours is ahead with any number of pairs: on text far, on images on one set of three."""
    for labels in ("0", "10", "100", "500", "all"):
        gaps = {data: lead(data, labels) for data in (*EMBEDDINGS, *TEXT)}
        assert all(gap["mean"] > 0 for gap in gaps.values())
        assert [data for data in EMBEDDINGS if gaps[data]["low"] > 0] == ["embeddings-wide"]
        assert all(round(gaps[data]["mean"], 2) <= 0.01 for data in EMBEDDINGS)
    first, second = (points(gaps[data]["mean"]) for data in TEXT)
    return f"`b-hop` is far ahead in first choices, by {first} and {second} points with all pairs"


def beside_a_re_index():
    what, behind = "recall@10", {}
    for data in (*EMBEDDINGS, *TEXT):
        images = data in EMBEDDINGS
        found = {count: one_row(data, "b-hop", count)[what]["mean"] for count in ("0", "5", "10", "100", "500", "all")}
        assert max(found.values()) < (0.53 if images else 0.4)
        assert found["0"] > found["all"] or data in TEXT
        for count in ("0", "10", "100", "500", "all"):
            best = max(fair_rows(data, count), key=lambda row: one("spaces", what, **row))
            theirs = one("spaces", what, **best)
            if theirs > found[count]:
                behind[data, count] = percent(theirs), percent(found[count])
        adapter = one_row(data, "b-hop", "all")[f"adapter {what}"]["mean"]
        assert 0 <= adapter - one_row(data, "ridge", "all")[what]["mean"] < 0.04
    assert list(behind) == [("text-glove", "100"), ("text-glove", "500")]
    (theirs, ours), (theirs_more, ours_more) = behind.values()
    without, labels = (moved("embeddings-new", labels=count, what=what) for count in ("0", "all"))
    order = [figure(one_row(data, "b-hop", count)["nDCG@10"]["mean"]) for data, count in behind]
    (theirs_order,) = {figure(one_row(data, "VecMap", count)["nDCG@10"]["mean"]) for data, count in behind}
    return (
        f"VecMap has a recall of {theirs.removesuffix(' %')} and {theirs_more}, `b-hop` of {ours.removesuffix(' %')}"
        f" and {ours_more}, in a better order (nDCG@10 of {' and '.join(order)} to {theirs_order}). On images the fits"
        f" *without* pairs have most ({without} on `embeddings, new`, and {labels} with all pairs)"
    )


def certainty(way):
    """Of each data set, how much surer than right fits are on average."""
    return {row["data"]: row["sure"] - row["right"] for row in rows("trust", way=way)}


def how_sure():
    """Where fits with labels or answers are too sure."""
    surest = {}
    for way in WITH_LABELS:
        gaps = certainty(way)
        name = max(gaps, key=gaps.get)
        surest[name] = points(gaps[name]).removeprefix("0")
    assert list(surest) == ["log-normal gains", "text models", "gas"]
    answers, few, many = surest.values()
    return (
        f"by {answers} points at most after twenty checked answers (gains), {few} with twenty labels (text models) and"
        f" {many} with a hundred (gas)"
    )


def how_modest():
    after, few, many = ({name: points(-gap, 0) for name, gap in certainty(way).items()} for way in WITH_LABELS)
    assert max(few, key=lambda name: float(few[name])) == "raw spectra"
    return (
        f"raw spectra by {few['raw spectra']} points with twenty labels, tablets by {few['tablets']}; MS2 by"
        f" {after['MS2']} points after twenty answers and by {many['MS2']} with a hundred labels"
    )


def intervals_hold():
    def share(way):
        found = rows("trust", way=way)
        return " of ".join(str(sum(row[what] for row in found)) for what in ("interval holds", "fits"))

    after, few, many = map(share, WITH_LABELS)
    return f"{few} fits with twenty labels, in {many} with a hundred, and in {after} after twenty answers"


def unrelated():
    (row,) = rows("unrelated", data="all")
    assert row["found"] == 0
    return (
        f"Of {row['sets']} unrelated sets (ten distributions and six kinds of pairs of spaces; 50 to 2,000 patterns of"
        " 2 to 200 values; `python benchmarks/unrelated.py`), none was called found; at 90 % confidence that is at most"
        f" {percent(row['high'])} of such sets"
    )


def hubness():
    """What is left of CSLS ridge, and of the map of b-hop, by how hubness is measured."""

    def found(counted, method="ridge"):
        return one("hubness", "accuracy", counted=counted, method=method)

    none, learned, fair = (found(way) for way in ("nothing", "learned queries", OWN))
    assert round(4 * (learned - fair) / (learned - none)) == 1
    ways = ("learned and scored queries", "other patterns")
    more, less = (percent(found(way)) for way in ways)
    labels, without = (
        [percent(found(way, f"b-hop's map{mark}")) for way in ("nothing", "other patterns")] for mark in ("", "*")
    )
    return (
        f"a quarter of what ridge gains is an artefact of the split: {percent(learned)} falls to {percent(fair)} where"
        f" a pattern's own query is left out. Queries that include the scored ones, as a dictionary's do, bring more"
        f" ({more}), and other patterns, which need no queries at all, less ({less}). The straight map of `b-hop`"
        f" gains likewise, from {labels[0]} to {labels[1]} by other patterns and without labels from {without[0]} to"
        f" {without[1]}"
    )


def gas():
    best = [on_real_data("gas", model, f"CSLS {other}") for model, other in GAS]
    ours = [on_real_data("gas", model) for model, _ in GAS]
    ridge, cosine = (on_real_data("gas", model) for model in ("ridge", "centred cosine"))
    return (
        f"{ours[0]} with all labels (ridge {ridge}, CSLS ridge {best[0]}) and {ours[1]} without (centred cosine"
        f" {cosine}, CSLS cosine {best[1]})"
    )


def spectra():
    found = [on_real_data("tablets", name) for name in ("normal variates", "derivatives", "centred L1")]
    return (
        f"normal variates find {found[0]} and derivatives {found[1]}; the best of nine plain distances finds"
        f" {found[2]}; and a projection trained on its own answers (pseudo-labels) finds"
        f" {on_real_data('tablets', 'self-taught projection')}"
    )


def unsure(data, model):
    """The methods with no more labels that a model of ours is not significantly ahead of."""
    parts = read(ROOT / "results", "real")["done"]
    learned, scored = next(part["items"] for part in parts if part["data"] == data)
    found = {row["model"]: row["accuracy"]["runs"] for row in rows("real", data=data)}
    others = {name for name in found if not MODELS[name].ours and MODELS[name].labels <= MODELS[model].labels}
    return {name for name in others if paired(found[model], found[name], scored / learned)["low"] <= 0}


def places():
    assert not unsure("wifi", "b-hop*") and unsure("wifi", "b-hop 500") == {"CSLS ridge 500"}
    few, ten, every = (
        f"{on_real_data('wifi', model)} and {other}"
        for model, other in (
            ("b-hop 500", on_real_data("wifi", "CSLS ridge 500")),
            ("b-hop 10", on_real_data("wifi", "b-hop 10", "CSLS cosine")),
            ("b-hop", on_real_data("wifi", "b-hop", "CSLS ridge")),
        )
    )
    assert "CSLS cosine" in unsure("wifi", "b-hop 10") and "CSLS ridge" in unsure("wifi", "b-hop")
    return (
        f"With 500 it is significantly ahead of all but CSLS ridge ({few}). With ten labels and with all of them, its"
        f" lead over the best other ({ten}; {every}) is not significant"
    )


def laboratories():
    assert unsure("ms2", "b-hop*") == {"spectral entropy of roots"} and not unsure("ms2", "b-hop")
    without, entropy = on_real_data("ms2", "b-hop*"), on_real_data("ms2", "b-hop*", "spectral entropy of roots")
    tuned = on_real_data("ms2", "b-hop", "tuned weighted cosine 2000")
    return (
        f"the field's own measure ({without} and {entropy}). With all labels it has {on_real_data('ms2', 'b-hop')} and"
        " is significantly ahead of every other method; the best is a weighted cosine tuned on 2,000 labels"
        f" ({tuned})"
    )


def shortfall():
    plain = {model: rows("real", data="gas", model=model)[0]["plain"]["difference"] for model in LEARNED}
    assert -0.05 < plain["b-hop*"]["mean"] < 0 and plain["b-hop"]["mean"] < -0.02
    without, labels = (points(-plain[model]["mean"]) for model in LEARNED)
    return (
        f"`b-hop` has on average {without} points less than the best plain metric without labels, and {labels} less"
        " than ridge regression with all"
    )


def matched():
    many, once = rows("match")
    assert many["right"] == once["right"] == 1 and once["one_to_one"] and not many["one_to_one"]
    most = [f"{row['peak_mebibytes'] / 1024:.1f} GiB" for row in (many, once)]
    return (
        f"{many['incoming']:,} rows of {many['columns']} columns against {many['stored']:,} stored ones took {most[0]}"
        f" of memory at most, and {once['incoming']:,} against {once['stored']:,} one to one {most[1]}"
    )


SENTENCES = {
    "docs/guides/two-files.md": (matched,),
    "docs/results/real-data.md": (
        splits,
        tablets,
        places,
        laboratories,
        without_pairs,
        self_learning,
        own_query,
        ahead_of_all,
        beside_a_re_index,
        shortfall,
        hubness,
        gas,
        spectra,
    ),
    "docs/results/trust.md": (
        unrelated,
        how_sure,
        how_modest,
        intervals_hold,
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
