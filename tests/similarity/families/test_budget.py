"""Whatever makes a table of queries x patterns while a corruption is learned keeps to the memory budget."""

import pytest
import torch
from tests.similarity.families.largest import Largest

import ahop
from ahop.similarity.families import calibration, completed, familiarity, family, fitting
from ahop.similarity.families.nearest.learning import fit_queries
from ahop.similarity.families.nearest.recipes import Alignment, Metric
from ahop.similarity.families.training import TrainingData

MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def data():
    draw = torch.Generator().manual_seed(0)
    patterns, origins = torch.randn(3000, 4, generator=draw), torch.arange(600)
    queries = patterns[origins] + 0.3 * torch.randn(600, 4, generator=draw)
    return TrainingData(patterns, queries, torch.where(origins % 2 == 0, origins, -1))


@pytest.fixture(scope="module")
def model():
    return ahop.similarity.Likelihood(4)


LEARNED = {
    "confidence": lambda data, model: fitting._confidence(data, model, 1.0),
    "evidence": lambda data, model: family.evidence(data, model),
    "familiarity": lambda data, model: familiarity.genuine_and_strange(data, model, [], 1.0),
    "origins": lambda data, model: calibration.far_behind([(model, data.rows)], data),
    "first choices": lambda data, model: calibration.first_choices(model, data),
    "temperature": lambda data, model: calibration.no_surer_than(0.5, model, data, 0.0),
    "completed": lambda data, model: completed.completed(data, lambda rows: model, 0),
    "metric": lambda data, model: fit_queries(data, Metric(Alignment.CENTRED, "distance")).log_beta,
}


@pytest.mark.parametrize("name", LEARNED)
def test_tables_of_queries_and_patterns_keep_to_the_memory_budget(name, data, model):
    """And what comes of them is the same."""
    with torch.no_grad():
        whole = LEARNED[name](data, model)
        with ahop.memory_budget(MEBIBYTE), Largest() as largest:
            parts = LEARNED[name](data, model)
    assert largest.bytes <= MEBIBYTE
    values = [one.values if isinstance(one, completed.Completed) else torch.as_tensor(one) for one in (whole, parts)]
    torch.testing.assert_close(*values, rtol=1e-4, atol=1e-4)


def test_the_evidence_of_many_queries_keeps_to_the_memory_budget(data):
    memory = ahop.BayesianHopfield(data.patterns)
    whole = memory.log_evidence(data.queries)
    with ahop.memory_budget(MEBIBYTE), Largest() as largest:
        parts = memory.log_evidence(data.queries)
    assert largest.bytes <= MEBIBYTE
    torch.testing.assert_close(whole, parts)
