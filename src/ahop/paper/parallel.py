"""Work that several processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch


def each(work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """What comes of every job; with more than one worker in the order in which they end.

    Args:
        work: Called with the parts of a job.
        jobs: What is to be done.
        workers: How many processes; 1 is this one, -1 is one a core.
    """
    if workers == 1:
        return (work(*job) for job in jobs)
    import joblib

    # One at a time: after many short jobs, a batch of long ones would be one worker's, and the others idle.
    pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    return pool(joblib.delayed(_alone)(work, *job) for job in jobs)


def _alone(work: Callable[..., Any], *job: Any) -> Any:
    # A process has one core: threads would get in each other's way.
    torch.set_num_threads(1)
    return work(*job)
