import pytest
import torch

from ahop import BayesianHopfield
from ahop.similarity import Likelihood
from ahop.similarity.families import calibration, familiarity, fitting, stand_ins
from ahop.similarity.families.correlated import learning as correlated
from ahop.similarity.families.training import TrainingData


def drawn(count, asked, dim=12, noise=0.5, seed=0):
    """Patterns, queries with noise and a shift of each dimension, and their origins."""
    draw = torch.Generator().manual_seed(seed)
    patterns, origins = torch.randn(count, dim, generator=draw), torch.randint(count, (asked,), generator=draw)
    shift, width = torch.randn(dim, generator=draw), noise * (0.5 + torch.rand(dim, generator=draw))
    return patterns, patterns[origins] + shift + width * torch.randn(asked, dim, generator=draw), origins


@pytest.fixture
def many(monkeypatch):
    """So few patterns are many, and so few of them stand for all."""
    monkeypatch.setattr(stand_ins, "MANY", 512)
    monkeypatch.setattr(stand_ins, "_SAMPLE", 256)
    monkeypatch.setattr(stand_ins, "_LIKELIEST", 8)


@pytest.fixture
def model():
    found = Likelihood(12)
    found.log_sigma.data.fill_(-0.5)
    return found


def test_stand_ins_count_for_all_patterns_and_hold_the_likeliest_of_each_query(many, model):
    patterns, queries, origins = drawn(2000, 20)
    data = TrainingData(patterns, queries, torch.where(origins > 1000, origins, -1))
    few, places, counts = stand_ins.of(data, model)
    assert len(places) < 500 and float(counts.sum()) == pytest.approx(2000)
    assert few.log_prior.exp().sum() == pytest.approx(1)
    assert patterns[places].equal(few.patterns)
    with torch.no_grad():
        assert bool(torch.isin(model(patterns, queries).argmax(1), places).all())
    known = data.known
    assert places[few.origins[known]].equal(origins[known]) and bool((few.origins[data.origins < 0] == -1).all())


def test_the_evidence_of_stand_ins_is_that_of_all_patterns(many, model):
    """Also where no pattern stands out, and most of the sum is that of the sample."""
    patterns, queries, _ = drawn(2000, 60, noise=2.0)
    model.log_sigma.data.fill_(0.5)
    few = stand_ins.of(TrainingData(patterns, queries), model).data
    with torch.no_grad():
        whole = model(patterns, queries).logsumexp(1) - torch.tensor(2000.0).log()
        found = (model(few.patterns, queries) + few.log_priors).logsumexp(1)
    assert float((found - whole).abs().max()) < 0.5 and abs(float((found - whole).mean())) < 0.1


def test_few_patterns_stand_for_themselves(model):
    data = TrainingData(*drawn(50, 5)[:2])
    few, places, counts = stand_ins.of(data, model)
    assert few is data and places.equal(torch.arange(50)) and bool((counts == 1).all())
    assert stand_ins.like_all(data.patterns) is data.patterns
    assert list(stand_ins.rounds(data, model, 15)) == [(data, 15)]


def test_first_choices_and_confidence_among_stand_ins_are_those_among_all(model, monkeypatch):
    patterns, queries, _ = drawn(2000, 40)
    data = TrainingData(patterns, queries)

    def told():
        with torch.no_grad():
            choices = calibration.first_choices(model, TrainingData(patterns, queries))
            familiar = familiarity.genuine_and_strange(data, model, [], 1.0)
            return choices, fitting._confidence(data, model, 1.0), familiar

    choices, sure, familiar = told()
    monkeypatch.setattr(stand_ins, "MANY", 512)
    few_choices, few_sure, few_familiar = told()
    assert choices.equal(few_choices) and few_sure == pytest.approx(sure, abs=0.02)
    assert float((familiar - few_familiar).abs().mean()) < 0.2


def test_hidden_causes_learned_from_stand_ins_are_those_learned_from_all(many, monkeypatch):
    patterns, queries, _ = drawn(2000, 200)
    form, asked = correlated.Form(), queries.double()
    few = correlated.fit_queries(patterns, asked, form, 15, None)
    monkeypatch.setattr(stand_ins, "MANY", 2**16)
    whole = correlated.fit_queries(patterns, asked, form, 15, None)
    torch.testing.assert_close(few.bias, whole.bias, atol=0.05, rtol=0)
    torch.testing.assert_close(few.log_psi, whole.log_psi, atol=0.15, rtol=0)
    told = correlated.mutual_information(whole, patterns, asked)
    monkeypatch.setattr(stand_ins, "MANY", 512)
    assert correlated.mutual_information(whole, patterns, asked) == pytest.approx(told, rel=0.02)


@pytest.fixture(scope="module")
def world():
    return drawn(1500, 400, dim=10)


def right(world, origins=None):
    patterns, queries, wanted = world
    memory = BayesianHopfield(patterns).fit(queries, origins, verbose=False)
    return float((memory.recall(queries).indices[:, 0] == wanted).double().mean()), memory.report


@pytest.mark.slow
@pytest.mark.parametrize("labels", [0, 60, 400])
def test_a_fit_with_stand_ins_and_a_sample_of_the_queries_is_as_often_right(many, monkeypatch, world, labels):
    known = torch.where(torch.arange(400) < labels, world[2], -1) if labels else None
    monkeypatch.setattr(stand_ins, "MANY", 2**16)
    whole, before = right(world, known)
    monkeypatch.setattr(stand_ins, "MANY", 1024)
    monkeypatch.setattr(stand_ins, "_SAMPLE", 1024)
    monkeypatch.setattr(fitting, "_WORK", 1)
    monkeypatch.setattr(fitting, "ENOUGH", 200)
    found, report = right(world, known)
    assert found > whole - 0.03 and report.found == before.found
    assert report.sample == ("" if labels == 400 else f"{200 + labels} of 400 queries, drawn at random")
    assert report.confidence == pytest.approx(before.confidence, abs=0.08)


def test_a_sample_is_drawn_by_the_seed_and_keeps_what_is_labelled(monkeypatch):
    patterns, queries, origins = drawn(50, 300)
    data = TrainingData(patterns, queries, torch.where(torch.arange(300) < 20, origins, -1))
    assert fitting.sampled(data) is data
    monkeypatch.setattr(fitting, "_WORK", 1)
    monkeypatch.setattr(fitting, "ENOUGH", 100)
    some = fitting.sampled(data, seed=1)
    assert len(some.queries) == 120 and some.origins[:20].equal(origins[:20])
    assert some.queries.equal(fitting.sampled(data, seed=1).queries)
    assert not some.queries.equal(fitting.sampled(data, seed=2).queries)
