import pytest
import torch

from ahop import BayesianHopfield
from ahop.similarity.families import null
from ahop_paper.drawing import Draw
from ahop_paper.populations import unrelated
from ahop_paper.unseen import DRAWN


def share(found, wanted):
    return float((found == wanted).double().mean())


def drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("size", [(150, 10), pytest.param((200, 64), marks=pytest.mark.slow)])
def test_noise_is_not_found_in_other_noise(size):
    """However sure a model is: probabilities are the prior, and every query may be refused."""
    patterns, queries = drawn(*size, seed=0), drawn(*size, seed=1)
    with pytest.warns(UserWarning, match="fit these patterns no better than others like them"):
        memory = BayesianHopfield(patterns).fit(queries)
    assert not memory.report.found and "unknown" in str(memory.report)
    torch.testing.assert_close(memory.recall(queries).probabilities, torch.full((len(queries), 1), 1 / len(patterns)))
    assert bool((memory.recall(queries, reject=0.05).indices == -1).all())


@pytest.mark.parametrize("noise", [0.3, pytest.param(1.0, marks=pytest.mark.slow)])
def test_queries_that_have_origins_are_found(noise):
    patterns, origins = drawn(200, 20, seed=0), torch.arange(200) % 150
    memory = BayesianHopfield(patterns).fit(patterns[origins] + noise * drawn(200, 20, seed=1))
    assert memory.report.found and not memory.report.verified
    assert "if this model is right" in str(memory.report) and "not checked" in str(memory.report)
    assert "expect" not in str(memory.report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_a_few_queries_that_lie_on_their_patterns_are_found(seed):
    """Half of nine tell nothing; most of them do."""
    patterns = torch.rand(40, 2, generator=torch.Generator().manual_seed(seed))
    assert BayesianHopfield(patterns).fit(patterns[:9] + torch.tensor([0.001, 0])).report.found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* queries fit these patterns no better")
def test_first_choices_stay_the_best_guess_where_nothing_was_found(monkeypatch):
    """The plain distance knows nothing of other units; checked answers prove what was learned of them."""
    patterns, origins = drawn(40, 6, seed=0), torch.arange(70) % 40
    queries = 3 * patterns[origins] + 4 + 0.2 * drawn(70, 6, seed=1)
    monkeypatch.setattr(null, "above_chance", lambda *_: False)
    memory = BayesianHopfield(patterns).fit(queries, verbose=False)
    plain, found = BayesianHopfield(patterns).recall(queries), memory.recall(queries)
    assert not memory.report.found and float(found.probabilities.max()) < 0.03
    assert share(found.indices[:, 0], origins) > 0.9 > 0.5 > share(plain.indices[:, 0], origins)
    memory.verify(queries[:20], origins[:20])
    assert memory.report.found and float(memory.recall(queries).probabilities.mean()) > 0.7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* queries fit these patterns no better")
def test_spectra_that_cannot_be_told_from_chance_are_still_ranked_by_what_was_learned():
    world = DRAWN["raw spectra"](Draw(0))
    memory = BayesianHopfield(world.patterns).fit(world.queries, verbose=False)
    assert not memory.report.found and share(memory.recall(world.asked).indices[:, 0], world.wanted) > 0.4


@pytest.mark.slow
def test_weak_relations_are_found_where_values_are_odd():
    """Every value has a gain of its own, which may be twenty: most of the distances say nothing."""
    patterns, origins = drawn(200, 40, seed=0).exp(), torch.arange(300) % 200
    memory = BayesianHopfield(patterns).fit(patterns[origins] * (2 * drawn(300, 40, seed=1)).exp())
    assert memory.report.found
    low, high = memory.report.usual_range
    assert low < float((memory.recall(patterns[origins]).indices[:, 0] == origins).double().mean()) and high < 1


@pytest.mark.slow
def test_few_queries_of_many_dimensions_are_not_found_in_noise():
    """A model that began from all queries knows those that are held out; beside surrogates it does so, too."""
    uniform = torch.Generator().manual_seed(3)
    patterns, queries = torch.rand(91, 166, generator=uniform), torch.rand(55, 166, generator=uniform)
    with pytest.warns(UserWarning, match="fit these patterns no better than others like them"):
        assert not BayesianHopfield(patterns).fit(queries).report.found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* queries fit these patterns no better")
def test_what_is_far_beyond_chance_may_be_within_what_sets_differ_by():
    """51 patterns of 122 correlated values: all queries were ten nats above every set, and those differed by fifty."""
    world = unrelated("correlated", 8)
    assert not BayesianHopfield(world.patterns).fit(world.queries, seed=8, verbose=False).report.found


@pytest.mark.slow
def test_a_few_labels_find_what_queries_alone_cannot():
    """Right three times in ten is far above chance, and twenty labels know it."""
    patterns, origins = drawn(100, 16, seed=0), torch.arange(60)
    queries = patterns[origins] + 2 * drawn(60, 16, seed=1)
    with pytest.warns(UserWarning, match="no better than others like them"):
        assert not BayesianHopfield(patterns).fit(queries).report.found
    told = BayesianHopfield(patterns).fit(queries, torch.where(torch.arange(60) < 30, origins, -1)).report
    assert told.found and told.labels == 30 and told.interval[0] < told.accuracy < told.interval[1]


@pytest.mark.parametrize("count", [3, 7])
def test_of_a_few_queries_nobody_can_say_how_right_first_choices_are(count):
    report = BayesianHopfield(drawn(300, 8, seed=0)).fit(drawn(count, 8, seed=1)).report
    assert report.found and "unknown: too few queries" in str(report) and "%" not in str(report)


@pytest.mark.slow
def test_a_stream_finds_what_its_beginning_did_not():
    """Where nothing was found there is nothing to go on from: what comes next is learned from as if it were first."""
    patterns, origins = drawn(150, 10, seed=0), torch.arange(300) % 150
    with pytest.warns(UserWarning, match="no better than others"):
        memory = BayesianHopfield(patterns).fit(drawn(300, 10, seed=1))
    memory.partial_fit(patterns[origins] + 0.2 * drawn(300, 10, seed=2), origins)
    found = memory.recall(patterns)
    assert memory.report.found and float(found.probabilities.mean()) > 0.9


def test_surrogates_keep_what_is_not_who_is_stored():
    mixing = drawn(5, 5, seed=2)
    patterns = drawn(4000, 5, seed=0) @ mixing
    generator = torch.Generator().manual_seed(0)
    mixed, valued = (null.surrogates(patterns, generator, keep) for keep in (False, True))
    torch.testing.assert_close(mixed.T.cov(), patterns.T.cov(), rtol=0.15, atol=0.3)
    torch.testing.assert_close(valued.sort(0).values, patterns.sort(0).values)
    torch.testing.assert_close(valued.T.corrcoef(), patterns.T.corrcoef(), rtol=0, atol=0.1)
    for other in (mixed, valued):
        assert float(torch.cdist(other[:200], patterns).amin(1).mean()) > 0.05


def test_labels_judge_where_values_are_missing():
    patterns, origins = drawn(80, 12, seed=0), torch.arange(120) % 80
    queries = patterns[origins] + 0.3 * drawn(120, 12, seed=1)
    queries[drawn(120, 12, seed=2) > 1] = torch.nan
    few = torch.where(torch.arange(120) < 30, origins, -1)
    report = BayesianHopfield(patterns).fit(queries, few, observed="not-nan").report
    assert report.found and report.labels == 30 and report.verified
