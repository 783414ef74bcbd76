"""What a memory of cases may know of a row while it learns from it, and of rows that are held out."""

import numpy as np
import pytest
import torch
from tests.guards import Watch, apart, rows

from ahop.estimators import HopfieldClassifier, tables, training
from ahop.estimators.cases import CaseNetwork, Rows
from ahop.estimators.training import Training
from ahop.nn.rows import RowEmbedding

COUNT, BATCH = 30, 12


def answers(labels, cases, monkeypatch):
    """What a step of training reads out for its batch, with all that is drawn by chance drawn alike."""
    torch.manual_seed(0)
    numbers, codes = torch.randn(COUNT, 2), torch.zeros(COUNT, 0, dtype=torch.long)
    network = CaseNetwork(RowEmbedding(2, [], 8), "euclidean", 2, classifies=True)
    monkeypatch.setattr(network, "loss", lambda read, batch: read.detach())
    table = Rows(numbers, codes, torch.eye(2)[labels])
    step = Training(epochs=1, batch=BATCH, further=COUNT, rate=0.0, decay=0.0, patience=1)
    # The batch goes over the end, and begins again.
    return step._loss(network, table, torch.arange(COUNT), COUNT - BATCH // 2, cases)


@pytest.mark.parametrize("cases", [None, torch.arange(0, COUNT, 2)])
def test_no_row_hears_its_own_label(cases, monkeypatch):
    labels = torch.arange(COUNT) % 3 % 2
    plain = answers(labels, cases, monkeypatch)
    batch = (torch.arange(BATCH) + COUNT - BATCH // 2) % COUNT
    for place, row in enumerate(batch.tolist()):
        other = answers(torch.where(torch.arange(COUNT) == row, 1 - labels, labels), cases, monkeypatch)
        assert torch.equal(other[place], plain[place])
        # The others hear it, if it is a case at all.
        heard = cases is None or row in cases
        assert (other != plain).any() == heard


@pytest.mark.parametrize("cases", ["all", "sampled"])
def test_held_out_rows_are_neither_learned_from_nor_cases(cases, monkeypatch):
    """They decide which pass was best, and how sure to be."""
    watch = Watch(monkeypatch).on(Training, "fit").on(training, "_held_out_loss").on(tables, "temperature")
    draw = np.random.default_rng(0)
    settings = {"cases": cases, "n_cases": 40, "width": 4, "epochs": 2, "members": 2, "random_state": 0}
    HopfieldClassifier(**settings).fit(draw.normal(size=(200, 3)), draw.integers(0, 2, 200))
    assert len(watch.of("temperature")) == 2 and len(watch.of("_held_out_loss")) == 4
    for fit, softened in zip(watch.of("fit"), watch.of("temperature"), strict=True):
        learned = rows(fit.rows[fit.learned].numbers)
        for judged in fit.inside:
            apart(rows(judged.held.numbers), learned | rows(judged.cases.numbers))
        apart(rows(softened.held.numbers), learned | rows(softened.memory.rows.numbers))
