import threading

import pytest

import ahop
from ahop import kernels
from ahop._blocks import budget
from ahop._setting import Setting
from ahop.kernels import dispatch


def test_of_open_blocks_the_last_one_counts_in_whatever_order_they_close():
    size = Setting(0)
    one, other = size.set_to(1), size.set_to(2)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert size.value == 2
    other.__exit__(None, None, None)
    assert size.value == 0


@pytest.mark.parametrize(
    "block, value",
    [(lambda: ahop.memory_budget(2**21), budget), (lambda: kernels.use("reference"), lambda: dispatch._forced.value)],
)
def test_threads_that_set_the_same_leave_it_as_it_was(block, value):
    before, inside, leave = value(), threading.Event(), threading.Event()

    def work():
        with block():
            inside.set()
            leave.wait(10)

    # Begins second and ends last.
    other = threading.Thread(target=work)
    with block():
        other.start()
        inside.wait(10)
    leave.set()
    other.join()
    assert value() == before


def test_a_block_that_breaks_off_is_closed():
    size = Setting(0)
    with pytest.raises(ZeroDivisionError), size.set_to(1):
        raise ZeroDivisionError
    assert size.value == 0
