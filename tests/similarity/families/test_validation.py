"""Cross-validation on origins that were held out, and a temperature and a doubt from its scores."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from tests.guards import Watch, apart, rows

from ahop import BayesianHopfield
from ahop.similarity import Likelihood, Nearest
from ahop.similarity.families import calibration, validation
from ahop.similarity.families.candidate import Candidate
from ahop.similarity.families.fitting import _halved
from ahop.similarity.families.floor import learning as floor
from ahop.similarity.families.independent import learning as independent
from ahop.similarity.families.independent import refinement as richer
from ahop.similarity.families.independent import terms
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation, HeldOut, corrected, fit_doubt, fit_temperature
from ahop.variants import Noisy

RIVALS = 200


def table(hopeless, beta, count=1000):
    """Scores whose posterior is right at ``beta``, but for a share of queries that say nothing of the origin."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(count, RIVALS + 1, dtype=torch.float64, generator=generator)
    own = torch.multinomial(torch.softmax(logits, 1), 1, generator=generator).squeeze(1)
    lost = torch.rand(count, generator=generator) < hopeless
    own[lost] = torch.randint(RIVALS + 1, (int(lost.sum()),), generator=generator)
    rows, first = torch.arange(count), logits[:, 0].clone()
    logits[:, 0] = logits[rows, own]
    logits[rows[own > 0], own[own > 0]] = first[own > 0]
    return logits / beta


@pytest.mark.parametrize("beta", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("hopeless", [0.1, 0.3])
def test_queries_beyond_hope_do_not_make_the_others_doubtful(hopeless, beta):
    log_beta, doubt = fit_doubt(table(hopeless, beta))
    assert doubt == pytest.approx(hopeless, abs=0.06)
    assert torch.tensor(log_beta).exp() == pytest.approx(beta, rel=0.15)
    # A temperature alone has to make all of them less sure.
    assert fit_temperature(table(hopeless, beta))[1] < log_beta


def test_there_is_no_doubt_without_reason():
    scores = table(hopeless=0.0, beta=0.5)
    assert fit_doubt(scores) == (fit_temperature(scores)[1], 0.0)


@pytest.mark.parametrize("expected", [0.95, 0.8, 0.6])
def test_labels_that_were_all_found_do_not_make_the_best_of_many_models_certain(expected):
    """A temperature alone would be as sure of twenty origins as of a thousand."""
    scores = torch.randn(20, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[:, 0] = scores.amax(1) + 1
    held_out = HeldOut(scores[:, 0], torch.arange(20), 0.0, torch.ones(20), scores)

    def sure(log_beta, doubt):
        return (1 - doubt) * float(torch.softmax(math.exp(log_beta) * scores, 1).amax(1).mean())

    assert sure(*fit_doubt(scores)) > 0.99
    assert sure(*calibration.from_held_out(held_out, expected)) <= expected + 1e-6


def test_twenty_answers_make_a_model_that_nothing_else_vouches_for_no_surer_than_they_found_it_right():
    """Four of twenty were right, where the model is twice as sure; that alone does not refute one that was found."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 50, generator=generator)
    scores[:4, 0] = scores[:4].amax(1) + 0.5
    first, second = scores[4:, 1:].topk(2, 1).values.unbind(1)
    scores[4:, 0] = (first + second) / 2

    def sure(log_beta, doubt):
        return (1 - doubt) * float(torch.softmax(math.exp(log_beta) * scores, 1).amax(1).mean())

    scores = scores * 2
    assert sure(*calibration.from_answers(scores)) > 0.3
    assert sure(*calibration.from_answers(scores, found=False)) <= 0.2 + 1e-6


@pytest.mark.parametrize("prior", [None, torch.tensor([1.0, 2.0, 3.0, 0.0])])
def test_doubt_gives_the_prior_its_share(prior):
    memory = BayesianHopfield(torch.eye(4), prior=prior)
    asked = torch.eye(4) + 0.1
    sure = memory.recall(asked, k=4)
    memory.similarity.doubt.fill_(0.25)
    doubtful = memory.recall(asked, k=4)
    assert doubtful.indices.equal(sure.indices)
    share = torch.full((4,), 0.25) if prior is None else prior / prior.sum()
    expected = 0.75 * sure.probabilities + 0.25 * share[sure.indices]
    torch.testing.assert_close(doubtful.probabilities, expected)
    torch.testing.assert_close(doubtful.probabilities.sum(1), torch.ones(4))


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def folds(patterns, origins, monkeypatch):
    """The rows that models are learned from, and those that each is judged by."""
    validation = CrossValidation(TrainingData(drawn(patterns, 4), drawn(len(origins), 4), origins), seed=0)
    asked = []
    # What stands for a model are the rows that it was learned from.
    monkeypatch.setattr(validation, "score", lambda model, rows: asked.append((model, rows)) or drawn(len(rows), 5))
    validation.evaluate(lambda rows: rows)
    assert sorted(torch.cat([judged for _, judged in asked]).tolist()) == list(range(len(origins)))
    return asked


@pytest.mark.parametrize("items", [20, 100])
def test_folds_judge_by_origins_that_were_not_learned_from(items, monkeypatch):
    origins = torch.arange(items).repeat(3)
    # Of one pattern there is no label: others like it will be asked for.
    for learned, judged in folds(items + 1, origins, monkeypatch):
        apart(set(origins[learned].tolist()), set(origins[judged].tolist()))


def test_where_every_pattern_has_labels_folds_judge_by_other_queries_of_them(monkeypatch):
    origins = torch.arange(3).repeat(20)
    for learned, judged in folds(3, origins, monkeypatch):
        apart(set(learned.tolist()), set(judged.tolist()))
        assert len(origins[learned].unique()) == 3


def test_an_origin_that_is_level_with_others_is_found_in_its_share():
    scores = torch.tensor([[0.0, -1.0, -2.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    validation = CrossValidation(TrainingData(drawn(3, 4), drawn(6, 4), torch.arange(6) % 3), seed=0)
    torch.testing.assert_close(validation.result([scores]).right, torch.tensor([1, 1 / 2, 1 / 3, 0]).double())


@pytest.mark.parametrize("labelled", [True, False])
def test_a_half_is_asked_about_the_other_one(labelled):
    origins = torch.arange(20).repeat(3)
    data = TrainingData(drawn(20, 4), drawn(60, 4), origins if labelled else None)
    several = _halved(data, Candidate("rows", None, data, lambda _: lambda rows: rows), seed=0)
    assert len(several) == 2
    for learned, asked in several:
        apart(set(learned.tolist()), set(asked.tolist()))
        if labelled:
            apart(set(origins[learned].tolist()), set(origins[asked].tolist()))


@torch.no_grad()
def test_what_single_dimensions_may_differ_in_is_judged_by_queries_that_were_not_learned_from(monkeypatch):
    patterns, origins = drawn(20, 4), torch.arange(60) % 20
    data = TrainingData(patterns, patterns[origins] + 0.1 * drawn(60, 4, seed=1), origins)
    fit = independent.from_pairs(independent.Problem(data, seed=0, regimes=False))
    watch = Watch(monkeypatch).on(independent.Problem, "iterate").on(terms, "expect")
    richer.refined(fit)
    *tried, last = watch.of("iterate")
    assert len(tried) > 1 and rows(last.evidence.queries) == rows(data.queries)
    judged = [watch.after(call)[0] for call in tried]
    assert {call.what for call in judged} == {"expect"}
    apart(rows(*(call.evidence.queries for call in tried)), rows(*(call.evidence.queries for call in judged)))


@torch.no_grad()
def test_what_is_learned_again_rests_on_its_own_queries_alone():
    patterns = torch.rand(40, 16, generator=torch.Generator().manual_seed(1)) * 2 - 1
    data = TrainingData(patterns, *Noisy(torch.linspace(0.2, 1.8, 16), seed=1).sample(patterns, 40))
    problem = independent.Problem(data, seed=0, regimes=False)
    fit = richer.refined(independent.from_pairs(problem))
    some = torch.arange(10, 40)
    state = replace(independent.State.of(fit.relearned(some)), shrinkage=fit.state.shrinkage)
    trace = problem.iterate(state, fit.evidence.part(some), steps=100)
    # Where there is more to gain from them, something of the other queries is still there.
    assert trace[-1] - trace[0] < 0.005


@torch.no_grad()
def test_folds_know_nothing_of_single_dimensions_from_pairs_left_out():
    # Values at which dimensions differ are as far off as can be: those of other dimensions.
    patterns = torch.randn(30, 12, generator=torch.Generator().manual_seed(1))
    seen = Noisy(torch.linspace(0.2, 1.5, 12)).sample(patterns, 80)
    data = TrainingData(patterns, seen.queries + torch.linspace(-1, 1, 12), seen.origins)
    fit = richer.refined(independent.from_pairs(independent.Problem(data, seed=0, regimes=False)))
    misled = copy.deepcopy(fit)
    for regime in misled.state.regimes:
        for values in (regime.bias, regime.log_scale, regime.mask_logits):
            values.copy_(values.flip(0))
    rows = torch.arange(40)
    right, wrong = (one.relearned(rows).state_dict() for one in (fit, misled))
    assert all(torch.equal(right[name], wrong[name]) for name in right)


def test_queries_that_were_left_out_to_save_time_are_not_learned_from_again():
    # Those that are known stay, so that all that stay may be labelled where not all were.
    patterns, origins = drawn(20, 4), torch.arange(200) % 20
    queries = patterns[origins] + 0.1 * drawn(200, 4, seed=1)
    data = TrainingData(patterns, queries, torch.where(torch.arange(200) >= 120, origins, -1))
    with torch.no_grad():
        some = independent.Problem(data, seed=0).thinned(70)
        fit = independent.settled(some, independent.State.of(Likelihood(4)), 2)
        assert some.data.labelled and not data.labelled
        again = fit.relearned(torch.arange(100, 200))
    assert (again(patterns, queries).argmax(1) == origins).double().mean() > 0.9


def test_regimes_at_a_floor_are_judged_by_queries_that_were_not_learned_from(monkeypatch):
    watch = Watch(monkeypatch).on(floor, "fit_queries", lambda *data: None)
    watch.on(floor, "_evidence", lambda model, cells, rows, log_prior: torch.arange(len(rows)).double())
    floor.by_evidence(None, torch.arange(200), torch.full((200,), -1), torch.zeros(5), seed=0)
    *tried, last = watch.of("fit_queries")
    assert len(last.rows) == 200
    for learned, judged in zip(tried, watch.of("_evidence"), strict=True):
        apart(set(learned.rows.tolist()), set(judged.rows.tolist()))


# --- a choice among many -----------------------------------------------------------------------------------------


def held_out(right, generator):
    """Held-out results of queries of one origin each."""
    right = torch.as_tensor(right)
    logs = torch.where(right, -0.1, -2.0) + 0.01 * torch.randn(len(right), generator=generator)
    return HeldOut(logs, torch.arange(len(right)), 0.0, right.double(), torch.zeros(len(right), 2))


def test_the_luck_of_the_best_of_many_is_taken_away():
    """Forty models that are all right by half: the best looks better than that on the queries that chose it."""
    looks, expected = [], []
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        models = [held_out(torch.rand(40, generator=generator) < 0.5, generator) for _ in range(40)]
        looks.append(max(models, key=lambda one: one.utility).accuracy)
        expected.append(corrected(models, seed))
    assert sum(looks) / 20 > 0.62
    assert abs(sum(expected) / 20 - 0.5) < 0.03


def test_what_is_clearly_behind_is_given_up_and_what_is_level_is_not():
    generator = torch.Generator().manual_seed(0)
    good, level = (held_out(torch.rand(60, generator=generator) < 0.8, generator) for _ in range(2))
    bad = held_out(torch.rand(60, generator=generator) < 0.2, generator)
    assert bad.hopeless(good) and not level.hopeless(good) and not good.hopeless(bad)


def test_a_race_ends_before_the_last_fold_of_what_is_hopeless():
    patterns = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    origins = torch.arange(200) % 40
    queries = patterns[origins] + 0.1 * torch.randn(200, 8, generator=torch.Generator().manual_seed(1))
    validation = CrossValidation(TrainingData(patterns, queries, origins), seed=0)
    with torch.no_grad():
        good = validation.evaluate(lambda rows: Nearest(8))
    fitted = []

    def wrong(rows):
        fitted.append(len(rows))
        made = Nearest(8)
        made.query_centre.data.fill_(30.0)
        made.log_query_scale.data.copy_(torch.arange(8.0))
        return made

    with torch.no_grad():
        assert validation.evaluate(wrong, good).hopeless(good)
    assert len(fitted) < len(validation.parts)


def test_the_last_word_is_beside_every_pattern():
    """A thousand rivals are easier to tell from than four thousand."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(4000, 6, generator=generator)
    origins = torch.randint(4000, (300,), generator=generator)
    queries = patterns[origins] + 0.3 * torch.randn(300, 6, generator=generator)
    validation = CrossValidation(TrainingData(patterns, queries, origins), seed=0)
    with torch.no_grad():
        some, all_of_them = (one.evaluate(lambda rows: Nearest(6)) for one in (validation, validation.against_all()))
    nearest = torch.cdist(queries, patterns).argmin(1)
    assert abs(all_of_them.accuracy - float((nearest == origins).double().mean())) < 1e-6
    assert some.accuracy > all_of_them.accuracy + 0.1


@pytest.mark.slow
def test_a_report_counts_the_labels_that_have_judged(monkeypatch):
    monkeypatch.setattr(validation, "_JUDGED", 30)
    patterns = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    origins = torch.arange(100) % 50
    queries = patterns[origins] + 0.5 * torch.randn(100, 6, generator=torch.Generator().manual_seed(1))
    assert BayesianHopfield(patterns).fit(queries, origins).report.labels <= 30
