"""Work that several processes share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch


class TimeUp(Exception):  # noqa: N818
    """The time is over, and jobs are left."""


def each(
    work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], workers: int, until: float = math.inf
) -> Iterator[Any]:
    """What comes of every job; with more than one worker in the order in which they end.

    Args:
        work: Called with the parts of a job.
        jobs: What is to be done.
        workers: How many processes; 1 is this one, -1 is one a core.
        until: When no further job begins, by the monotonic clock; those that have begun come to their end.

    Raises:
        TimeUp: In the end, if jobs are left.
    """
    begun = 0

    def in_time() -> Iterator[tuple[Any, ...]]:
        nonlocal begun
        for job in jobs:
            if time.monotonic() >= until:
                return
            begun += 1
            yield job

    if workers == 1:
        yield from (work(*job) for job in in_time())
    else:
        import joblib

        # One at a time: after many short jobs, a batch of long ones would be one worker's, and the others idle. And
        # none that waits: it could begin after the time.
        pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
        yield from pool(joblib.delayed(_alone)(work, *job) for job in in_time())
    if begun < len(jobs):
        raise TimeUp


def _alone(work: Callable[..., Any], *job: Any) -> Any:
    # A process has one core: threads would get in each other's way.
    torch.set_num_threads(1)
    return work(*job)
