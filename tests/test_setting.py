import asyncio
import importlib.util
import threading

import pytest
import torch

import ahop
from ahop import kernels
from ahop._blocks import MEBIBYTE, budget, pairwise
from ahop._setting import SetHere, Setting
from ahop.kernels import dispatch
from ahop.similarity import Unified

BLOCKS = [
    (lambda: ahop.memory_budget(2**21), budget),
    (lambda: kernels.use("reference"), lambda: dispatch._forced.value),
]


def elsewhere(work):
    """What a new thread finds."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_of_open_blocks_the_last_one_counts():
    size = Setting(0)
    with size.set_to(1):
        with size.set_to(2):
            assert size.value == 2
        assert size.value == 1
    assert size.value == 0


def test_a_block_that_breaks_off_is_closed():
    size = Setting(0)
    with pytest.raises(ZeroDivisionError), size.set_to(1):
        raise ZeroDivisionError
    assert size.value == 0


@pytest.mark.parametrize("block, value", BLOCKS)
def test_what_one_thread_sets_changes_no_other(block, value):
    before = value()
    with block():
        assert value() != before
        assert elsewhere(value) == before


@pytest.mark.parametrize("block, value", BLOCKS)
def test_threads_open_and_close_blocks_in_any_order(block, value):
    before, inside, leave = value(), threading.Event(), threading.Event()
    found = []

    def work():
        with block():
            inside.set()
            leave.wait(10)
            found.append(value())
        found.append(value())

    # Begins second and ends last.
    other = threading.Thread(target=work)
    with block():
        within = value()
        other.start()
        inside.wait(10)
    assert value() == before
    leave.set()
    other.join()
    assert found == [within, before] and value() == before


def test_what_one_task_sets_changes_no_other():
    async def work(size):
        with ahop.memory_budget(size):
            await asyncio.sleep(0)
            return budget()

    async def both():
        return await asyncio.gather(work(2 * MEBIBYTE), work(3 * MEBIBYTE))

    assert asyncio.run(both()) == [2 * MEBIBYTE, 3 * MEBIBYTE]


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
def test_threads_that_the_library_starts_inherit_what_is_set(threads):
    from ahop.kernels.compiled import share

    threads(4)
    found = []
    with ahop.memory_budget(2**21):
        share(4, lambda *span: found.append((threading.get_ident(), budget())))
    assert {size for _, size in found} == {2**21} and len(found) == 4
    assert threading.get_ident() not in {thread for thread, _ in found}


def test_what_is_taken_over_gives_way_to_what_a_thread_sets_itself():
    size, other = Setting(0), Setting(0)
    with size.set_to(1), other.set_to(1):
        here = SetHere()

    def work():
        with size.set_to(2), here.taken_over():
            inside = size.value, other.value
        return inside, (size.value, other.value)

    assert elsewhere(work) == ((2, 1), (0, 0))


def test_a_backward_pass_in_another_thread_keeps_to_the_budget_of_its_forward_pass():
    """As on a GPU, where it is a thread of PyTorch's own."""
    found, queries = [], torch.ones(3, 2, requires_grad=True)

    def block(patterns, queries):
        found.append(budget())
        return queries @ patterns.mT

    with ahop.memory_budget(2**21):
        scores = pairwise(block, torch.ones(4, 2), queries, width=2)
    elsewhere(lambda: scores.sum().backward())
    assert found == [2**21, 2**21]


def test_a_backward_pass_in_another_thread_runs_on_the_backend_of_its_forward_pass(monkeypatch):
    found, chosen = [], dispatch._chosen
    monkeypatch.setattr(dispatch, "_chosen", lambda pairs: found.append(dispatch._forced.value) or chosen(pairs))
    queries = torch.ones(3, 2, requires_grad=True)
    with kernels.use("reference"):
        scores = kernels.scores(torch.ones(4, 2), queries, torch.ones(1, 2), ["dot"])
    elsewhere(lambda: scores.sum().backward())
    assert found == ["reference", "reference"]


@pytest.mark.parametrize("learning", [False, True])
def test_what_works_in_blocks_can_be_compiled(learning):
    similarity, patterns = Unified(torch.ones(4)), torch.randn(5, 4)
    queries = torch.randn(3, 4, requires_grad=learning)
    whole = torch.compile(similarity, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(whole(patterns, queries), similarity(patterns, queries))
