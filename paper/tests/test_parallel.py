import itertools
import math
from types import SimpleNamespace

import pytest
import torch

from ahop_paper import parallel
from ahop_paper.parallel import TimeUp, each


def test_every_job_is_done_here():
    assert list(each(math.hypot, [(3, 4), (5, 12), (8, 15)], 1)) == [5, 13, 17]


@pytest.mark.slow
def test_every_job_is_done_by_processes_of_one_thread_each():
    assert sorted(each(max, [(3, 4), (5, 12), (8, 15)], 2)) == [4, 12, 15]
    assert list(each(torch.get_num_threads, [(), ()], 2)) == [1, 1]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_job_begins_after_the_time_and_those_that_have_begun_end(workers, monkeypatch):
    monkeypatch.setattr(parallel, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    found = []
    with pytest.raises(TimeUp):
        for one in each(max, [(1, 2), (3, 4), (5, 6)], workers, until=2):
            found.append(one)
    assert sorted(found) == [2, 4]
