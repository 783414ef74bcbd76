import pickle

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

import ahop
from ahop.learning.report import FitReport, Trial
from ahop.similarity import Corruption
from ahop.variants import Mixed

PATTERNS = torch.rand(40, 8, generator=torch.Generator().manual_seed(0))
SEEN = Mixed(0.4, 0.3, 0.1).sample(PATTERNS, 60)


def test_a_map_that_was_not_found_is_no_fit_that_was_cut_short(recwarn):
    memory = ahop.BayesianHopfield(PATTERNS).fit(torch.rand(20, 5))
    assert memory.report.converged and not memory.report.found
    assert ["no map from the patterns to the 20 queries" in str(one.message) for one in recwarn] == [True]
    assert "nothing was found that is better than chance" in str(memory.report)
    assert "still improving" not in str(memory.report)


@pytest.mark.parametrize(
    "memory, given",
    [(ahop.AdaptiveHopfield(PATTERNS), SEEN), (ahop.KernelHopfield(PATTERNS), ())],
    ids=["order weights", "a kernel"],
)
def test_a_fit_that_was_cut_short_says_which_argument_to_raise(memory, given):
    with pytest.warns(ConvergenceWarning, match="to go on, raise steps of fit, which were 2"):
        memory.fit(*given, steps=2)
    assert memory.report.found and not memory.report.converged


def test_expectation_maximisation_that_was_cut_short_names_the_way_to_go_on(monkeypatch):
    report = FitReport("em", 1.0, 9, converged=False)
    monkeypatch.setattr(Corruption, "fit", lambda *given, **options: report)
    with pytest.warns(ConvergenceWarning, match="to go on, give further queries to partial_fit"):
        ahop.BayesianHopfield(PATTERNS).fit(SEEN.queries)


def test_a_similarity_may_have_an_advice_of_its_own(monkeypatch):
    report = FitReport("hill climbing", 1.0, 9, converged=False, advice="climb higher")
    monkeypatch.setattr(ahop.similarity.Likelihood, "fit", lambda *given, **options: report)
    with pytest.warns(ConvergenceWarning, match="9 iterations of hill climbing; .*; to go on, climb higher"):
        ahop.UniversalHopfield(PATTERNS, similarity="likelihood").fit(SEEN.queries)


def test_a_report_from_before_these_were_told_can_be_read():
    old = FitReport("em", 1.0, 9, converged=True)
    for new in ("found", "advice"):
        vars(old).pop(new)
    read = pickle.loads(pickle.dumps(old))
    assert read.found and not read.advice and str(read) == str(FitReport("em", 1.0, 9, converged=True))


def test_an_unchecked_fit_says_how_far_such_fits_were_off():
    low, high = FitReport("em", 1.0, 9, converged=True, confidence=0.5).usual_range
    assert low == pytest.approx(1 - high) == pytest.approx(0.269, abs=1e-3)
    assert FitReport("em", 1.0, 9, converged=True, confidence=0.5, found=False).usual_range == (0.0, 1.0)
    assert "usually about 100 %;" in FitReport("em", 1.0, 9, converged=True, confidence=1 - 1e-6).unchecked
    for sure in (0.0, 1.0):
        low, high = FitReport("em", 1.0, 9, converged=True, confidence=sure).usual_range
        assert 0 <= low <= high <= 1


def test_a_report_says_beside_how_many_patterns_kinds_were_compared_where_it_was_not_all_of_them():
    few, all_of_them = (
        FitReport("em", 1.0, 9, True, (Trial("one kind", 0.7, -1.0, among),), "one kind", 0.6, 0.6, labels=50)
        for among in (1024, 0)
    )
    assert "one kind (70.0 %), by cross-validation among 1,024 patterns\n" in str(few)
    assert "one kind (70.0 %), by cross-validation\n" in str(all_of_them)


def test_a_report_says_which_queries_its_accuracy_is_about():
    given = FitReport("em", 1.0, 9, True, (Trial("one kind"),), "one kind", 0.9, 0.9, labels=20)
    assert "90 % of first choices, where the origin is stored; 90 %" in str(given) and "20 labels, held out" in str(
        given
    )
    queries = torch.cat([PATTERNS, torch.rand(10, 8, generator=torch.Generator().manual_seed(1)) + 5])
    memory = ahop.BayesianHopfield(PATTERNS)
    memory.verify(queries, [*range(40), *[ahop.STRANGER] * 10])
    assert "80 % of first choices; 90 %" in str(memory.report) and "50 answers that were checked" in str(memory.report)


@pytest.mark.slow
def test_kinds_are_compared_beside_some_of_very_many_patterns():
    patterns = torch.randn(1100, 4, generator=torch.Generator().manual_seed(0))
    for count, among in ((1100, 1024), (200, 0)):
        origins = torch.arange(40)
        memory = ahop.BayesianHopfield(patterns[:count]).fit(patterns[:40] + 0.01, origins, hidden_causes=0)
        assert [trial.among for trial in memory.report.tried] == [among]
