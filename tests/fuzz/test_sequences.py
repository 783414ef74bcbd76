"""The memories of what comes next, and of one sum, against their equations in NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop


@st.composite
def cases(draw):
    """What is stored, and how states are asked; numbers come from the seed."""
    return {
        "seed": draw(st.integers(0, 10**6)),
        "memory": draw(st.sampled_from(["f-hop", "q-hop", "q-hop, real"])),
        "patterns": draw(st.integers(1, 20)),
        "dim": draw(st.integers(1, 12)),
        "shape": draw(st.sampled_from([(), (1,), (4,), (0,), (2, 3)])),
        "beta": draw(st.sampled_from([0.1, 1.0, 4.0])),
        "noise": draw(st.sampled_from([0.0, 0.1, 1.0])),
    }


def drawn(case, random, signs):
    patterns = random.normal(size=(case["patterns"], case["dim"]))
    states = patterns[random.integers(0, len(patterns), case["shape"])]
    states = states + case["noise"] * random.normal(size=states.shape)
    return (np.where(rows < 0, -1.0, 1.0) for rows in (patterns, states)) if signs else (patterns, states)


def check(case):
    random = np.random.default_rng(case["seed"])
    (summed if case["memory"] == "f-hop" else replayed)(case, random)


def summed(case, random):
    """The energy is that of the features; and what is taken away again was never there."""
    patterns, states = drawn(case, random, signs=False)
    memory = ahop.FourierHopfield(case["dim"], features=256, beta=case["beta"], seed=case["seed"]).double()
    memory.add(patterns)
    waves = memory.frequencies.numpy()
    turns = [rows @ waves.T for rows in (patterns, states)]
    stored, asked = (np.concatenate([np.cos(turn), np.sin(turn)], -1) / np.sqrt(len(waves)) for turn in turns)
    density = asked @ stored.sum(0)
    # What is below the noise of the sum is as good as nothing.
    clear, energy = density > 2 * memory.noise, memory.energy(states).numpy()
    assert energy.shape == tuple(case["shape"])
    np.testing.assert_allclose(energy[clear], -np.log(density[clear]) / case["beta"], atol=1e-6)
    found = memory.retrieve(states)
    assert found.shape == states.shape and bool(torch.isfinite(found).all())
    assert (memory.energy(found).numpy()[clear] <= energy[clear] + 1e-9).all()
    memory.add(2 * patterns).remove(2 * patterns)
    np.testing.assert_allclose(memory.energy(states).numpy()[clear], energy[clear], atol=1e-6)


def replayed(case, random):
    """The next state is what follows the patterns, by how alike they are."""
    binary = case["memory"] == "q-hop"
    patterns, states = drawn(case, random, signs=binary)
    real = {"similarity": "distance", "separation": ahop.separation.Softmax(case["beta"]), "binary": False}
    memory = ahop.SequenceHopfield(torch.as_tensor(patterns), **({} if binary else real))
    after = np.concatenate([patterns[1:], patterns[-1:]])
    apart = ((states[..., None, :] - patterns) ** 2).sum(-1)
    scores = states @ patterns.T if binary else -case["beta"] * apart
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    blend = weights @ after / weights.sum(-1, keepdims=True)
    found = memory.replay(torch.as_tensor(states), 3)
    assert found.shape == (*case["shape"], 3, case["dim"])
    if binary:
        # Which sign nothing has, rounding may say.
        clear = np.abs(blend) > 1e-6
        np.testing.assert_array_equal(found[..., 0, :].numpy()[clear], np.sign(blend)[clear])
    else:
        np.testing.assert_allclose(found[..., 0, :].numpy(), blend, atol=1e-6)
    k = min(3, len(patterns))
    best = memory.recall(torch.as_tensor(states), k)
    assert best.indices.shape == best.probabilities.shape == (*case["shape"], k)
    picked = np.take_along_axis(scores, best.indices.numpy(), -1)
    np.testing.assert_allclose(picked, -np.sort(-scores, -1)[..., :k], atol=1e-6)


@settings(max_examples=30)
@given(cases())
def test_what_comes_next_and_what_a_sum_says_is_what_the_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=1000)
@given(cases())
def test_many_sums_and_sequences_say_what_their_equations_say(case):
    check(case)
