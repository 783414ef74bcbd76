import numpy as np
from scipy import stats

from ahop_paper.spread import beside, paired


def test_a_paired_interval_is_the_t_test_s_where_splits_share_nothing():
    ours, theirs = [0.7, 0.75, 0.9, 0.8], [0.6, 0.7, 0.7, 0.75]
    low, high = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    found = paired(ours, theirs, ratio=0)
    assert (found["mean"], found["low"], found["high"]) == (0.1, round(low, 4), round(high, 4))
    shared = paired(ours, theirs, ratio=1)
    assert shared["low"] < found["low"] < found["high"] < shared["high"]
    assert paired([0.5], [0.25], ratio=1) == {"mean": 0.25, "low": None, "high": None}


def test_a_paired_interval_covers_the_truth_though_splits_share_items():
    """Two models that are right on unlike items and no better than each other, as often as the interval promises."""
    generator = np.random.default_rng(0)
    missed = 0
    for _ in range(300):
        ours, theirs = generator.random((2, 100)) < 0.5
        halves = [generator.permutation(100)[:50] for _ in range(5)]
        found = paired([ours[half].mean() for half in halves], [theirs[half].mean() for half in halves], 1.0)
        missed += not found["low"] <= 0 <= found["high"]
    assert missed / 300 <= 0.08


def test_ahead_is_who_can_be_told_from_every_other():
    """The best other by a hair is steadily below; the next one is not."""
    own = dict(enumerate([0.70, 0.72, 0.68]))
    steady = {split: value - 0.05 for split, value in own.items()}
    unsteady = dict(enumerate([0.44, 0.84, 0.66]))
    alone, both = beside("auc", own, {"steady": steady}, 0.1), beside("auc", own, {"a": steady, "b": unsteady}, 0.1)
    assert alone["difference"]["low"] > 0 and alone["ahead"]
    assert both["best_other"]["model"] == "a" and both["difference"] == alone["difference"] and not both["ahead"]
    assert not beside("auc", {0: 0.9}, {"a": {0: 0.1}}, 1.0)["ahead"], "one split has no interval"
