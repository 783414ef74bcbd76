import math

import pytest
import torch

from ahop.paper.parallel import each


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_is_done(workers):
    assert sorted(each(math.hypot, [(3, 4), (5, 12), (8, 15)], workers)) == [5, 13, 17]


def test_processes_have_one_thread_each():
    assert list(each(torch.get_num_threads, [(), ()], workers=2)) == [1, 1]
