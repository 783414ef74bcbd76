"""Fit the weights of footprints: a convex problem, or the paper's own way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ahop._checks import choice, require_finite
from ahop._progress import progress
from ahop.learning.chance import few_more_than_chance
from ahop.learning.features import Features, Weighted
from ahop.learning.gradient import adam, lbfgs, more_steps
from ahop.learning.holdout import holdout_split
from ahop.learning.report import FitReport

Array = npt.NDArray[np.float64]

_KNOTS = 64
_SMOOTHNESS = (1e-2, 1e-3, 1e-4, 1e-5)
# Fewer samples than this prove nothing; of fewer than the second, every one judges once, or too few would.
_MIN_SAMPLES, _MANY_SAMPLES = 5, 256
_FOLDS = 5
# Fewer samples than this teach no pattern weights of its own.
_MIN_OWN_SAMPLES = 64
# Standard errors by which fits have to be better than their start on what was held out (as Student's t has it).
_MIN_STANDARD_ERRORS = 2.0


@torch.no_grad()
def fit_adaptive(
    similarity: Weighted,
    patterns: Tensor,
    queries: Tensor,
    origins: Tensor,
    *,
    observed: Tensor | None = None,
    solver: str = "convex",
    smoothness: float | None = None,
    negatives: int | None = None,
    steps: int = 200,
    rate: float = 0.1,
    seed: int = 0,
) -> FitReport:
    r"""Fit the order weights ``u`` of an adaptive similarity, in place, from where its bases count alike.

    .. math:: \min_u \; -\tfrac1n \sum_x \log \mathrm{softmax}(u^\top \tilde q)_{k(x)}
        + \lambda \sum_{b,j} (u_{b,j+1} - u_{b,j})^2

    With patterns and samples fixed this is multinomial logistic regression with one coefficient per order
    statistic. It is convex: quasi-Newton steps that start from an estimate of the curvature find the only optimum.
    In more than 64 dimensions, ``u`` is linear between 64 knots.

    Unless a smoothness is given, weights stay where bases count alike if fits are not better than that on samples
    that were held out, by more than chance; so they do with fewer than five samples.

    Args:
        similarity: What to fit. Deviations of single patterns, where it has them, are fitted after the shared
            weights, drawn towards zero by a ridge; with fewer than 64 samples they are zero.
        patterns, queries, origins: ``(N, d)``, ``(n, d)``, ``(n,)``, in float32 or better.
        observed: Which entries of the queries to learn from, ``(n, d)``; None is all.
        solver: ``"convex"``, or ``"adam"`` for the paper's own way: the weights ``w``, and U where it is
            learned, move along the gradient, with no smoothness.
        smoothness: :math:`\lambda`; neighbouring ranks have similar weights. None takes the one that does best
            on one in five of the samples, held out for that. When nothing is sorted, it is 0.
        negatives: How many patterns besides the origin each query is told apart from: half of them the ones
            hardest to tell by the bases alone, half drawn at random. 0 takes all. None takes all while their
            features fit in four memory budgets (1 GiB), and 128 beyond.
        steps: Most iterations of either solver.
        rate: Adam's learning rate.
        seed: For the random negatives and for the samples held out.
    """
    choice(solver, "solver", ("convex", "adam"))
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    if smoothness is not None and smoothness < 0:
        raise ValueError(f"smoothness must not be negative, got {smoothness}")
    knots = _KNOTS if solver == "convex" and similarity.sort else similarity.dim
    table = Features(similarity, patterns, queries, origins, observed, negatives, knots, seed)

    if solver == "adam":
        # Steps of Adam are as long as they are: so the weights are moved in the units of the terms.
        similarity.set_order_weights(torch.ones_like(similarity.weight))

        def backward() -> Tensor:
            u = similarity.order_weights().flatten()
            loss, gradient = table.loss_and_gradient(u.detach().to(table.patterns.dtype))
            u.backward(gradient.to(u.dtype))
            return loss

        matrix = similarity.matrix_values
        moving = [similarity.weight, *([matrix] if isinstance(matrix, nn.Parameter) else [])]
        report = adam(moving, backward, steps=steps, rate=rate)
        similarity.weight.div_(table.units)
    else:
        flat, report = _convex(table, similarity.sort, smoothness, steps, seed)
        # The retrieval loss alone, so that fits with other penalties or solvers can be compared.
        report = replace(report, loss=table.loss_and_gradient(flat)[0].item())
        similarity.set_order_weights(table.from_knots(flat.view(len(similarity.bases), -1)))
    if similarity.deviation is not None and table.samples >= _MIN_OWN_SAMPLES:
        report = replace(_fit_deviations(similarity, similarity.deviation, table, steps), solver=solver)
    for learned in similarity.parameters():
        require_finite(learned, "what was learned from these patterns and queries")
    return report


def _convex(table: Features, sort: bool, smoothness: float | None, steps: int, seed: int) -> tuple[Tensor, FitReport]:
    """The optimum; or the start, where nobody asked for a smoothness and fits are no better than that."""
    start = point = table.start()
    if smoothness is None:
        kept = start, FitReport("convex", 0.0, 0, converged=True)
        if table.samples < _MIN_SAMPLES:
            return kept
        smoothness, point = _choose_smoothness(table, start, _SMOOTHNESS if sort else (0.0,), steps, seed)
        if not few_more_than_chance(_gains(table, start, point, smoothness, steps, seed), _MIN_STANDARD_ERRORS):
            return kept
    return _newton(table, point, smoothness if sort else 0.0, table.even_shares(), steps, "convex fit")


def _choose_smoothness(
    table: Features, start: Tensor, levels: tuple[float, ...], steps: int, seed: int
) -> tuple[float, Tensor]:
    """From smooth to rough, as long as the loss on held-out samples falls; and the weights learned from the others."""
    _, held_out = holdout_split(table.samples, seed)
    shown, judged = _shares(table, held_out)
    best, chosen = math.inf, (levels[0], start)
    for smoothness in levels:
        start, _ = _newton(table, start, smoothness, shown, steps, "choosing smoothness")
        loss = table.loss_and_gradient(start, shares=judged)[0].item()
        if loss >= best:
            break
        best, chosen = loss, (smoothness, start)
    return chosen


def _gains(table: Features, start: Tensor, point: Tensor, smoothness: float, steps: int, seed: int) -> Tensor:
    """By how much a fit that has not seen a sample tells it apart better than the start: of some samples each, or all.

    Args:
        table: The features.
        start, point: Where fits begin, and what was learned when smoothness was chosen.
        smoothness: That of the fits.
        steps: Most iterations.
        seed: That by which smoothness was chosen.
    """
    shown, held_out = (part.to(start.device) for part in holdout_split(table.samples, seed))
    learned = [(held_out, point)]
    if table.samples < _MANY_SAMPLES:
        for fold in shown.tensor_split(_FOLDS - 1):
            shares, _ = _shares(table, fold)
            learned.append((fold, _newton(table, start, smoothness, shares, steps, "judging the fit")[0]))
    return torch.cat([table.losses(start, fold) - table.losses(u, fold) for fold, u in learned])


def _shares(table: Features, held_out: Tensor) -> tuple[Tensor, Tensor]:
    """How much each sample counts ``(n,)`` in learning and in judging, where some are held out."""
    judged = torch.zeros_like(table.even_shares())
    judged[held_out.to(judged.device)] = 1 / len(held_out)
    return (judged == 0).to(judged) / (table.samples - len(held_out)), judged


def _fit_deviations(similarity: Weighted, deviation: Tensor, table: Features, steps: int) -> FitReport:
    """Fit what each pattern's weights add to the shared ones; a pattern never seen keeps the shared ones."""
    u, chosen = table.to_knots(similarity.order_weights()).flatten(), table.chosen
    # A ridge worth one sample: a single query moves a pattern's weights little, many move them freely.
    ridge = 1.0 / table.samples

    def own(flat: Tensor) -> tuple[Tensor, Tensor]:
        delta = flat.view(len(deviation), -1)
        gradient = torch.zeros_like(delta)

        def score(part: slice, block: Tensor) -> Tensor:
            return block @ u + (block * (delta if chosen is None else delta[chosen[part]])).sum(-1)

        def collect(part: slice, slope: Tensor, block: Tensor) -> None:
            pull = slope[..., None] * block
            if chosen is None:
                gradient.add_(pull.sum(0))
            else:
                gradient.index_add_(0, chosen[part].flatten(), pull.flatten(0, 1))

        loss = table.visit(score, collect, table.even_shares())
        return loss + ridge * flat.square().sum(), gradient.flatten() + 2 * ridge * flat

    start = u.new_zeros(len(deviation) * len(u))
    flat, report = lbfgs(own, start, steps, "each pattern's own weights")
    deviation.copy_(table.from_knots(flat.view(len(deviation), len(similarity.bases), -1)))
    return report


def _newton(
    table: Features, start: Tensor, smoothness: float, shares: Tensor, steps: int, title: str
) -> tuple[Tensor, FitReport]:
    """Minimise the penalised loss by SciPy's BFGS, which begins with the curvature at the start instead of none.

    The few numbers of a step are worked on in NumPy and float64, whatever the features are and wherever they lie.
    """
    # Here, because it takes a while to import.
    from scipy.optimize import minimize

    origin = start.cpu().double().numpy()
    curve = table.curvature(start, smoothness, shares).cpu().double().numpy()
    # Directions that change nothing have no curvature, or by rounding a negative one.
    levels, ways = np.linalg.eigh(curve)
    # Steps are counted in units in which the curvature is one. The square of a slope is then twice what a Newton step
    # would still gain, which tells when to stop; a slope as it is (with SciPy's hess_inv0) tells nothing of that.
    units = ways / np.sqrt(np.maximum(levels, 1e-6 * levels[-1] + 1e-12))

    def evaluate(step: Array) -> tuple[float, Array]:
        point = torch.as_tensor(origin + units @ step).to(start)
        loss, gradient = table.loss_and_gradient(point, smoothness, shares)
        both = torch.cat([loss[None], gradient]).cpu().double().numpy()
        return float(both[0]), units.T @ both[1:]

    still = np.zeros_like(origin)
    first = evaluate(still)
    # A loss is worth no more digits than float32 has.
    enough = 1e-6 * max(1.0, abs(first[0]))
    with progress(title) as bar:
        found = minimize(
            lambda step: evaluate(step) if step.any() else first,
            still,
            jac=True,
            method="BFGS",
            callback=lambda _: bar.advance(),
            options={"gtol": math.sqrt(enough), "norm": 2, "maxiter": steps},
        )
    # A step that is lost in rounding ends at the bottom, as far as these numbers can tell, or stuck.
    cut_short, slope = found.nit >= steps, float(found.jac @ found.jac)
    converged = bool(found.success) or (not cut_short and slope <= 1e3 * enough)
    stuck = "give patterns in float64 or raise smoothness: steps are lost in rounding"
    advice = "" if converged else more_steps(steps) if cut_short else stuck
    report = FitReport("convex", float(found.fun), int(found.nit), converged, advice=advice)
    return torch.as_tensor(origin + units @ found.x).to(start), report
