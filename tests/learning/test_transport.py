import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ahop.learning.transport import shared_out


def drawn(seed, count, columns, scale):
    generator = torch.Generator().manual_seed(seed)
    scores = (scale * torch.randn(count, columns, generator=generator, dtype=torch.float64)).log_softmax(1)
    return scores, torch.arange(columns).expand(count, columns), generator


def taken(plan, columns, count):
    return torch.zeros(count, dtype=torch.float64).index_add(0, columns.flatten(), plan.flatten())


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12), st.floats(0.1, 30))
def test_every_query_goes_somewhere_and_no_column_takes_more_than_its_room(seed, count, width, scale):
    scores, columns, generator = drawn(seed, count, width, scale)
    room = torch.randint(1, 4, (width,), generator=generator)
    # Somewhere for those that find no room.
    room[-1] = count
    log, converged = shared_out(scores, columns, room)
    assert converged
    torch.testing.assert_close(log.exp().sum(1), torch.ones(count, dtype=torch.float64))
    assert bool((taken(log.exp(), columns, width) <= room + 0.02).all())


def test_the_plan_solves_the_equations_of_the_page():
    scores, columns, _ = drawn(1, 30, 8, 3.0)
    room = torch.tensor([2, 3, 2, 4, 1, 2, 3, 30])
    shift = shared_out(scores, columns, room).log - scores
    # The last column has room to spare, so it has no price.
    u, v = shift[:, -1], shift[0] - shift[0, -1]
    torch.testing.assert_close(shift, u[:, None] + v)
    torch.testing.assert_close(u, -(scores + v).logsumexp(1))
    wanted = (room.double().log() - (scores + u[:, None]).logsumexp(0)).clamp_max(0)
    assert bool((v < 0).any()) and float((v - wanted).abs().max()) < 0.03


def test_a_plan_with_room_for_all_is_what_each_query_says_by_itself():
    scores, columns, _ = drawn(2, 20, 6, 2.0)
    torch.testing.assert_close(shared_out(scores, columns, torch.full((6,), 20)).log, scores)


def test_columns_may_be_others_for_each_query():
    scores, columns, generator = drawn(3, 12, 9, 2.0)
    order = torch.stack([torch.randperm(9, generator=generator) for _ in range(12)])
    room = torch.tensor([1] * 8 + [12])
    shuffled = shared_out(scores.gather(1, order), order, room).log
    assert float((shuffled.exp() - shared_out(scores, columns, room).log.exp().gather(1, order)).abs().max()) < 0.01


def test_a_plan_that_has_not_converged_says_so(monkeypatch):
    scores, columns, _ = drawn(4, 30, 8, 3.0)
    monkeypatch.setattr("ahop.learning.transport._STEPS", 1)
    assert not shared_out(scores, columns, torch.tensor([1] * 7 + [30])).converged


@pytest.mark.parametrize("gap", [1.0, 1000.0])
def test_a_price_is_found_however_far_it_is(gap):
    scores = torch.tensor([[0.0, -gap], [0.0, -2 * gap]], dtype=torch.float64)
    log, converged = shared_out(scores, torch.tensor([[0, 1], [0, 1]]), torch.tensor([1, 2]))
    assert converged and float(log[:, 0].exp().sum()) <= 1.02 and float(log[1, 0]) > float(log[0, 0])
