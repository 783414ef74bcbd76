"""Sentences about README: their figures, too, come from the results."""

import pytest
from tests.paper.pages.sentences import (
    LEARNED,
    ROOT,
    ROUNDED,
    accuracies,
    best_metric,
    measured,
    one,
    plain,
    rows,
    says,
    untuned,
)

from ahop.paper.baselines import ALONE, METRICS
from ahop.paper.pages.markdown import figure, read
from ahop.paper.pages.tables.speed import scale_speed


def changed_embeddings():
    before, after = measured("embeddings-new", "b-hop*", "self-learned rotation"), measured("embeddings-new", "b-hop*")
    (interval,) = [row["difference"] for row in rows("real", data="embeddings-new", model="b-hop*")]
    assert interval["low"] < 0 < interval["high"]
    return f"| {before} by self-learning of dictionaries | {after}, without one pair: level |"


def enough_pairs():
    return f"ridge regression is as good on embeddings ({measured('embeddings-new', 'ridge')})"


def two_spectrometers():
    before, after = measured("tablets", "b-hop*", "self-taught projection"), measured("tablets", "b-hop*")
    return f"| {before} by a projection that its own answers teach | {after}, without labels |"


def laboratories():
    before, after = measured("ms2", "b-hop", "spectral entropy of roots"), measured("ms2", "b-hop")
    return f"| {before} by spectral entropy | {after}, with labels ({measured('ms2', 'b-hop*')} without: level) |"


def half_destroyed():
    ours, modern, ceiling = (figure(accuracies([model])[1]) for model in ("b-hop", "m-hop", "oracle"))
    distance = figure(accuracies(plain(ALONE))[1])
    found = f"**{ours}** of 2,048 half-destroyed patterns are found by `b-hop`, {distance} by the best distance"
    return f"{found} without labels, {modern} by `m-hop`; the ceiling is {ceiling}"


def old_vectors():
    best = max((measured("embeddings-new", model) for model in METRICS), key=float)
    ours = measured("embeddings-new", "b-hop*")
    return f"**{ours}** of old vectors are found by queries of a new model, without a pair, {best} by the best distance"


def adult():
    ours = one("tabular-sound", "accuracy", data="adult", model="ours")
    (row,) = rows("tabular-sound", data="adult", model="ours")
    trees = row["beside"]["accuracy"]["best_other"]["accuracy"]["mean"]
    return (
        f"**{figure(ours, 4)}** accuracy on Adult by a vote of memories, {figure(trees, 4)} by the best boosted trees"
    )


def ten_million():
    lines = scale_speed(*(read(ROOT / "results", f"scale-{at}") for at in ("cuda", "cpu"))).lines
    many, alone = (
        next(line[1:3] for line in lines if line[0] == f"H200, 10,000,000 patterns, {asked}")
        for asked in ("1,000 queries", "one query")
    )
    return (
        f"**{many[0]} times** the cost of PyTorch's dot product with `topk` is what a recall of 1,000 queries from"
        f" 10,000,000 patterns costs on a GPU, and {many[1]} times that of one in half precision and in parts; one"
        f" query {alone[0]} and {alone[1]} times"
    )


def gas_sensors():
    return f"behind ridge regression with labels ({measured('gas', 'b-hop')} and {measured('gas', 'b-hop', 'ridge')})"


def too_sure():
    (row,) = rows("real", data="wifi", model="b-hop*")
    sure, right = (figure(row[what]["mean"], 2) for what in ("confidence", "accuracy"))
    return f"{sure} sure and {right} right on Wi-Fi"


def rounded():
    without, labelled = (figure(untuned("fraction_of_oracle", ROUNDED, model)) for model in LEARNED)
    return (
        f"`b-hop` has {labelled} of the ceiling, without labels {without}; a centred cosine has"
        f" {figure(best_metric(ROUNDED))}"
    )


SENTENCES = {
    "README.md": (
        changed_embeddings,
        enough_pairs,
        two_spectrometers,
        laboratories,
        half_destroyed,
        old_vectors,
        adult,
        ten_million,
        gas_sensors,
        too_sure,
        rounded,
    ),
}


@pytest.mark.parametrize(
    ("document", "sentence"), [(document, sentence) for document, found in SENTENCES.items() for sentence in found]
)
def test_sentences_say_what_the_results_say(document, sentence):
    assert says(document, sentence())
