import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahop._cycle import cycle


@given(st.integers(1, 500))
def test_a_cycle_of_any_length_rises_to_the_whole_rate_and_falls_to_nothing(steps):
    rates = [cycle(step, steps) for step in range(steps)]
    top = rates.index(max(rates))
    assert max(rates) == 1.0
    assert min(rates) > 0.0
    assert rates == sorted(rates[: top + 1]) + sorted(rates[top + 1 :], reverse=True)
    # A schedule asks once more behind the last step.
    assert cycle(steps, steps) == (1.0 if steps == 1 else pytest.approx(0.0, abs=1e-12))


@given(st.integers(20, 500), st.floats(0, 1))
def test_a_cycle_is_the_same_in_any_unit(steps, done):
    rise = steps // 10
    assert math.isclose(cycle(done * steps, steps), cycle(done, 1, rise / steps, first=1 / steps), abs_tol=1e-9)
