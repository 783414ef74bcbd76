"""The loss that correct retrieval minimises, and ways down that need nothing but gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from ahop._progress import progress
from ahop.learning.report import FitReport


def retrieval_loss(scores: Tensor, origins: Tensor) -> Tensor:
    r"""The mean of :math:`-\log \mathrm{softmax}(s)_{k}` over queries with scores s and origin k.

    It is least when the scores equal :math:`\log p(x \mid \xi_k)` up to a constant of the query.

    Shape:
        scores ``(n, N)``, origins ``(n,)``, to a number.
    """
    return nn.functional.cross_entropy(scores, origins)


def adam(
    parameters: Iterable[nn.Parameter], backward: Callable[[], Tensor], *, steps: int = 200, rate: float = 0.1
) -> FitReport:
    """Take so many steps of Adam; 200 at a rate of 0.1 is what the paper does.

    Args:
        parameters: What to move.
        backward: Gives the loss, after leaving its gradient on the parameters.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    optimiser = torch.optim.Adam(list(parameters), lr=rate)
    recent = change = math.inf
    with progress("Adam", steps) as bar, torch.enable_grad():
        for _ in range(steps):
            optimiser.zero_grad()
            loss = backward().item()
            change, recent = abs(recent - loss), loss
            optimiser.step()
            bar.advance(f"loss {loss:.4f}")
        recent = backward().item()
        optimiser.zero_grad()
    converged = change <= 1e-4 * max(1.0, abs(recent))
    return FitReport("adam", recent, steps, converged, advice="" if converged else more_steps(steps))


def lbfgs(
    function: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor, steps: int, title: str
) -> tuple[Tensor, FitReport]:
    """Minimise a smooth convex function by L-BFGS.

    Args:
        function: Gives the value and the gradient at a point.
        start: Where to start.
        steps: The most iterations to make.
        title: What the progress bar says.

    Returns:
        The minimum, and a report.
    """
    point = start.detach().clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [point],
        max_iter=steps,
        max_eval=20 * steps,
        history_size=20,
        tolerance_grad=1e-5,
        # A loss is worth no more digits than these.
        tolerance_change=1e-6,
        line_search_fn="strong_wolfe",
    )

    with progress(title) as bar:

        def evaluate() -> Tensor:
            loss, point.grad = function(point.detach())
            bar.advance(f"loss {loss.item():.4f}")
            return loss

        optimiser.step(evaluate)
    loss, _ = function(point.detach())
    iterations = optimiser.state[point]["n_iter"]
    converged = iterations < steps
    advice = "" if converged else more_steps(steps)
    return point.detach(), FitReport("convex", loss.item(), iterations, converged, advice=advice)


def more_steps(steps: int) -> str:
    """The advice of a fit that was cut short."""
    return f"raise steps of fit, which were {steps}"
