"""Learn a corruption that hits every dimension by itself, whether or not the origins of the queries are known.

Fits a :class:`~ahop.similarity.Likelihood`, or :class:`~ahop.similarity.Regimes` of several, by :mod:`.em` with the
steps of :mod:`.terms`, and decides what a user should not have to: where to start. Whether dimensions differ, how many
kinds of noise and how many regimes there are is decided in :mod:`.refinement`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._precision import reach
from ahop.learning.report import FitReport
from ahop.similarity.density import Density
from ahop.similarity.families import em, stand_ins
from ahop.similarity.families.correlated import learning as correlated
from ahop.similarity.families.independent import terms
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.families.independent.regimes import Regimes
from ahop.similarity.families.independent.terms import Evidence, Shrinkage
from ahop.similarity.families.training import TrainingData

# Patterns that stand for all of them in the share-out of an unlabelled query, and the share that may be left out.
_MAX_CANDIDATES = 64
_NEGLIGIBLE_SHARE = 1e-3
# Values (queries x candidates x dimensions) that an iteration looks at.
_ITERATION_VALUES = 2**21
# Values (queries x patterns x dimensions) that a look for candidates takes, and queries that it is for at least.
_SEARCH_VALUES, _MIN_SEARCH_QUERIES = 2**28, 384
# Queries on which starts are compared, and from which a model is learned anew that is only to be judged.
_TRIAL_QUERIES = 256
# Fewer queries hardly tell a bias.
_MIN_BIAS_QUERIES = 32
# Where unlabelled learning starts, with more noise or with more losses: the share of lost values, and the noise in
# units of the patterns' spread.
_NOISY_STARTS = ((0.3, 0.7), (0.5, 1.0))
_LOSSY_STARTS = ((0.8, 0.15),)


@dataclass
class State:
    """A corruption as it stands: its regimes, the log share of each, and how much alike dimensions are held to be."""

    regimes: list[Likelihood]
    log_rho: Tensor
    shrinkage: Shrinkage = field(default_factory=Shrinkage)

    @classmethod
    def of(cls, similarity: Density) -> State:
        """Take up learning where a similarity stands, without touching it."""
        similarity = copy.deepcopy(similarity)
        if isinstance(similarity, Regimes):
            regimes = [regime for _, regime in similarity.parts() if isinstance(regime, Likelihood)]
            return cls(regimes, torch.log_softmax(similarity.log_rho, 0))
        if not isinstance(similarity, Likelihood):
            raise TypeError(f"similarity must be a Likelihood or Regimes of several, got {type(similarity).__name__}")
        return cls([similarity], similarity.bias.new_zeros(1))


@dataclass(frozen=True)
class Problem:
    """What does not change while a corruption is learned: the data, the kinds to choose from, and the seed."""

    data: TrainingData
    seed: int
    regimes: bool = True
    kept: Tensor | None = None
    """Which of the queries these are, where some were left out."""

    @cached_property
    def spread(self) -> float:
        """How widely patterns are spread; where they are all the same, how widely queries are."""
        patterns, queries = (float(rows.std(0, unbiased=False).mean()) for rows in (self.data.means, self.data.queries))
        return patterns if patterns > 1e-6 else max(queries, 1e-6)

    @property
    def floor(self) -> float:
        """The least noise; narrower than half a step, it would make rounded values more than sure."""
        return max(1e-3 * self.spread, self.data.step / 2)

    @property
    def enough(self) -> int:
        """Queries that can be learned from without labels, and looked up among all patterns, in a bounded time."""
        count, dim = self.data.patterns.shape
        return min(_ITERATION_VALUES // (8 * dim), max(_MIN_SEARCH_QUERIES, _SEARCH_VALUES // (count * dim)))

    def thinned(self, most: int) -> Problem:
        """The same with queries left out by chance when there are more than so many."""
        queries, origins = self.data.queries, self.data.origins
        if len(queries) <= max(64, most):
            return self
        order = torch.randperm(len(queries), generator=torch.Generator().manual_seed(self.seed)).to(queries.device)
        if origins is not None:
            # What is known stays.
            order = order[(origins[order] < 0).long().argsort(stable=True)]
        order = order[: max(64, most)]
        return replace(self, data=self.data.part(order), kept=order if self.kept is None else self.kept[order])

    def mean(self, values: Tensor) -> Tensor:
        """The mean of each dimension over the queries in which it was observed, ``(d,)``."""
        observed = self.data.observed
        return values.mean(0) if observed is None else (values * observed).sum(0) / observed.sum(0).clamp_min(1)

    def similarity(self, state: State) -> Likelihood | Regimes:
        """A corruption as a similarity: of one regime, or of several."""
        if len(state.regimes) == 1:
            return state.regimes[0]
        together = Regimes(state.regimes).to(state.log_rho)
        together.log_rho.copy_(state.log_rho)
        return together

    def pairs(self) -> Evidence:
        """Queries beside their known origins."""
        data = self.data
        assert data.origins is not None
        return Evidence.labelled(data.patterns, data.queries, data.origins, data.observed)

    @torch.no_grad()
    def candidates(self, state: State) -> Evidence:
        """Queries beside the patterns that are likeliest to be their origins under what is known now."""
        patterns, queries, log_prior = self.data.patterns, self.data.queries, self.data.log_prior
        similarity, chosen, needed = self.similarity(state), [], []
        most = min(len(patterns), max(8, min(_MAX_CANDIDATES, _ITERATION_VALUES // queries.numel())))
        for part in split(len(queries), len(patterns) * patterns.element_size()):
            some = self.data.part(part)
            scores = similarity(patterns, some.queries, some.observed)
            best = (scores if log_prior is None else scores + log_prior).topk(most, dim=-1)
            left = torch.softmax(best.values, -1).flip(-1).cumsum(-1).flip(-1)
            chosen.append(best.indices)
            # Each query keeps as many as it needs for little to be left out, the likeliest among them.
            needed.append(left > _NEGLIGIBLE_SHARE)
        indices, kept = torch.cat(chosen), torch.cat(needed)
        if self.data.origins is not None:
            known = self.data.origins >= 0
            indices[known, 0], kept[known] = self.data.origins[known], False
            kept[known, 0] = True
        owner, origins = kept.nonzero()[:, 0], indices[kept]
        return Evidence(queries, patterns[origins], owner, self.data.log_priors[origins], self.data.observed)

    def near(self, state: State) -> Problem:
        """The same to look for candidates in, with the patterns that matter under what is known now."""
        return replace(self, data=stand_ins.of(self.data, self.similarity(state)).data)

    def forget_dimensions(self, state: State) -> None:
        """Begin anew, in place, with what differs between dimensions, from these queries alone."""
        data = self.data
        stored = data.means[data.origins] if data.origins is not None and data.labelled else data.means.mean(0)
        bias = self.mean(data.queries - stored)
        for regime in state.regimes:
            regime.bias.copy_(bias)
            regime.log_scale.zero_()
            regime.mask_logits.fill_(float(regime.mask_rate.mean().logit()))

    def iterate(self, state: State, evidence: Evidence, steps: int) -> list[float]:
        """Run EM, in place.

        Args:
            state: The regimes to learn, and how strongly they shrink.
            evidence: The queries and their candidates.
            steps: The most steps to make.

        Returns:
            The bound before each step.
        """
        learner = terms.Learner(evidence, state.regimes, state.log_rho, state.shrinkage, self.floor)
        # The bound is a sum over dimensions.
        return em.iterate(learner, steps, tolerance=max(1e-4, 1e-5 * evidence.queries.shape[1]))


@dataclass
class Fit:
    """Where a fit stands: the corruption, the evidence it was learned from last, and the bound on the way there."""

    problem: Problem
    state: State
    evidence: Evidence
    trace: list[float]

    def similarity(self) -> Likelihood | Regimes:
        return self.problem.similarity(self.state)

    def report(self) -> FitReport:
        settled = len(self.trace) < 2 or self.trace[-1] - self.trace[-2] < 1e-2
        return FitReport("em", -float(self.log_evidence().mean()), len(self.trace), converged=settled)

    def log_evidence(self) -> Tensor:
        """The log evidence of each query, ``(n,)``."""
        return terms.expect(self.evidence, self.state.regimes, self.state.log_rho)[0]

    def residuals(self) -> Tensor:
        """What the likeliest candidate of each query leaves unexplained, ``(n, d)``."""
        evidence = self.evidence
        scores = evidence.explained(self.state.regimes[0]).total.sum(-1)
        top = scores.new_full((len(evidence.queries),), -torch.inf)
        top = top.scatter_reduce(0, evidence.owner, scores, "amax")
        first = (scores == top[evidence.owner]).nonzero().squeeze(1)
        best = torch.zeros_like(evidence.owner[:1]).expand(len(top)).scatter(0, evidence.owner[first], first)
        return evidence.queries - evidence.candidates[best, : evidence.queries.shape[1]]

    def on(self, data: TrainingData) -> Fit:
        """The same fit to go on from, with other values of the very queries it was made for."""
        kept = self.problem.kept
        data = data if kept is None else data.part(kept)
        return replace(self, problem=replace(self.problem, data=data))

    def relearned(self, rows: Tensor) -> Likelihood | Regimes:
        """The corruption as these queries alone show it, as a similarity; of the same form."""
        state = copy.deepcopy(self.state)
        if self.problem.kept is not None:
            rows = torch.isin(self.problem.kept, rows).nonzero().squeeze(1)
        if self.problem.data.labelled:
            # What is learned of each dimension is learned anew: the start must not know the pairs that are left out.
            replace(self.problem, data=self.problem.data.part(rows)).forget_dimensions(state)
            self.problem.iterate(state, self.evidence.part(rows), steps=60)
            return self.problem.similarity(state)
        fewer = replace(self.problem, data=self.problem.data.part(rows), kept=None)
        return settled(fewer, state, 3).similarity()

    def learned_anew(self, rows: Tensor) -> Likelihood | Regimes:
        """The same for judging by the other queries: what was learned of each dimension knows them, and is forgotten.

        A mean gap is a rough bias. Noise that is narrower than it is off would never find the way from there, so that
        the likeliest of several starts counts: noise as it was learned, as much wider, and, where queries are few, no
        bias at all.
        """
        if self.problem.kept is not None:
            rows = torch.isin(self.problem.kept, rows).nonzero().squeeze(1)
        fewer = replace(self.problem, data=self.problem.data.part(rows[:_TRIAL_QUERIES]), kept=None)
        off = 2 * fewer.spread**2 / len(fewer.data.queries)
        starts = [(1.0, 0.0), (1.0, off)] + ([(0.0, 0.0)] if len(rows) < _MIN_BIAS_QUERIES else [])
        states = []
        for biased, wider in starts:
            state = copy.deepcopy(self.state)
            fewer.forget_dimensions(state)
            for regime in state.regimes:
                regime.bias.mul_(biased)
                regime.log_sigma.copy_(((2 * regime.log_sigma).exp() + wider).log() / 2)
            states.append(state)
        return settled(fewer, _ranked(fewer, states, 3, lambda: None)[0], 7).similarity()


# --- the first fit ---------------------------------------------------------------------------------------------------


def from_pairs(problem: Problem) -> Fit:
    """With labels: the better of a background that came before the bias and one that came after it."""
    data, evidence = problem.data, problem.pairs()
    bias = problem.mean(data.gaps)
    tried = []
    for shifted in (False, True):
        state = _plain(problem, bias, shifted, mask=0.3, noise=0.5)
        tried.append((problem.iterate(state, evidence, steps=25), state))
    trace, state = max(tried, key=lambda one: one[0][-1])
    return Fit(problem, state, evidence, trace + problem.iterate(state, evidence, steps=60))


def from_queries(problem: Problem, advance: Callable[[], None]) -> tuple[Fit, State]:
    """Without labels: several starts on some queries, fewer and fewer; then the likeliest to the end on all of them.

    Returns:
        The fit, and the state of the start that came second.
    """
    problem = problem.thinned(problem.enough)
    some = problem.thinned(_TRIAL_QUERIES)
    # A start that takes most values for lost, and starts that take them for noisy, end in different places.
    lossy, noisy = _starts(some, _LOSSY_STARTS), _starts(some, _NOISY_STARTS)
    if some.data.observed is None:
        noisy.append(_unlike(some))
    finalists = [_ranked(some, _ranked(some, kind, 2, advance)[:2], 3, advance)[0] for kind in (lossy, noisy)]
    first, second = _ranked(problem, finalists, 1, advance)
    return settled(problem, first, 40, advance=advance), second


def _starts(problem: Problem, levels: Sequence[tuple[float, float]]) -> list[State]:
    gap = problem.mean(problem.data.queries) - problem.data.means.mean(0)
    # Lost values do not carry the bias when it came before them: the mean shows part of it only.
    return [
        _plain(problem, gap if shifted else gap / (1 - mask), shifted, mask, noise)
        for shifted in (False, True)
        for mask, noise in levels
    ]


def _plain(problem: Problem, bias: Tensor, shifted: bool, mask: float, noise: float) -> State:
    queries, observed = problem.data.queries, problem.data.observed
    values = queries - bias if shifted else queries
    low, high = reach(values if observed is None else values[observed])
    regime = Likelihood(queries.shape[1], shifted=shifted, low=low, high=high).to(queries)
    if step := problem.data.step:
        # A knot for each rounded value and one beyond: more make each a peak, higher than noise can be.
        knots = min(regime.knots, round((high - low) / step) + 3)
        regime = regime.like(low=low - step, high=high + step, knots=knots)
    regime.bias.copy_(bias)
    regime.log_sigma.fill_(math.log(noise * problem.spread))
    regime.mask_logits.fill_(math.log(mask / (1 - mask)))
    return State([regime], queries.new_zeros(1))


def _unlike(problem: Problem) -> State:
    """A start whose dimensions differ in noise, as a Gaussian of their own finds them."""
    patterns, queries = problem.data.means, problem.data.queries
    form = correlated.Form(rank=0)
    rough = correlated.fit_queries(patterns, queries.double(), form, steps=10, start=None)
    state = _plain(problem, rough.bias.to(queries), False, mask=0.05, noise=1.0)
    level = rough.log_psi.mean() / 2
    state.regimes[0].log_sigma.fill_(float(level))
    state.regimes[0].log_scale.copy_(rough.log_psi / 2 - level)
    state.shrinkage = Shrinkage(scale=10.0)
    return state


def _ranked(problem: Problem, states: list[State], rounds: int, advance: Callable[[], None]) -> list[State]:
    """The same states after some rounds, likeliest first."""
    values = []
    for state in states:
        near = problem.near(state)
        for _ in range(rounds):
            trace = problem.iterate(state, near.candidates(state), steps=5)
            advance()
        values.append(trace[-1])
    return [states[place] for place in sorted(range(len(states)), key=lambda place: -values[place])]


def settled(
    problem: Problem,
    state: State,
    most: int,
    trace: Sequence[float] = (),
    advance: Callable[[], None] = lambda: None,
) -> Fit:
    """Look for better candidates, learn from them, and so on until neither changes anything.

    Args:
        problem: The data.
        state: Where to start; learned in place.
        most: The most rounds to make.
        trace: The bound up to here.
        advance: Called after each round.
    """
    near, looked = problem.near(state), True
    fit = Fit(problem, state, near.candidates(state), list(trace))
    for step in range(most):
        fit.evidence = fit.evidence if step == 0 else near.candidates(state)
        gained = problem.iterate(state, fit.evidence, steps=8)
        rests = bool(fit.trace) and gained[-1] - fit.trace[-1] < 1e-2
        fit.trace += gained
        advance()
        if rests and (looked or len(problem.data.patterns) <= stand_ins.MANY):
            break
        # It is over when a new look at all patterns changes nothing.
        near, looked = (problem.near(state), True) if rests else (near, False)
    return fit


def followed(problem: Problem, model: Density) -> Fit:
    """A few rounds from where another fit ended, to what these queries say."""
    state, labelled = State.of(model), problem.data.labelled
    problem = problem if labelled else problem.thinned(problem.enough)
    evidence = problem.pairs() if labelled else problem.near(state).candidates(state)
    if any(_unlike_dimensions(regime) for regime in state.regimes):
        state.shrinkage = terms.estimate_shrinkage(evidence, state.regimes, state.log_rho)
    if labelled:
        return Fit(problem, state, evidence, problem.iterate(state, evidence, steps=20))
    return settled(problem, state, 5)


def _unlike_dimensions(regime: Likelihood) -> bool:
    return any(float(values.max() - values.min()) > 1e-6 for values in (regime.mask_rate, regime.log_scale))
