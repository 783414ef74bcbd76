import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop._settle import settle
from ahop.nn import Hopfield

OPTIONS = {"steps": None, "tolerance": 1e-6, "most": 1000}
PATTERNS = 2 * torch.eye(4, dtype=torch.float64)


def halve(state, known):
    return state / 2


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=6))
def test_settling_one_state_does_not_depend_on_the_others(values):
    states = torch.tensor(values, dtype=torch.float64)[:, None]
    together, _ = settle(halve, states, **OPTIONS)
    alone = torch.cat([settle(halve, state[None], **OPTIONS)[0] for state in states])
    assert torch.equal(together, alone)
    assert bool(((halve(together, None) - together).abs() <= OPTIONS["tolerance"]).all())


@given(st.integers(0, 8))
def test_settling_makes_as_many_steps_as_asked_for(steps):
    states, _ = settle(halve, torch.ones(1, 1), **OPTIONS | {"steps": steps, "tolerance": 0.0})
    assert states.item() == 2.0**-steps


def test_settling_leaves_what_was_observed_as_it_was():
    seen = []

    def step(state, known):
        seen.append(known)
        return state / 2 + 1

    observed = torch.tensor([[True, False]])
    states, known = settle(step, torch.tensor([[5.0, 7.0]]), observed, **OPTIONS)
    assert states[0, 0] == 5.0
    assert states[0, 1] == pytest.approx(2.0, abs=1e-5)
    # What the first step filled in is known from then on.
    assert seen[0] is observed
    assert known is None
    assert all(later is None for later in seen[1:])
    assert settle(step, states, observed, **OPTIONS | {"steps": 0})[1] is observed


@pytest.mark.parametrize("end", [lambda state, _: state + 1, lambda state, _: state * torch.nan])
def test_settling_warns_of_what_never_rests(end):
    with pytest.warns(RuntimeWarning, match="the state still moved after 7 steps"):
        settle(end, torch.zeros(2, 3), **OPTIONS | {"most": 7})


@pytest.mark.parametrize("steps", [1, 2, 5, None])
def test_a_layer_settles_as_a_memory_does(steps):
    start = PATTERNS + 0.5 * torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    memory = ahop.ModernHopfield(PATTERNS, beta=1.5)
    updates = None if steps is None else steps - 1
    eps = 1e-5 if steps is None else 0.0
    layer = Hopfield(scaling=1.5, update_steps_max=updates, update_steps_eps=eps).double()
    torch.testing.assert_close(layer((PATTERNS, start, PATTERNS)), memory.retrieve(start, steps))


def test_a_memory_answers_each_query_as_if_it_were_alone():
    # The first rests at once, the second only after a long way.
    start = torch.stack([PATTERNS[0], torch.tensor([1.0, 1.1, 0.9, 1.0], dtype=torch.float64)])
    memory = ahop.ModernHopfield(PATTERNS, beta=1.2)
    alone = torch.stack([memory.retrieve(query, None, tolerance=0.05) for query in start])
    torch.testing.assert_close(memory.retrieve(start, None, tolerance=0.05), alone, atol=1e-12, rtol=0)
