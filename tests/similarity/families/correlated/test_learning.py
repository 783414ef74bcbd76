import copy
import math
from contextlib import nullcontext

import pytest
import torch

from ahop import metrics
from ahop.memories.bayesian import BayesianHopfield
from ahop.similarity import Correlated, Likelihood, Regimes
from ahop.similarity.families import calibration as trust
from ahop.similarity.families import validation as held_out
from ahop.similarity.families.correlated import learning as correlated
from ahop.similarity.families.correlated.learning import Form
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation
from ahop.variants import Noisy, Samples

GENERATOR = torch.Generator().manual_seed(0)
PATTERNS = torch.randn(60, 24, generator=GENERATOR)
LOADING = torch.randn(24, 3, generator=GENERATOR)


def drifted(count, seed, size=2.0):
    """Queries that three hidden causes have moved."""
    generator = torch.Generator().manual_seed(seed)
    origins = torch.randint(len(PATTERNS), (count,), generator=generator)
    causes = size * torch.randn(count, 3, generator=generator)
    noise = 0.3 * torch.randn(count, 24, generator=generator)
    return Samples(PATTERNS[origins] + 0.5 + causes @ LOADING.T + noise, origins)


@pytest.fixture(scope="module")
def learned():
    """Memories that learned from the same drifted queries, by whether origins were known; not to be changed."""
    seen = drifted(150, 1)
    return {
        labelled: BayesianHopfield(PATTERNS).fit(seen.queries, seen.origins if labelled else None)
        for labelled in (True, False)
    }


# Single dimensions alone explain these queries no better than chance, and say so.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the 150 queries fit these patterns no better")
@pytest.mark.parametrize("labelled", [True, False])
def test_hidden_causes_are_found_and_help(learned, labelled):
    seen, test, memory = drifted(150, 1), drifted(300, 2), learned[labelled]
    assert isinstance(memory.similarity.model, Correlated)
    assert memory.similarity.model.rank >= 2
    without = BayesianHopfield(PATTERNS).fit(seen.queries, seen.origins if labelled else None, hidden_causes=0)
    assert isinstance(without.similarity.model, (Likelihood, Regimes))
    found, blind = (metrics.first_choice_accuracy(m, test) for m in (memory, without))
    assert found > 0.9 > blind


@pytest.mark.parametrize("labelled", [True, False])
def test_their_number_can_be_given(labelled):
    seen = drifted(150, 1)
    memory = BayesianHopfield(PATTERNS).fit(seen.queries, seen.origins if labelled else None, hidden_causes=3)
    assert memory.similarity.model.rank == 3


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, False])
def test_none_are_found_where_there_are_none(labelled):
    seen = Noisy(0.6).sample(PATTERNS, 150)
    memory = BayesianHopfield(PATTERNS).fit(seen.queries, seen.origins if labelled else None)
    assert not isinstance(memory.similarity.model, Correlated)


@pytest.mark.slow
def test_a_stream_with_hidden_causes_is_followed(learned):
    memory = copy.deepcopy(learned[False])
    before = metrics.first_choice_accuracy(memory, drifted(300, 5))
    memory.partial_fit(drifted(150, 3).queries)
    assert isinstance(memory.similarity.model, Correlated)
    assert metrics.first_choice_accuracy(memory, drifted(300, 5)) >= before - 0.03


@pytest.mark.slow
def test_strangers_are_detected_and_answers_are_sure_of_themselves_to_the_right_degree(learned):
    memory, test = learned[True], drifted(400, 2)
    assert metrics.calibration_error(memory, test) < 0.1
    strangers = test.queries + torch.randn(test.queries.shape, generator=GENERATOR)
    known, unknown = memory.familiarity(test.queries), memory.familiarity(strangers)
    assert (known[:, None] > unknown).float().mean() > 0.9
    assert torch.isfinite(memory.familiarity(test.queries, observed=torch.rand(400, 24) < 0.5)).all()


def test_the_gain_is_learned_where_origins_are_known():
    origins = PATTERNS.double().repeat(4, 1)
    queries = 0.5 * origins + 0.1 * torch.randn(240, 24, generator=GENERATOR).double()
    model = correlated.fit_pairs(queries, origins, Form(rank=1, learn_gain=True))
    assert model.gain.item() == pytest.approx(0.5, abs=0.02)


def test_folds_share_no_origin_between_learning_and_judging():
    seen = drifted(300, 1)
    validation = CrossValidation(TrainingData(PATTERNS.double(), seen.queries.double(), seen.origins), 0)
    judged = torch.cat([rows for _, rows in validation.parts])
    assert judged.sort().values.equal(torch.arange(300))
    for learn, rows in validation.parts:
        assert not torch.isin(seen.origins[learn], seen.origins[rows]).any()


def test_the_best_temperature_is_found():
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(4000, 30, generator=generator)
    truth = torch.distributions.Categorical(logits=scores).probs.multinomial(1, generator=generator)
    others = scores.clone().scatter_(1, truth, -torch.inf)
    table = 7 * torch.cat([scores.gather(1, truth), others], 1)
    _, log_beta = held_out.fit_temperature(table)
    assert math.exp(log_beta) == pytest.approx(1 / 7, rel=0.1)
    assert held_out.fit_temperature(table / 7)[1] == 0.0


def test_queries_that_all_go_to_one_pattern_carry_no_information():
    patterns = 100 * torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    told = [
        correlated.mutual_information(correlated.Correlated(4, 0), patterns, queries)
        for queries in (patterns, patterns[3].repeat(50, 1))
    ]
    assert told == pytest.approx([math.log(20), 0], abs=1e-5)


def test_information_is_the_same_however_little_memory_there_is(monkeypatch):
    patterns = torch.rand(30, 4, generator=torch.Generator().manual_seed(0))
    queries = patterns + 0.1
    whole = correlated.mutual_information(correlated.Correlated(4, 0), patterns, queries)
    monkeypatch.setattr(correlated, "split", lambda count, _: [slice(row, row + 7) for row in range(0, count, 7)])
    assert correlated.mutual_information(correlated.Correlated(4, 0), patterns, queries) == pytest.approx(
        whole, rel=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("labels", [0, 30])
def test_labels_judge_hidden_causes_where_there_are_some(labels, monkeypatch):
    """Halves that disagree veto hidden causes, unless known origins say that these find them and others do not."""

    def against(one, other, data):
        return float(getattr(one, "rank", 0) == 0)

    monkeypatch.setattr(trust, "agreement", against)
    seen = drifted(150, 1)
    known = torch.where(torch.arange(150) < labels, seen.origins, -1)
    said = pytest.warns(UserWarning, match="too few to be sure of hidden causes") if not labels else nullcontext()
    with said:
        memory = BayesianHopfield(PATTERNS).fit(seen.queries, known)
    assert (getattr(memory.similarity.model, "rank", 0) > 0) == bool(labels)


def test_a_prior_has_a_say_in_whose_a_query_is():
    """Between two patterns, queries tell nothing of their origin; a prior then tells where the noise has moved them."""
    patterns, queries = torch.tensor([[0.0], [2.0]]).double(), torch.ones(50, 1).double()
    queries += 0.1 * torch.randn(50, 1, generator=torch.Generator().manual_seed(0)).double()
    biases = [
        correlated.fit_queries(patterns, queries, correlated.Form(), 10, None, None, prior).bias.detach().item()
        for prior in (torch.tensor([0.999, 0.001]).log(), torch.tensor([0.001, 0.999]).log())
    ]
    assert biases[0] > 0.5 and biases[1] < -0.5
