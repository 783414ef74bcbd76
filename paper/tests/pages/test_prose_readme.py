"""Sentences about README: their figures, too, come from the results."""

import pytest
from paper.tests.pages.sentences import (
    LEARNED,
    ROUNDED,
    accuracies,
    best_metric,
    fair_rows,
    moved,
    on_real_data,
    one,
    percent,
    plain,
    rows,
    says,
    untuned,
)

from ahop_paper.baselines import ALONE

INVERTED = "ridge and inverted softmax"


def changed_embeddings():
    before, after, without = (
        moved("embeddings-new", INVERTED),
        moved("embeddings-new"),
        moved("embeddings-new", labels="0"),
    )
    best = max(one("spaces", "right", **row) for row in fair_rows("embeddings-new"))
    assert best == one("spaces", "right", data="embeddings-new", method=INVERTED)
    theirs = f"{before} by ridge regression with an inverted softmax, from 5,000 pairs"
    return f"| {theirs} | {after} from 5,000 pairs, {without} without a single one |"


def text_models():
    without, ours = moved("text-glove", labels="0"), moved("text-glove")
    ridge, inverted = moved("text-glove", "ridge"), moved("text-glove", INVERTED)
    return (
        f"`b-hop` finds {without} without a single pair and {ours} with 5,000; ridge regression {ridge}, with an"
        f" inverted softmax {inverted}. The other way round, it finds {moved('text-llama', labels='0')} without pairs"
    )


def two_spectrometers():
    before, after = on_real_data("tablets", "b-hop*", "self-taught projection"), on_real_data("tablets", "b-hop*")
    theirs = f"{before} by a projection trained on its own answers (pseudo-labels)"
    (row,) = rows("real", data="tablets", model="b-hop*")
    assert row["difference"]["low"] < 0 < row["difference"]["high"]
    ahead = "ahead on all five splits, but these share most tablets, and the confidence interval still includes zero"
    return f"| {theirs} | {after}, without labels; {ahead} |"


def laboratories():
    tuned = on_real_data("ms2", "b-hop", "tuned weighted cosine 2000")
    entropy = on_real_data("ms2", "b-hop*", "spectral entropy of roots")
    labels, without = (on_real_data("ms2", model) for model in ("b-hop", "b-hop*"))
    return (
        f"| {tuned} by a weighted cosine tuned on 2,000 labels, {entropy} by spectral entropy without | {labels} with"
        f" all labels, significantly ahead; {without} without: on a par |"
    )


def half_destroyed():
    models = ("b-hop*", "b-hop", "a-hop", "m-hop", "oracle")
    ours, labels, adaptive, modern, ceiling = (percent(accuracies([model])[1]) for model in models)
    distance = percent(accuracies(plain(ALONE))[1])
    return (
        f"**{ours}** of 2,048 half-destroyed patterns are found by `b-hop` without labels, and {distance} by the best"
        f" plain metric. With labels, `b-hop` finds {labels} and `a-hop` {adaptive}. `m-hop` finds {modern}; the"
        f" ceiling is {ceiling}"
    )


def old_vectors():
    ours = moved("embeddings-new", labels="0")
    theirs, softmax = (moved("embeddings-new", method) for method in ("ridge", "ridge and inverted softmax"))
    return (
        f"**{ours}** of a new model's queries find their vector among 10,000 old ones, without a single pair; with"
        f" 5,000 pairs, ridge regression finds {theirs}, and {softmax} with an inverted softmax"
    )


def adult():
    ours = one("tabular-sound", "accuracy", data="adult", model="ours")
    (row,) = rows("tabular-sound", data="adult", model="ours")
    trees = row["beside"]["accuracy"]["best_other"]["accuracy"]["mean"]
    return (
        f"**{percent(ours, 2)}** is the accuracy of an ensemble of memories on Adult; the best boosted trees have"
        f" {percent(trees, 2)}."
    )


def ten_million():
    """Beside the faster one of two plain searches."""
    ratios = ("to_dot_product", "to_half_precision")
    many, alone = (
        max(one("scale-cuda", ratio, patterns=10**7, queries=queries) for ratio in ratios) for queries in (1000, 1)
    )
    return (
        f"**{many:.1f} times** the fastest plain dot product with `topk` is what a recall of 1,000 queries from"
        f" 10,000,000 patterns costs on a GPU (2.1 in an earlier run); for a single query it is {alone:.1f} times"
    )


def gas_sensors():
    ours, ridge = (on_real_data("gas", model) for model in ("b-hop", "ridge"))
    best = on_real_data("gas", "b-hop", "CSLS ridge")
    return f"{ours} with labels, {ridge} by ridge regression, {best} by ridge regression with CSLS"


def hubs():
    methods = ("VecMap, own query counted", "b-hop", "VecMap")
    counted, ours, left_out = (moved("embeddings-new", method, "0") for method in methods)
    return (
        f"finds {counted} of the others without a pair, `b-hop` {ours}: counting a pattern's own query helps where that"
        f" item is never asked for again ([how that is counted](docs/results/real-data.md#hubness)); VecMap has"
        f" {left_out} without"
    )


def rounded():
    without, labelled = (percent(untuned("fraction_of_oracle", ROUNDED, model)) for model in LEARNED)
    return (
        f"`b-hop` reaches {labelled} of the ceiling with labels and {without} without; a centred cosine reaches"
        f" {percent(best_metric(ROUNDED))}"
    )


SENTENCES = {
    "README.md": (
        changed_embeddings,
        text_models,
        two_spectrometers,
        laboratories,
        half_destroyed,
        old_vectors,
        adult,
        ten_million,
        gas_sensors,
        hubs,
        rounded,
    ),
}


@pytest.mark.parametrize(
    ("document", "sentence"), [(document, sentence) for document, found in SENTENCES.items() for sentence in found]
)
def test_sentences_say_what_the_results_say(document, sentence):
    assert says(document, sentence())
