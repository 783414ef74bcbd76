"""Fits of a-, k- and k2-hop, queries of another width, adapters of queries and comparisons: sound, or refused."""

import re
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.test_fits import LAYOUTS, NOISES, drawn, right, stored

import ahop

ARGUMENTS = re.compile(r"\b(patterns|queries|origins|observed|query_adapter)\b")
_TEST, _WORSE = 300, 0.3


@st.composite
def cases(draw):
    """What is stored, what happens to it, and who learns it; numbers come from the seed."""
    return {
        "seed": draw(st.integers(0, 10**6)),
        "work": draw(
            st.sampled_from(["a-hop", "a-hop", "a-hop", "k-hop", "k2-hop", "k2-hop", "other width", "compare"])
        ),
        "patterns": draw(st.integers(1, 30)),
        "dim": draw(st.integers(1, 12)),
        "queries": draw(st.integers(1, 80)),
        "width": draw(st.integers(1, 12)),
        "noise": draw(st.sampled_from(NOISES)),
        "level": draw(st.sampled_from([0.0, 0.1, 0.3, 1.0])),
        "layout": draw(st.sampled_from(LAYOUTS)),
        "missing": draw(st.sampled_from([0.0, 0.0, 0.2])),
        "unit": draw(st.sampled_from([0, 0, -20, 3, 20])),
    }


def check(case):
    random = np.random.default_rng(case["seed"])
    patterns = stored(case, random)
    seen, test = (drawn(case, random, patterns, count) for count in (case["queries"], _TEST))
    with warnings.catch_warnings():
        # That nothing was found, or that learning is unfinished, is said and no mistake.
        warnings.simplefilter("ignore", UserWarning)
        try:
            {"other width": moved, "compare": compared}.get(case["work"], fitted)(case, random, patterns, seen, test)
        except ValueError as error:
            assert "\n" not in str(error) and ARGUMENTS.search(str(error)), error


def rows(case, values):
    return torch.as_tensor(values * 2.0 ** case["unit"]).float()


def options(case):
    return {"observed": "not-nan"} if case["missing"] else {}


def fitted(case, random, patterns, seen, test):
    """With labels nothing is worse by more than chance, and all is finite."""
    memory, asked = ahop.create(case["work"], rows(case, patterns)), rows(case, test[0])
    before = memory.recall(asked, **options(case)).indices[:, 0].numpy()
    if case["work"] == "k-hop":
        memory.fit()
    else:
        memory.fit(rows(case, seen[0]), seen[1], **options(case))
    found = memory.recall(asked, min(3, len(memory)), **options(case))
    assert bool(torch.isfinite(found.probabilities).all()) and bool((found.probabilities >= 0).all())
    assert bool(torch.isfinite(memory.retrieve(asked, **options(case))).all())
    if case["work"] == "k-hop":
        return
    first = found.indices[:, 0].numpy()
    was, now = (right(patterns, one, test[1]).mean() for one in (before, first))
    assert now >= was - _WORSE, f"{was:.2f} falls to {now:.2f}"


def moved(case, random, patterns, seen, test):
    """Queries of another space are answered in theirs, and adapted to that of the patterns."""
    turn = random.normal(size=(case["dim"], case["width"]))
    memory = ahop.BayesianHopfield(rows(case, patterns))
    memory.fit(rows(case, seen[0] @ turn), seen[1], verbose=False, **options(case))
    asked = rows(case, test[0] @ turn)
    found = memory.recall(asked, min(2, len(memory)), **options(case))
    assert found.indices.shape == (_TEST, min(2, len(memory)))
    assert bool(torch.isfinite(found.probabilities).all()) and bool((found.probabilities >= 0).all())
    assert bool(torch.isfinite(memory.familiarity(asked, **options(case))).all())
    adapter = memory.query_adapter()
    if not case["missing"]:
        assert bool(torch.isfinite(torch.as_tensor(adapter(asked))).all())


def compared(case, random, patterns, seen, test):
    """Every line has a share, or says why not."""
    table = ahop.compare(rows(case, patterns), rows(case, seen[0]), seen[1], verbose=False, **options(case))
    assert table.rows and str(table)
    assert all(0 <= row.accuracy <= 1 or row.note for row in table.rows)


@settings(max_examples=4)
@given(cases())
def test_what_is_learned_is_sound_and_no_worse(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases())
def test_much_that_is_learned_is_sound_and_no_worse(case):
    check(case)
