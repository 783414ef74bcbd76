"""A few queries on a GPU: steps that are recorded once, for a GPU to run without being told each of them.

A recall takes some hundred small steps, and telling a GPU of each takes longer than the steps themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# Runs before a recording, in which libraries set themselves up.
_WARM_UP_RUNS = 2


class Recorded:
    """A function from one tensor to several, as a graph of its steps.

    It must not look at values on the way, and what else it reads must stay where it is.

    Args:
        function: What to record.
        example: An argument of the shape that all have.
    """

    def __init__(self, function: Callable[[Tensor], tuple[Tensor, ...]], example: Tensor) -> None:
        self.given = example.clone()
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(_WARM_UP_RUNS):
                function(self.given)
        torch.cuda.current_stream().wait_stream(beside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.found = function(self.given)

    def __call__(self, argument: Tensor) -> tuple[Tensor, ...]:
        self.given.copy_(argument)
        self.graph.replay()
        return tuple(one.clone() for one in self.found)
