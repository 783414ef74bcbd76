"""Figures that stand in sentences: they, too, come from the results."""

from pathlib import Path

import pytest

from ahop.paper.pages.markdown import figure, read

ROOT = Path(__file__).parents[3]
BOOSTED = ("xgboost", "lightgbm", "catboost")
LEARNED = ("b-hop*", "b-hop")
TABLES = ("adult", "bank", "vaccine", "purchase", "heart")


def rows(name, **wanted):
    found = read(ROOT / "results", name)["rows"]
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def one(name, what, **wanted):
    (row,) = rows(name, **wanted)
    value = row[what]
    return value["mean"] if isinstance(value, dict) else value


def lead(name, what="accuracy", model="ours"):
    """By how much the model is ahead of the best boosted trees, for each table."""
    best = {data: max(one(name, what, data=data, model=other) for other in BOOSTED) for data in TABLES}
    return {data: round(one(name, what, data=data, model=model) - best[data], 4) for data in TABLES}


def generator():
    found = [
        row["accuracy"]
        for level in (0.4, 0.5)
        for row in rows("generators-synthetic", preset="published", model="m-hop", level=level)
    ]
    ours, papers = (" and ".join(figure(row[what]) for row in found) for what in ("mean", "paper"))
    away = " and ".join(str(row["standard_errors"]) for row in found)
    return f"has {ours} on synthetic patterns and 15 other seeds, where the paper has {papers} ({away} standard errors)"


def leads():
    first, second = (
        {row["model"]: row for row in rows("retrieval-synthetic", setting=f"difficulty {level}")}
        for level in (0.4, 0.5)
    )
    ours = [figure(row["a-hop"]["accuracy"]["mean"] - row["m-hop"]["accuracy"]["mean"]) for row in (first, second)]
    papers = [figure(row["a-hop"]["paper"]["accuracy"] - row["m-hop"]["paper"]["accuracy"]) for row in (first, second)]
    return f"a-hop is {' and '.join(ours)} above m-hop, in the paper {' and '.join(papers)}"


def within_chance():
    """All that the calibrated preset gives lies within two standard errors of the paper."""
    found = [row for data in ("synthetic", "mnist") for row in rows(f"generators-{data}", preset="calibrated")]
    assert len(found) == 8
    assert all(abs(row[what]["standard_errors"]) <= 2 for row in found for what in ("accuracy", "error"))
    return "`--preset calibrated` has all figures of m-hop and u-hop within chance"


def calibration():
    worst = {
        model: max(one("worlds", "calibration_error", world=f"published {level}", model=model) for level in (0.4, 0.5))
        for model in LEARNED
    }
    return f"at most {figure(worst['b-hop'])} with labels and {figure(worst['b-hop*'])} without"


def rejection():
    easy, hard = (
        [one("worlds", "rejection_auroc", world=f"published {difficulty}", model=model) for model in LEARNED]
        for difficulty in (0.4, 0.5)
    )
    (found,) = {figure(value) for value in easy}
    return f"the AUROC is {found} at .4 and at least {figure(min(hard))} at .5"


def few_samples():
    found = [figure(row["fraction_of_oracle"]["mean"]) for row in rows("worlds-128", model="b-hop")]
    return f"`b-hop` still has {' and '.join(found)} of the ceiling"


def soft_readouts():
    hardest = {row["model"]: row for row in rows("retrieval-ladder", setting="difficulty 0.7")}
    said, first = (
        [figure(hardest[model][what]["mean"]) for model in ("b-hop*", "oracle")]
        for what in ("accuracy", "first_choice")
    )
    return f"`b-hop*` has {said[0]} there and the Oracle {said[1]}; by first choices {first[0]} and {first[1]}"


def likelihood():
    easy, hard = rows("likelihood")
    return (
        f"is {easy['fit_ratio']:.0f} times faster than the convex fit of `a-hop` at difficulty .4 and"
        f" {hard['fit_ratio']:.0f} times at .5, and scoring by codes that keep {100 * hard['kept']:.1f} % of first"
        f" choices is {hard['codes_ratio']:.0f} times faster"
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


def sound_tables():
    ahead = lead("tabular-sound")
    assert ahead["adult"] > 0 and ahead["purchase"] > 0 and ahead["heart"] > 0 and ahead["vaccine"] == 0
    return f"level on Vaccine, and {figure(-ahead['bank'], 4)} behind on Bank"


def areas():
    behind = [-value for value in lead("tabular-sound", "auc").values()]
    return f"the best boosted trees keep a lead of {figure(min(behind), 4)} to {figure(max(behind), 4)}"


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


SENTENCES = (
    *(generator, leads, within_chance),
    *(calibration, rejection, few_samples, soft_readouts, likelihood, long_training, scoring, first_use),
    *(sound_tables, areas, papers_tables, papers_a_hop, kernelized, alone),
)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.__name__)
def test_sentences_say_what_the_results_say(sentence):
    text = " ".join((ROOT / "README.md").read_text().split())
    assert sentence() in text
