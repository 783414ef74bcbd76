"""What a fit says of itself, for every family that takes part in fits."""

import pytest
import torch

from ahop.similarity.families import fitting
from ahop.similarity.families.family import FAMILIES, with_simplest
from ahop.similarity.families.training import TrainingData
from ahop_paper.drawing import Draw

PATTERNS, DIM, QUERIES, LABELS, ASKED, FITS = 60, 8, 160, 20, 500, 10


def shifted(rows, draw):
    return rows + draw.normal(DIM) + (0.3 + 1.2 * draw.uniform(DIM)) * draw.normal(*rows.shape)


def moved(rows, draw):
    return rows @ torch.linalg.qr(draw.normal(DIM, DIM)).Q + 0.6 * draw.normal(*rows.shape)


def floored(rows, draw):
    heard = draw.uniform(*rows.shape) > 0.3
    return heard * (rows + 0.3 * draw.normal(*rows.shape)).clamp_min(0)


def blurred(rows, draw):
    return rows + 1.5 * draw.normal(len(rows), 2) @ draw.normal(2, DIM) + 0.5 * draw.normal(*rows.shape)


# What each family was made for: patterns of normal rows, and what happens to queries.
WORLDS = {
    "plain metrics": (lambda rows: rows, lambda rows, draw: rows + 0.9 * draw.normal(*rows.shape)),
    "single dimensions": (lambda rows: rows, shifted),
    "hidden causes": (lambda rows: rows, blurred),
    "a floor": (lambda rows: rows.clamp_min(0), floored),
    "a random gain": (torch.exp, lambda rows, draw: rows * (0.8 * draw.normal(*rows.shape)).exp()),
    "a moved space": (lambda rows: rows, moved),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
@torch.no_grad()
def test_with_twenty_labels_the_interval_of_a_report_holds_the_truth_nine_times_in_ten(name):
    stored, happens = WORLDS[name]
    held = 0
    for seed in range(FITS):
        draw = Draw(seed)
        patterns = stored(draw.normal(PATTERNS, DIM))
        origins = draw.below(PATTERNS, QUERIES + ASKED)
        queries = happens(patterns[origins], draw)
        known = origins[:QUERIES].where(torch.arange(QUERIES) < LABELS, torch.tensor(-1))
        data = TrainingData(patterns, queries[:QUERIES], known)
        learned = fitting.learn(data, with_simplest([FAMILIES[name]]), seed, show=False)
        right = (learned.model(patterns, queries[QUERIES:]).argmax(1) == origins[QUERIES:]).double().mean()
        low, high = learned.report.interval
        assert learned.report.labels == LABELS
        held += low <= float(right) <= high
    # Seven or more of ten but once in eighty, where nine are promised.
    assert held >= 7
