import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from ahop import STRANGER
from ahop.linkage.alternatives import NEAREST, RIDGE, alternatives, beside_answers, nearest

DRAW = np.random.default_rng(0)


def named(found):
    return {one.name: one for one in found}


def test_the_nearest_has_the_largest_cosine():
    patterns, queries = torch.randn(50, 4), torch.randn(20, 4)
    wanted = torch.cosine_similarity(queries[:, None], patterns[None], dim=-1).argmax(1)
    assert nearest(patterns, queries).equal(wanted)


def test_a_regression_finds_what_was_turned_and_the_nearest_does_not():
    stored = DRAW.normal(size=(60, 5))
    turned = stored @ np.linalg.qr(DRAW.normal(size=(5, 5)))[0]
    origins = torch.arange(60)
    found = named(alternatives(stored, turned, origins, origins, shared=True))
    assert found[RIDGE].accuracy == 1 and found[NEAREST].accuracy < 0.5
    assert found[RIDGE].labels == found[NEAREST].labels == 60


def test_a_regression_is_judged_by_stored_rows_that_it_did_not_learn_from():
    # More columns than pairs: whatever was learned from is found again, and nothing else is.
    stored, noise, origins = DRAW.normal(size=(40, 80)), DRAW.normal(size=(80, 80)), torch.arange(40).repeat(2)
    found = named(alternatives(stored, noise, origins, origins, shared=False))
    assert list(found) == [RIDGE] and found[RIDGE].labels == 80 and found[RIDGE].accuracy < 0.15


def test_units_of_columns_change_nothing():
    stored = DRAW.normal(size=(60, 5))
    asked, origins = stored + 0.3 * DRAW.normal(size=(60, 5)), torch.arange(60)
    scale, shift = np.array([1, 1e3, 1e-3, 5, 2]), np.arange(5)
    plain = alternatives(stored, asked, origins, origins, shared=True)
    assert alternatives(stored * scale, asked * scale + shift, origins, origins, shared=True) == plain


def test_too_few_pairs_teach_no_regression():
    stored, origins = DRAW.normal(size=(30, 3)), torch.full((30,), -1)
    origins[:9] = torch.arange(9)
    assert list(named(alternatives(stored, stored, origins, origins, shared=True))) == [NEAREST]
    assert alternatives(stored, stored, origins, origins, shared=False) == ()


def test_rows_that_are_known_to_be_none_of_the_stored_ones_are_no_disagreement():
    stored, origins = DRAW.normal(size=(30, 3)), torch.full((30,), -1)
    first = torch.arange(30)
    origins[10:], first[10:] = STRANGER, -1
    (found,) = alternatives(stored, stored, origins, first, shared=True)
    assert found.agreement == 1
    assert alternatives(stored, stored, torch.full((30,), STRANGER), torch.full((30,), -1), shared=True) == ()


def test_where_nothing_was_found_there_is_nothing_to_agree_with_and_pairs_still_judge():
    stored, origins = DRAW.normal(size=(30, 3)), torch.full((30,), -1)
    assert alternatives(stored, stored, origins, None, shared=True) == ()
    origins[:9] = torch.arange(9)
    (found,) = alternatives(stored, stored, origins, None, shared=True)
    assert (found.right, found.labels) == (9, 9)


def test_answers_compare_row_by_row_and_tell_no_more_than_they_can():
    """The nearest row finds all of 25; matches that miss four of them may be as good, and those that miss seven not."""
    stored, origins = DRAW.normal(size=(30, 5)), torch.full((30,), -1)
    checked = torch.arange(30).index_fill(0, torch.arange(25, 30), -1)
    for missed, behind in ((0, 0), (4, 0), (7, -1)):
        (found,) = beside_answers(stored, stored + 1, origins, checked, torch.arange(25) >= missed, shared=True)
        assert (found.name, found.right, found.labels, found.behind) == (NEAREST, 25, 25, behind)
    (lost,) = beside_answers(stored, stored[::-1], origins, checked, torch.ones(25, dtype=torch.bool), shared=True)
    assert lost.right < 5 and lost.behind == 1


def test_a_column_that_no_incoming_row_has_tells_nothing_and_warns_of_nothing():
    stored, origins = DRAW.normal(size=(30, 5)), torch.arange(30)
    incoming = stored.copy()
    incoming[:, 2] = np.nan
    found = alternatives(stored, incoming, origins, None, shared=True)
    assert [one.name for one in found] == [NEAREST, RIDGE] and min(one.right for one in found) > 20


def test_two_answers_tell_nothing_however_alike_they_are():
    stored, checked = DRAW.normal(size=(30, 5)), torch.full((30,), -1)
    checked[:2] = torch.arange(2)
    right = torch.zeros(2, dtype=torch.bool)
    (found,) = beside_answers(stored, stored, torch.full((30,), -1), checked, right, shared=True)
    assert found.right == 2 and found.behind == 0


def test_a_row_that_is_none_of_the_stored_ones_is_never_right_by_what_always_answers():
    stored = DRAW.normal(size=(30, 5))
    checked = torch.arange(30).index_fill(0, torch.arange(10), STRANGER)
    (found,) = beside_answers(stored, stored, torch.full((30,), -1), checked, torch.ones(30).bool(), shared=True)
    assert found.right == 20 and found.behind == 1


def test_a_regression_that_answers_judge_has_learned_from_pairs_alone():
    stored = DRAW.normal(size=(60, 5))
    turned = stored @ np.linalg.qr(DRAW.normal(size=(5, 5)))[0]
    origins, checked, right = torch.full((60,), -1), torch.full((60,), -1), torch.ones(30).bool()
    checked[30:] = torch.arange(30, 60)
    assert beside_answers(stored, turned, origins, checked, right, shared=False) == ()
    origins[:30] = torch.arange(30)
    (found,) = beside_answers(stored, turned, origins, checked, right, shared=False)
    assert (found.name, found.right, found.labels, found.behind) == (RIDGE, 30, 30, 0)


def test_one_to_one_they_give_each_stored_row_away_once_as_the_memory_does():
    draw = np.random.default_rng(1)
    stored = draw.normal(size=(80, 4))
    noisy = stored + 0.3 * draw.normal(size=stored.shape)
    origins, nobody, spread = torch.arange(80), torch.full((80,), -1), stored.std(0)
    patterns, queries = (torch.from_numpy((rows - rows.mean(0)) / spread) for rows in (stored, noisy))
    cosines = torch.cosine_similarity(queries[:, None], patterns, dim=-1)
    best = torch.from_numpy(linear_sum_assignment(cosines.numpy(), maximize=True)[1])
    how = {"shared": True, "one_to_one": True}
    (found,) = alternatives(stored, noisy, nobody, best, **how)
    assert found.agreement == 1 and found.name == f"{NEAREST}, one to one"
    together = named(alternatives(stored, noisy, origins, None, **how))
    apart = named(alternatives(stored, noisy, origins, None, shared=True))
    assert together[f"{NEAREST}, one to one"].right == int((best == origins).sum()) > apart[NEAREST].right
    assert together[f"{RIDGE}, one to one"].right > apart[RIDGE].right


def test_one_to_one_known_strangers_take_no_stored_row_from_others():
    draw = np.random.default_rng(2)
    stored = draw.normal(size=(40, 6))
    noisy, strangers = (stored + spread * draw.normal(size=stored.shape) for spread in (0.5, 0.4))
    origins = torch.arange(40)
    alone = alternatives(stored, noisy, origins, None, shared=True, one_to_one=True)
    both = np.concatenate([noisy, strangers + noisy.mean(0) - strangers.mean(0)])
    among = alternatives(
        stored, both, torch.cat([origins, torch.full((40,), STRANGER)]), None, shared=True, one_to_one=True
    )
    assert [one.right for one in among] == [one.right for one in alone] and among[0].right > 20


def test_who_is_left_out_where_there_is_no_room_is_taken_for_a_stranger():
    stored = 3 * np.eye(5)
    incoming = np.concatenate([stored, -stored[:3] + 1])
    checked = torch.cat([torch.arange(5), torch.full((3,), STRANGER)])
    (found,) = beside_answers(
        stored, incoming, torch.full((8,), -1), checked, torch.ones(8, dtype=torch.bool), shared=True, one_to_one=True
    )
    assert found.right == 8


def test_of_too_many_rows_to_share_each_is_matched_by_itself(monkeypatch):
    monkeypatch.setattr("ahop.linkage.alternatives._MAX_ASSIGNED_PAIRS", 80 * 80 - 1)
    stored = DRAW.normal(size=(80, 4))
    plain = alternatives(stored, stored, torch.arange(80), None, shared=True, one_to_one=True)
    assert [one.name for one in plain] == [NEAREST, RIDGE]
