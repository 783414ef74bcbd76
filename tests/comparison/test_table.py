import math

import pytest
import torch
from scipy.stats import binom

from ahop.comparison import Comparison, Row, mcnemar
from ahop.learning.report import clopper_pearson

PLACES = torch.arange(200)


def compared(*right, patterns=50):
    """A comparison of rows that have the first so many of 200 queries right."""
    return Comparison(tuple(Row(f"row {count}", count > PLACES) for count in right), patterns)


def test_a_row_has_the_share_of_right_answers_and_its_exact_interval():
    row = compared(150).rows[0]
    assert row.accuracy == 0.75 and row.interval == clopper_pearson(150, 200)
    assert math.isnan(Row("hop", note="binary").accuracy) and all(map(math.isnan, Row("hop").interval))


def test_mcnemars_test_counts_only_what_one_alone_has_right():
    some, others = torch.zeros(2, 100, dtype=torch.bool)
    some[:30], others[2:40] = True, True
    # Two of twelve, or as far from half on the other side.
    assert mcnemar(some, others) == pytest.approx(2 * binom.cdf(2, 12, 0.5))
    assert mcnemar(some, others) == mcnemar(others, some) and mcnemar(some, some) == 1


def test_the_first_that_is_within_chance_of_the_best_is_the_one_to_use():
    assert compared(100, 152, 154).verdict == "row 152 is as good as row 154 (McNemar's test, p = 0.50): use it"
    assert compared(100, 154, 120).verdict.startswith("use row 154: nothing above it is as good")
    assert compared(154, 154).best.name == "row 154"
    assert compared(154, 154, 100).verdict == "use row 154: nothing is better"


def test_nothing_is_recommended_that_is_no_better_than_chance():
    assert compared(3, 5, patterns=50).verdict == "nothing is better than chance here"


def test_a_row_without_answers_says_why_and_is_never_the_best():
    found = Comparison((Row("hop", note="patterns must be -1 or +1"), *compared(120).rows), 50)
    assert found.best.name == "row 120" and [row.name for row in found.judged] == ["row 120"]
    lines = str(found).splitlines()
    assert lines[1] == "hop      patterns must be -1 or +1" and lines[2].startswith("row 120   60 %  54 to 66 ")
    assert lines[-2].startswith("200 queries, each held out once") and lines[-1] == found.verdict


def test_a_frame_has_the_same_numbers():
    frame = Comparison((Row("hop", note="binary"), Row("b-hop", PLACES < 150, 0.8, 0.05, 1.5)), 50).to_pandas()
    assert frame.loc["b-hop", ["accuracy", "confidence", "calibration error", "seconds"]].tolist() == [
        *(0.75, 0.8, 0.05, 1.5)
    ]
    assert frame.loc["hop", "note"] == "binary" and frame.loc["hop"].isna().sum() == 6
