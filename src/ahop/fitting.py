"""Fitting: the loss that correct retrieval minimises, and two ways down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from ahop._blocks import budget, split
from ahop._checks import choice
from ahop._progress import progress
from ahop.similarity import Adaptive

# The features of all pairs are kept while they take no more than so many budgets; past that, fewer pairs are.
_CACHE = 4
_NEGATIVES = 128
_KNOTS = 64
_SMOOTHNESS = (1e-2, 1e-3, 1e-4, 1e-5)
# Samples worked on together.
_PART = 16


@dataclass(frozen=True)
class FitReport:
    """What a fit says of itself: the final loss, how many iterations it took, and whether it had converged."""

    solver: str
    loss: float
    iterations: int
    converged: bool


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
    return FitReport("adam", recent, steps, converged=change <= 1e-4 * max(1.0, abs(recent)))


@torch.no_grad()
def fit_adaptive(
    similarity: Adaptive,
    patterns: Tensor,
    queries: Tensor,
    origins: Tensor,
    *,
    solver: str = "convex",
    smoothness: float | None = None,
    negatives: int | None = None,
    steps: int = 200,
    rate: float = 0.1,
    seed: int = 0,
) -> FitReport:
    r"""Fit the order weights ``u`` of an adaptive similarity, in place.

    .. math:: \min_u \; -\tfrac1n \sum_x \log \mathrm{softmax}(u^\top \tilde q)_{k(x)}
        + \lambda \sum_{b,j} (u_{b,j+1} - u_{b,j})^2

    With patterns and samples fixed this is multinomial logistic regression with one coefficient per order
    statistic. It is convex: L-BFGS with a strong Wolfe line search finds the only optimum. In more than 64
    dimensions, ``u`` is linear between 64 knots.

    Args:
        similarity: What to fit. Deviations of single patterns, where it has them, are fitted after the shared
            weights, drawn towards zero by a ridge.
        patterns, queries, origins: ``(N, d)``, ``(n, d)``, ``(n,)``.
        solver: ``"convex"``, or ``"adam"`` for the paper's own way: the weights ``w``, and U where it is
            learned, move along the gradient, with no smoothness.
        smoothness: :math:`\lambda`; neighbouring ranks have similar weights. None takes the one that does best
            on a fifth of the samples, held out for that. Not used when nothing is sorted.
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
    table = _Features(similarity, patterns, queries, origins, negatives, knots, seed)
    start = table.to_knots(similarity.order_weights()).flatten()

    if solver == "adam":

        def backward() -> Tensor:
            u = similarity.order_weights().flatten()
            loss, gradient = table.loss_and_gradient(u.detach())
            u.backward(gradient)
            return loss

        moving = [similarity.weight] + ([similarity.matrix_values] if similarity.learn_matrix else [])
        report = adam(moving, backward, steps=steps, rate=rate)  # type: ignore[arg-type]
    else:
        if not similarity.sort:
            smoothness = 0.0
        elif smoothness is None:
            smoothness, start = _choose_smoothness(table, start, steps, seed)
        objective = partial(table.loss_and_gradient, smoothness=smoothness)
        flat, report = _lbfgs(objective, start, steps, "convex fit")
        # The retrieval loss alone, so that fits with other penalties or solvers can be compared.
        report = replace(report, loss=table.loss_and_gradient(flat)[0].item())
        similarity.set_order_weights(table.from_knots(flat.view(len(similarity.bases), -1)))
    if similarity.deviation is not None:
        report = replace(_fit_deviations(similarity, similarity.deviation, table, steps), solver=solver)
    return report


def _choose_smoothness(table: _Features, start: Tensor, steps: int, seed: int) -> tuple[float, Tensor]:
    """From smooth to rough, as long as the loss on a held-out fifth of the samples falls."""
    order = torch.randperm(len(table.parts), generator=torch.Generator().manual_seed(seed)).tolist()
    held_out, shown = order[: len(order) // 5], order[len(order) // 5 :]
    if not held_out:
        return _SMOOTHNESS[1], start
    best, chosen = math.inf, (_SMOOTHNESS[0], start)
    for smoothness in _SMOOTHNESS:
        start, _ = _lbfgs(
            partial(table.loss_and_gradient, smoothness=smoothness, parts=shown), start, steps, "choosing smoothness"
        )
        loss = table.loss_and_gradient(start, parts=held_out)[0].item()
        if loss >= best:
            break
        best, chosen = loss, (smoothness, start)
    return chosen


def _fit_deviations(similarity: Adaptive, deviation: Tensor, table: _Features, steps: int) -> FitReport:
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

        loss = table.visit(score, collect)
        return loss + ridge * flat.square().sum(), gradient.flatten() + 2 * ridge * flat

    start = deviation.new_zeros(len(deviation) * len(u))
    flat, report = _lbfgs(own, start, steps, "each pattern's own weights")
    deviation.copy_(table.from_knots(flat.view(len(deviation), len(similarity.bases), -1)))
    return report


class _Features:
    """What the weights multiply in every pair that the loss looks at: kept while it fits, made again when not.

    With fewer knots than dimensions, the sorted terms are summed into the hat functions of the knots, so that
    weights that are linear between knots are one number per knot here.
    """

    def __init__(
        self,
        similarity: Adaptive,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor,
        negatives: int | None,
        knots: int,
        seed: int,
    ) -> None:
        self.similarity, self.patterns, self.queries = similarity, patterns, queries
        self.hats = _hats(similarity.dim, knots).to(patterns) if knots < similarity.dim else None
        self.bases, self.samples = len(similarity.bases), len(queries)
        width = self.bases * min(knots, similarity.dim) * patterns.element_size()
        if negatives is None:
            fits = self.samples * len(patterns) * width <= _CACHE * budget()
            negatives = 0 if fits else _NEGATIVES
        if negatives < 0:
            raise ValueError(f"negatives must be at least 1, 0 for all patterns, or None; got {negatives}")
        self.chosen: Tensor | None = None
        self.correction: Tensor | float = 0.0
        self.target = origins
        if 0 < negatives < len(patterns) - 1:
            self.chosen, self.correction = _candidates(similarity, patterns, queries, origins, negatives, seed)
            self.target = torch.zeros_like(origins)
        pairs = len(patterns) if self.chosen is None else self.chosen.shape[1]
        # Making features takes room for all dimensions and for the sort beside them.
        self.room = max(1, budget() // (4 * similarity.dim * patterns.element_size()))
        rows = max(1, min(_PART, -(-self.samples // 20), self.room // pairs))
        self.parts = [slice(start, start + rows) for start in range(0, self.samples, rows)]
        kept = self.samples * pairs * width <= _CACHE * budget()
        self.kept = [self._make(part) for part in self.parts] if kept else None

    def to_knots(self, u: Tensor) -> Tensor:
        """Weights ``(bases, d)`` at the knots."""
        return u if self.hats is None else u @ torch.linalg.pinv(self.hats).mT

    def from_knots(self, values: Tensor) -> Tensor:
        """Weights of all ranks, linear between the knots."""
        return values if self.hats is None else values @ self.hats.mT

    def loss_and_gradient(
        self, u: Tensor, smoothness: float = 0.0, parts: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The penalised loss of shared weights ``u``, flat, and its gradient; ``parts`` takes some samples only."""
        gradient = torch.zeros_like(u)

        def collect(part: slice, slope: Tensor, block: Tensor) -> None:
            gradient.add_(slope.flatten() @ block.flatten(0, 1))

        loss = self.visit(lambda part, block: block @ u, collect, parts)
        rough, rows = u.view(self.bases, -1).diff(), gradient.view(self.bases, -1)
        rows[:, 1:] += 2 * smoothness * rough
        rows[:, :-1] -= 2 * smoothness * rough
        return loss + smoothness * rough.square().sum(), gradient

    def visit(
        self,
        score: Callable[[slice, Tensor], Tensor],
        collect: Callable[[slice, Tensor, Tensor], None],
        parts: Sequence[int] | None = None,
    ) -> Tensor:
        """The mean loss of ``score(part, features)``; ``collect`` gets its slope by each score."""
        total = self.patterns.new_zeros(())
        parts = range(len(self.parts)) if parts is None else parts
        samples = sum(len(self.target[self.parts[index]]) for index in parts)
        for index in parts:
            part = self.parts[index]
            block = self._make(part) if self.kept is None else self.kept[index]
            logs = torch.log_softmax(score(part, block) + self.correction, dim=-1)
            here = self.target[part][:, None]
            total -= logs.gather(1, here).sum()
            slope = logs.exp().scatter_add(1, here, logs.new_full(here.shape, -1.0)) / samples
            collect(part, slope, block)
        return total / samples

    def _make(self, part: slice) -> Tensor:
        queries, pairs = (
            self.queries[part][:, None],
            len(self.patterns) if self.chosen is None else self.chosen.shape[1],
        )
        pieces = []
        # One part is one piece, unless a single query with all patterns is more than the budget allows.
        for start in range(0, pairs, max(self.room // len(queries), 1)):
            columns = slice(start, start + max(self.room // len(queries), 1))
            patterns = self.patterns[columns] if self.chosen is None else self.patterns[self.chosen[part, columns]]
            terms = (self.similarity.features(base, patterns, queries) for base in range(self.bases))
            pieces.append(torch.cat([term if self.hats is None else term @ self.hats for term in terms], dim=-1))
        return torch.cat(pieces, dim=1)


def _hats(dim: int, knots: int) -> Tensor:
    """Hat functions of equally spaced knots over the ranks, ``(dim, knots)``."""
    places = torch.linspace(0, knots - 1, dim)
    return (1 - (places[:, None] - torch.arange(knots)).abs()).clamp_min(0)


def _candidates(
    similarity: Adaptive, patterns: Tensor, queries: Tensor, origins: Tensor, negatives: int, seed: int
) -> tuple[Tensor, Tensor]:
    """For each query its origin, its hardest rivals and some random ones, with their log weights.

    The random ones stand for all the others, so each counts as many times as there are others per draw.
    """
    hard = min(negatives // 2, len(patterns) - 1)
    random = negatives - hard
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for part in split(len(queries), len(patterns) * patterns.element_size()):
        scores = sum(base(patterns, queries[part]) for base in similarity.bases)
        assert isinstance(scores, Tensor)
        here = origins[part][:, None]
        ranked = scores.scatter(1, here, -torch.inf).topk(hard, dim=-1).indices
        # Drawn from the others alone, by pushing those already taken out of the race.
        race = torch.rand(scores.shape, generator=generator).to(scores.device)
        drawn = race.scatter(1, here, -1.0).scatter(1, ranked, -1.0).topk(random, dim=-1).indices
        rows.append(torch.cat([here, ranked, drawn], dim=1))
    correction = torch.zeros(1 + hard + random, dtype=patterns.dtype, device=patterns.device)
    correction[1 + hard :] = math.log(max(1.0, (len(patterns) - 1 - hard) / max(1, random)))
    return torch.cat(rows), correction


def _lbfgs(
    function: Callable[[Tensor], tuple[Tensor, Tensor]], start: Tensor, steps: int, title: str
) -> tuple[Tensor, FitReport]:
    """Minimise a smooth convex function that gives its own gradient."""
    point = start.detach().clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [point],
        max_iter=steps,
        max_eval=20 * steps,
        history_size=20,
        tolerance_grad=1e-5,
        tolerance_change=1e-7,
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
    return point.detach(), FitReport("convex", loss.item(), iterations, converged=iterations < steps)
