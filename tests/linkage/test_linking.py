import copy
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.linkage.data import tables

import ahop
from ahop import BayesianHopfield, linkage
from ahop.learning.report import FitReport
from ahop.linkage import holdout
from ahop.linkage.answers import answers
from ahop.linkage.linking import NOTHING
from ahop.memories.checking import Certificate
from ahop.similarity.families import null
from ahop.tables import Table


def judged(right, labels):
    return holdout.Labels(torch.full((labels,), 0.7), torch.arange(labels) < right)


def test_matches_are_found_by_id(found):
    _, _, origins = tables()
    table = found.table()
    assert table["id"] == [f"o{row}" for row in range(30)]
    assert table["match"] == [f"{row:03}" for row in origins]
    assert table["reason"] == [""] * 30 and None not in table["second"]


def test_a_known_pair_is_its_own_answer_whatever_the_memory_would_say(taught):
    _, _, origins = tables()
    table = taught.table()
    assert table["reason"] == ["known pair"] * 30 and table["probability"] == [1.0] * 30
    assert table["second"] == [None] * 30
    wrong = torch.full((30,), -1)
    wrong[0] = 5
    kept, *_ = answers(taught.memory, torch.from_numpy(taught.incoming.values).float(), wrong, False)
    assert kept.tolist() == [5, *origins[1:]]


@pytest.mark.slow
def test_known_pairs_judge_where_values_are_missing():
    stored, incoming, origins = tables()
    known = torch.from_numpy(origins).clone()
    known[24:] = -1
    incoming.values[29, 0] = np.nan
    found = linkage.link(stored, incoming, known, verbose=False)
    assert found.indices.tolist() == origins.tolist() and found.evidence.labels == 24
    assert dict(linkage.lines(found))["rests on"] == "24 known pairs, held out while learning"


def test_pairs_that_judge_are_hidden_from_the_fit_and_each_judges_once(monkeypatch):
    patterns, told = torch.rand(20, 3), []

    class Recorded(BayesianHopfield, abstract=True):
        def fit(self, queries, origins, **options):
            told.append(origins)
            return self

        def recall(self, queries, *k, **options):
            judged.append(queries[:, 0].tolist())
            return super().recall(queries, *k, **options)

    judged = []
    monkeypatch.setattr(holdout, "BayesianHopfield", Recorded)
    origins = torch.tensor([0, 0, 1, 2, 3, -1, 4])
    how = {"one_to_one": False, "observed": None, "standardise": False, "seed": 0, "verbose": False}
    found = holdout.held_out(patterns, patterns[origins], origins, **how)
    assert len(found.right) == len(found.probabilities) == 6
    values = patterns[origins][:, 0]
    for known, asked in zip(told, judged, strict=True):
        hidden = (known < 0) & (origins >= 0)
        assert sorted(asked) == sorted(values[hidden].tolist())
        assert not set(origins[hidden].tolist()) & set(known[known >= 0].tolist())


def test_strangers_are_refused_and_say_why(found):
    _, incoming, _ = tables()
    values = incoming.values.copy()
    values[3] = np.random.default_rng(5).normal(size=5)
    told = linkage.link(found.model, replace(incoming, values=values), reject=0.05)
    table = told.table()
    assert told.strangers[3] and table["match"][3] is None and table["probability"][3] == 0
    assert table["reason"][3].startswith("stranger")
    low, high = (f"{100 * end:.0f}" for end in told.memory.similarity.refusal(0.05).kept)
    kept = f"of genuine rows, {low} to {high} % are kept (90 % confidence interval)"
    assert dict(linkage.lines(told))["strangers"] == f"1 of 30 rows; {kept}" and 80 < int(low) < 95 <= int(high)
    assert dict(linkage.lines(found))["strangers"] == (
        "not looked for: --reject 0.05 refuses rows that are less familiar than 95 % of genuine ones"
    )
    few = dict(linkage.lines(linkage.link(found.model, incoming, reject=0.01)))
    assert few["strangers"].startswith("none can be told: too few rows were learned from to refuse 1 %")


def test_a_row_with_missing_values_is_matched_by_the_others(found):
    _, incoming, origins = tables()
    values = incoming.values.copy()
    values[0, 1] = np.nan
    told = linkage.link(found.model, replace(incoming, values=values))
    assert told.indices.tolist() == origins.tolist()


def test_values_far_from_zero_keep_their_digits():
    stored, incoming, origins = tables()
    far = 1e9
    stored, incoming = (replace(table, values=table.values + far) for table in (stored, incoming))
    known = torch.from_numpy(origins)
    found = linkage.link(stored, incoming, known, verbose=False)
    assert found.memory.patterns.dtype == torch.float64
    assert found.memory.report.accuracy > 0.9


@pytest.mark.parametrize("names", ["abcde", "vwxyzu"])
def test_columns_have_units_of_their_own_where_both_tables_have_them(monkeypatch, names):
    """Two spaces have none in common: a map between them takes the values as they are."""
    told = []

    def fit(self, queries, origins, **options):
        told.append(options["standardise"])
        raise StopIteration

    monkeypatch.setattr(BayesianHopfield, "fit", fit)
    draw = np.random.default_rng(0)
    stored = Table.of({name: 10**place * draw.normal(size=30) for place, name in enumerate("abcde")})
    incoming = Table.of({name: 10**place * draw.normal(size=9) for place, name in enumerate(names)})
    with pytest.raises(StopIteration):
        linkage.link(stored, incoming, verbose=False)
    assert told == [names == "abcde"]


def test_plain_alternatives_are_judged_by_the_same_pairs_and_preferred_where_they_are_as_good(taught):
    assert [(one.name, one.right, one.labels) for one in taught.alternatives] == [
        ("nearest by cosine", 30, 30),
        ("ridge regression", 30, 30),
    ]
    assert ("beside it", "nearest by cosine is as good here: use it") in linkage.lines(taught)
    worse = tuple(replace(one, right=10) for one in taught.alternatives)
    told = dict(linkage.lines(replace(taught, alternatives=worse)))
    assert told["beside it"].startswith("none of them is as good")
    close = tuple(replace(one, right=taught.judged.right - 1) for one in taught.alternatives)
    told = dict(linkage.lines(replace(taught, alternatives=close)))
    assert told["beside it"] == "nearest by cosine or ridge regression may be as good: 30 known pairs cannot tell"


def test_without_pairs_alternatives_agree_or_not_and_nothing_is_claimed(found):
    (one,) = found.alternatives
    assert one.agreement == 1 and one.labels == 0 and np.isnan(one.accuracy)


@pytest.mark.parametrize(
    ("right", "labels", "wanted", "passed", "told"),
    [(100, 100, 0.95, True, "PASS: 100 %"), (10, 20, 0.9, False, "FAIL: 50 %"), (19, 20, 0.9, False, "WARN: 95 %")],
)
def test_a_verdict_goes_by_the_lower_end_of_the_interval(found, right, labels, wanted, passed, told):
    verdict = linkage.verdict(replace(found, certificate=Certificate(right, labels)), wanted)
    assert verdict.passed is passed and verdict.text.startswith(told)


def test_what_nobody_has_checked_does_not_pass_however_sure_the_model_is(found):
    memory = BayesianHopfield(found.memory.patterns)
    unchecked = replace(found, model=replace(found.model, memory=memory), judged=None)
    verdict = linkage.verdict(unchecked, 0.95)
    assert not verdict.passed and "59 answers, all right, would do" in verdict.text
    assert not unchecked.verified and not any(unchecked.table()["verified"])


def test_one_to_one_no_stored_row_is_given_away_twice_and_what_is_known_is_taken(monkeypatch):
    monkeypatch.setattr("ahop.linkage.linking.held_out", lambda *given, **options: judged(4, 5))
    stored, incoming, origins = tables(noise=0.8)
    known = torch.full((30,), -1)
    known[:5] = torch.from_numpy(origins)[:5]
    told = linkage.link(stored, incoming, known, one_to_one=True, verbose=False)
    given = told.indices[told.indices >= 0].tolist()
    assert len(set(given)) == len(given) and told.indices[:5].tolist() == origins[:5].tolist()


def test_one_to_one_says_what_it_changed_and_where_it_was_strained(taught):
    """The first two rows lie nearest to the same stored one; together, each gets its own."""
    incoming = tables()[1]
    values = incoming.values.copy()
    values[1] = values[0] + 0.05
    found = linkage.link(taught.model, replace(incoming, values=values), one_to_one=True)
    first = int(taught.origins[0])
    assert found.alone[:2].tolist() == [first, first] and found.strained == {first: 2}
    assert sorted(found.indices[:2].tolist()) != [first, first] and found.changed == 1
    told = dict(linkage.lines(found))["one to one"]
    assert told == (
        "30 of 30 rows have a stored row of their own; that changed the match of 1 row, and 1 stored row was asked for "
        "more often than there is room"
    )
    apart = linkage.link(taught.model, replace(incoming, values=values))
    assert apart.changed == 0 and not apart.strained and apart.alone.equal(apart.indices)
    calm = linkage.link(taught.model, incoming, one_to_one=True)
    assert dict(linkage.lines(calm))["one to one"].endswith("of their own; that changed no match")


def test_one_to_one_pairs_judge_the_assignment_and_not_first_choices(monkeypatch):
    """Two rows lie nearest to the same stored one; together, each gets its own, whether or not its pair is hidden."""
    patterns = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
    queries, origins = torch.tensor([[0.7], [1.1], [5.0], [9.0]]), torch.tensor([0, 1, 2, 3])
    monkeypatch.setattr(BayesianHopfield, "fit", lambda self, *given, **options: self)
    how = {"observed": None, "standardise": False, "seed": 0, "verbose": False}
    by_themselves = holdout.held_out(patterns, queries, origins, one_to_one=False, **how)
    together = holdout.held_out(patterns, queries, origins, one_to_one=True, **how)
    assert int(by_themselves.right.sum()) == 3 and together.right.tolist() == [True] * 4


def test_one_to_one_what_is_said_is_that_of_the_assignment(monkeypatch):
    stored, incoming, origins = tables()
    judge = {}
    monkeypatch.setattr("ahop.linkage.linking.held_out", lambda *_, **how: judge.update(how) or judged(21, 30))
    found = linkage.link(stored, incoming, torch.from_numpy(origins), one_to_one=True, verbose=False)
    assert judge["one_to_one"] and found.evidence == Certificate(21, 30, of="matches")
    assert "70 % of 30 matches were right" in dict(linkage.lines(found))["how right"]
    # The model keeps what holds for rows by themselves, as the next batch may come.
    assert found.memory.report.accuracy > 0.9


def test_a_given_model_learns_no_more(found):
    _, incoming, origins = tables()
    with pytest.raises(ValueError, match="known pairs are learned from, and a given model learns no more"):
        linkage.link(found.model, incoming, torch.from_numpy(origins))


@pytest.mark.parametrize("one_to_one", [False, True])
def test_a_row_that_is_known_to_be_none_of_the_stored_ones_has_no_match_and_is_not_asked_about(taught, one_to_one):
    known = taught.origins.clone()
    known[:5], known[5:8] = ahop.STRANGER, -1
    queries = torch.from_numpy(taught.incoming.values).float()
    found = answers(taught.memory, queries, known, one_to_one)
    assert found.indices[:5].tolist() == [-1] * 5 and not found.probabilities[:5].any()
    assert torch.equal(found.indices[5:], taught.origins[5:])
    given = replace(taught, origins=known, **found._asdict())
    assert given.table()["reason"][:5] == ["known to be none of the stored rows"] * 5
    assert all(given.table()["verified"][:5]) and linkage.asked(given, 3)["id"] == ["o5", "o6", "o7"]


def test_known_strangers_say_how_many_are_refused_at_the_level_asked_for(taught):
    given = replace(taught, reject=0.2)
    assert "known strangers" not in dict(linkage.lines(given))["strangers"]
    memory = copy.deepcopy(taught.memory)
    memory.similarity.meet(torch.full((4,), -100.0))
    told = dict(linkage.lines(replace(given, model=replace(taught.model, memory=memory))))["strangers"]
    assert told.endswith("4 of 4 known strangers are refused at reject=0.2; 90 % confidence interval 47 to 100 %")


def test_where_nothing_was_found_no_row_has_a_match_and_each_says_why(found):
    memory = copy.deepcopy(found.memory)
    memory.report = replace(memory.report, found=False)
    lost = replace(found, model=replace(found.model, memory=memory), reject=0.05)
    columns = lost.table()
    assert set(columns["match"]) == {None} and set(columns["probability"]) == {0.0}
    assert set(columns["reason"]) == {NOTHING} and not lost.found
    assert dict(linkage.lines(lost))["strangers"].startswith("unknown: nothing was found")
    assert set(found.table()["match"]) != {None}
    again = linkage.link(lost.model, tables()[1])
    assert again.alternatives == () and "beside it" not in dict(linkage.lines(again))
    for given in (lost, replace(lost, one_to_one=True)):
        assert not {"one to one", "repeats"} & dict(linkage.lines(given)).keys()


def test_what_happened_is_said_in_a_sentence_that_names_a_column(found, monkeypatch):
    text = "Of 100 values, 2 are lost.\nWhat is kept is noisy.\nMost shifted is {}."

    def describe(self, columns=None):
        return text.format("column 1" if columns is None else columns[1])

    monkeypatch.setattr(type(found.memory.similarity), "describe", describe)
    told = dict(linkage.lines(found))["what happened"]
    named = f"Most shifted is {found.incoming.columns[1]}."
    assert told == f"{found.memory.report.chosen}. Of 100 values, 2 are lost. {named}"


def test_who_has_rows_to_check_is_told_to_fill_them_in_and_not_to_ask_again(found):
    unchecked = replace(found, model=replace(found.model, judged=None), earlier=None)
    for given in (found, unchecked):
        assert "--ask 20 writes the rows" in dict(linkage.lines(given))["rests on"]
        told = dict(linkage.lines(given, "m-check.csv"))["rests on"]
        assert "fill in the column 'answer' of m-check.csv, and give it to --answers" in told and "--ask" not in told


def test_one_to_one_what_nobody_has_checked_is_said_of_matches_by_how_sure_these_are(found):
    unchecked = replace(found, earlier=None)
    assert "% of first choices, if this model is right" in dict(linkage.lines(unchecked))["how right"]
    less = replace(unchecked, one_to_one=True, probabilities=torch.full((30,), 0.7))
    told = dict(linkage.lines(less))["how right"]
    assert told == "70 % of matches, if this model is right; usually 46 to 86 %; not checked"
    none = replace(less, probabilities=less.probabilities.clone().index_fill(0, torch.tensor([29]), 0.0))
    none.indices[29] = -1
    assert dict(linkage.lines(none))["how right"] == told


def test_notes_speak_of_rows_and_columns(monkeypatch):
    def fit(self, queries, origins, **options):
        warnings.warn(null.warning(len(queries)), stacklevel=1)
        self.report = FitReport("em", 1.0, 1, converged=True, found=False)
        return self

    monkeypatch.setattr(BayesianHopfield, "fit", fit)
    stored, incoming, _ = tables()
    (note,) = linkage.link(stored, incoming, verbose=False).notes
    assert note.startswith("the 30 incoming rows fit these stored rows no better than made-up rows like them")
    assert not re.search("quer|pattern|origin|prior", note)


def test_nothing_plain_is_recommended_that_is_right_no_more_often_than_by_chance(taught):
    poor = tuple(replace(one, right=2, behind=0) for one in taught.alternatives)
    given = replace(taught, alternatives=poor, certificate=Certificate(1, 30))
    told = [text for word, text in linkage.lines(given) if word == "beside it"]
    assert told[1] == "none of them is right more often than by chance"


def test_checked_rows_that_are_none_of_the_stored_ones_are_counted(found):
    given = replace(found, certificate=Certificate(17, 20, strangers=3))
    told = dict(linkage.lines(given))["strangers"]
    assert told.startswith("3 of 20 checked rows are none of the stored ones; --reject 0.05 refuses rows")


def test_one_to_one_is_not_true_where_known_rows_share_a_stored_one(found):
    indices = found.indices.clone()
    indices[4] = indices[3]
    told = dict(linkage.lines(replace(found, one_to_one=True, indices=indices)))["one to one"]
    assert told == "not true of these data: known rows have 1 stored row in common; leave --one-to-one out"
