"""Sentences about README: their figures, too, come from the results."""

import pytest
from tests.paper.pages.sentences import (
    LEARNED,
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
from ahop.paper.pages.markdown import figure


def changed_embeddings():
    before, after = measured("embeddings-new", "b-hop*", "self-learned rotation"), measured("embeddings-new", "b-hop*")
    return f"| {before} by self-learning of dictionaries, in part | {after}, without one pair |"


def enough_pairs():
    return f"ridge regression finds more on embeddings ({measured('embeddings-new', 'ridge')})"


def two_spectrometers():
    before, after = measured("tablets", "b-hop*", "self-taught projection"), measured("tablets", "b-hop*")
    theirs = f"{before} by a projection that takes its own answers as labels"
    return f"| {theirs} | {after}, without labels; ahead on all five splits |"


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
    turns = measured("embeddings-new", "self-learned rotation")
    return (
        f"**{ours}** of old vectors are found by queries of a new model, without a pair, {turns} by the turns of"
        f" self-learning alone, {best} by the best distance"
    )


def adult():
    ours = one("tabular-sound", "accuracy", data="adult", model="ours")
    (row,) = rows("tabular-sound", data="adult", model="ours")
    trees = row["beside"]["accuracy"]["best_other"]["accuracy"]["mean"]
    return (
        f"**{figure(ours, 4)}** accuracy on Adult by a vote of memories, {figure(trees, 4)} by the best boosted trees"
    )


def ten_million():
    """Beside the faster one of two plain searches."""
    ratios = ("to_dot_product", "to_half_precision")
    many, alone = (
        max(one("scale-cuda", ratio, patterns=10**7, queries=queries) for ratio in ratios) for queries in (1000, 1)
    )
    return (
        f"**{many:.1f} times** the best plain dot product with `topk`: that is what a recall of 1,000 queries from"
        f" 10,000,000 patterns costs on a GPU. One query costs {alone:.1f} times as much"
    )


def gas_sensors():
    return f"not ahead: {measured('gas', 'b-hop')} with labels, {measured('gas', 'b-hop', 'ridge')} by ridge regression"


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
