import math

import torch

from ahop.paper.parallel import each


def test_every_job_is_done_here():
    assert list(each(math.hypot, [(3, 4), (5, 12), (8, 15)], 1)) == [5, 13, 17]


def test_every_job_is_done_by_processes_of_one_thread_each():
    assert sorted(each(max, [(3, 4), (5, 12), (8, 15)], 2)) == [4, 12, 15]
    assert list(each(torch.get_num_threads, [(), ()], 2)) == [1, 1]
