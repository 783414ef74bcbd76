"""Learn a corruption that hits every dimension by itself, whether or not the origins of the queries are known.

Fits a :class:`~ahop.similarity.Likelihood`, or :class:`~ahop.similarity.Regimes` of several, by :mod:`.em`, and
decides what a user should not have to: where to start, whether dimensions differ, how many kinds of noise and how
many regimes there are.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._precision import reach
from ahop._progress import progress
from ahop.learning.corruption import correlated, em
from ahop.learning.corruption.em import Evidence, Shrinkage
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.report import FitReport

# Patterns that stand for all of them in the share-out of an unlabelled query, and the share that may be left out.
_CANDIDATES = 64
_LEFT_OUT = 1e-3
# Values (queries x candidates x dimensions) that an iteration looks at.
_WORK = 2**21
# Queries on which starts are compared.
_TRIED = 256
# Where unlabelled learning starts: the share of lost values, and the noise in units of the patterns' spread.
_NOISY = ((0.3, 0.7), (0.5, 1.0))
_LOSSY = ((0.8, 0.15),)


@dataclass
class State:
    """A corruption as it stands: its regimes, the log share of each, and how much alike dimensions are held to be."""

    regimes: list[Any]
    log_rho: Tensor
    shrinkage: Shrinkage = field(default_factory=Shrinkage)

    @classmethod
    def of(cls, similarity: Any) -> State:
        """Take up learning where a similarity stands, without touching it."""
        similarity = copy.deepcopy(similarity)
        if not hasattr(similarity, "regimes"):
            return cls([similarity], similarity.bias.new_zeros(1))
        return cls([regime for _, regime in similarity.parts()], torch.log_softmax(similarity.log_rho, 0))


class Learner:
    """One fit: what is stored, what was asked, and the corruption learned so far."""

    state: State
    evidence: Evidence

    def __init__(self, here: Lessons, families: Families, seed: int) -> None:
        self.patterns, self.queries, self.observed = here.patterns, here.queries, here.observed
        self.log_prior, self.families, self.seed = here.log_prior, families, seed
        patterns, queries = self.patterns, self.queries
        spread = float(patterns.std(0, unbiased=False).mean())
        # Patterns that are all the same have no spread, but noise has a size all the same.
        self.spread = spread if spread > 1e-6 else max(float(queries.std(0, unbiased=False).mean()), 1e-6)
        self.floor = 1e-3 * self.spread
        self.labelled = False
        self.other: State | None = None
        self.trace: list[float] = []

    # --- the first fit -----------------------------------------------------------------------------------

    def begin_labelled(self, origins: Tensor) -> None:
        """The better of a background that came before the bias and one that came after it."""
        self.labelled = True
        self.evidence = Evidence.labelled(self.patterns, self.queries, origins, self.observed)
        bias = self._mean(self.queries - self.patterns[origins])
        best = -math.inf
        for shifted in (False, True):
            state = self._plain(bias, shifted, mask=0.3, noise=0.5)
            trace = self._iterate(state, steps=25)
            if trace[-1] > best:
                best, self.state, self.trace = trace[-1], state, trace
        self.trace += self._iterate(self.state, steps=60)

    def begin_unlabelled(self) -> None:
        """Several starts on some of the queries, fewer and fewer; then the likeliest to the end on all of them."""
        self._thin(_WORK // (8 * self.queries.shape[1]))
        everything = self.queries, self.observed
        self._thin(_TRIED)
        gap = self._mean(self.queries) - self.patterns.mean(0)
        # A start that takes most values for lost, and starts that take them for noisy, end in different places. Lost
        # values do not carry the bias when it came before them: the mean shows part of it only.
        lossy, noisy = (
            [
                self._plain(gap if shifted else gap / (1 - mask), shifted, mask, noise)
                for shifted in (False, True)
                for mask, noise in starts
            ]
            for starts in (_LOSSY, _NOISY)
        )
        if self.observed is None and self.families.correlated is not None:
            noisy.append(self._unlike(gap))
        with progress("learning without labels", 2 * len(lossy + noisy) + 12 + 40) as bar:
            finalists = [self._best(self._best(kind, 2, bar.advance)[:2], 3, bar.advance)[0] for kind in (lossy, noisy)]
            self.queries, self.observed = everything
            self.state, self.other = self._best(finalists, 1, bar.advance)
            self.rounds(40, bar.advance)

    def _best(self, states: list[State], rounds: int, advance: Callable[[], None]) -> list[State]:
        """The same states after some rounds, likeliest first."""
        values = []
        for state in states:
            for _ in range(rounds):
                self._refresh(state)
                trace = self._iterate(state, steps=5)
                advance()
            values.append(trace[-1])
        return [states[place] for place in sorted(range(len(states)), key=lambda place: -values[place])]

    def similarity(self, state: State | None = None) -> Any:
        """A corruption as a similarity: of one regime, or of several."""
        state = self.state if state is None else state
        if len(state.regimes) == 1:
            return state.regimes[0]
        together = self.families.regimes(state.regimes).to(state.log_rho)
        together.log_rho.copy_(state.log_rho)
        return together

    def report(self) -> FitReport:
        settled = len(self.trace) < 2 or self.trace[-1] - self.trace[-2] < 1e-2
        return FitReport("em", -float(self.log_evidence().mean()), len(self.trace), converged=settled)

    def residuals(self) -> Tensor:
        """What the likeliest candidate of each query leaves unexplained, ``(n, d)``."""
        best = self.evidence.scores(self.evidence.explained(self.state.regimes[0])).argmax(1)
        rows = torch.arange(len(best), device=best.device)
        return self.evidence.queries - self.evidence.candidates[rows, best]

    def go_on(self, model: Any, origins: Tensor | None) -> None:
        """A few rounds from where another fit ended."""
        state = self.state = State.of(model)
        if origins is not None:
            self.labelled = True
            self.evidence = Evidence.labelled(self.patterns, self.queries, origins, self.observed)
        else:
            self._thin(_WORK // (8 * self.queries.shape[1]))
            self._refresh(state)
        if any(_unlike_dimensions(regime) for regime in state.regimes):
            state.shrinkage = em.estimate_shrinkage(self.evidence, state.regimes, state.log_rho)
        if self.labelled:
            self.trace += self._iterate(state, steps=20)
        else:
            self.rounds(5)

    def rounds(self, most: int, advance: Callable[[], None] = lambda: None) -> None:
        """Look for better candidates, learn from them, and so on until neither changes anything."""
        for _ in range(most):
            self._refresh(self.state)
            trace = self._iterate(self.state, steps=8)
            settled = bool(self.trace) and trace[-1] - self.trace[-1] < 1e-2
            self.trace += trace
            advance()
            if settled:
                break

    def _plain(self, bias: Tensor, shifted: bool, mask: float, noise: float) -> State:
        values = self.queries - bias if shifted else self.queries
        low, high = reach(values if self.observed is None else values[self.observed])
        regime = self.families.independent(self.queries.shape[1], shifted=shifted, low=low, high=high).to(self.queries)
        regime.bias.copy_(bias)
        regime.log_sigma.fill_(math.log(noise * self.spread))
        regime.mask_logits.fill_(math.log(mask / (1 - mask)))
        return State([regime], self.queries.new_zeros(1))

    def _unlike(self, gap: Tensor) -> State:
        """A start whose dimensions differ in noise, as a Gaussian of their own finds them."""
        form = correlated.Form(self.families.correlated, rank=0)
        rough = correlated.fit_queries(self.patterns.double(), self.queries.double(), form, steps=10, start=None)
        state = self._plain(rough.bias.to(gap), False, mask=0.05, noise=1.0)
        level = rough.log_psi.mean() / 2
        state.regimes[0].log_sigma.fill_(float(level))
        state.regimes[0].log_scale.copy_(rough.log_psi / 2 - level)
        state.shrinkage = Shrinkage(scale=10.0)
        return state

    def _thin(self, most: int) -> None:
        """Leave out queries by chance when there are more than so many."""
        if len(self.queries) > max(64, most):
            order = torch.randperm(len(self.queries), generator=torch.Generator().manual_seed(self.seed))
            some = order[: max(64, most)].to(self.queries.device)
            self.queries = self.queries[some]
            self.observed = None if self.observed is None else self.observed[some]

    def _mean(self, values: Tensor) -> Tensor:
        """The mean of each dimension over the queries in which it was observed, ``(d,)``."""
        if self.observed is None:
            return values.mean(0)
        return (values * self.observed).sum(0) / self.observed.sum(0).clamp_min(1)

    @torch.no_grad()
    def _refresh(self, state: State) -> None:
        """Take the likeliest patterns under what is known now as the candidates of each query."""
        similarity, chosen = self.similarity(state), []
        most = min(len(self.patterns), max(8, min(_CANDIDATES, _WORK // self.queries.numel())))
        needed = 1
        for part in split(len(self.queries), len(self.patterns) * self.patterns.element_size()):
            seen = None if self.observed is None else self.observed[part]
            scores = similarity(self.patterns, self.queries[part], seen)
            best = (scores if self.log_prior is None else scores + self.log_prior).topk(most, dim=-1)
            chosen.append(best.indices)
            missing = 1 - torch.softmax(best.values, -1).cumsum(-1)
            needed = max(needed, int(((missing > _LEFT_OUT).sum(-1) + 1).double().quantile(0.99)))
        indices = torch.cat(chosen)[:, :needed]
        level = math.log(1 / len(self.patterns))
        priors = self.patterns.new_full(indices.shape, level) if self.log_prior is None else self.log_prior[indices]
        self.evidence = Evidence(self.queries, self.patterns[indices], priors, self.observed)

    # --- what the data ask for beyond it -----------------------------------------------------------------

    def refine(self) -> None:
        """Let dimensions differ, noise be of several kinds, and queries of several regimes, where that helps."""
        here, there = self._parted()
        if len(there.queries) < 8:
            return
        current = copy.deepcopy(self.state)
        base = self._judge(current, here, there)
        more_regimes = (self._more_regimes, self._more_regimes) if self.families.regimes is not None else ()
        for changes in ((_differing,), (_more_kinds, _more_kinds), more_regimes):
            for change in changes:
                trial = change(copy.deepcopy(current), here)
                value = self._judge(trial, here, there)
                gain = value - base
                if float(gain.mean()) <= max(1e-3, float(gain.std()) / math.sqrt(len(gain))):
                    break
                current, base = trial, value
        self.state = current
        self.trace += self._iterate(self.state, steps=60)
        if not self.labelled and len(self.state.regimes) > 1:
            self.rounds(10)
            self._try_the_other()

    def _try_the_other(self) -> None:
        """What was the likelier start for one regime need not be for several."""
        if self.other is None:
            return
        first, trace, value = self.state, self.trace, float(self.log_evidence().mean())
        self.state, self.other, self.trace = self.other, None, []
        self.rounds(40)
        self.refine()
        if float(self.log_evidence().mean()) < value:
            self.state, self.trace = first, trace
            self._refresh(first)

    def _parted(self) -> tuple[Evidence, Evidence]:
        """Four fifths to learn from, and a fifth to judge on."""
        count = len(self.evidence.queries)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.seed)).to(self.patterns.device)
        return self.evidence.part(order[count // 5 :]), self.evidence.part(order[: count // 5])

    def _judge(self, state: State, here: Evidence, there: Evidence) -> Tensor:
        """Fit on some queries, and give the log evidence of each of the others."""
        self._iterate(state, steps=30, evidence=here)
        return em.expect(there, state.regimes, state.log_rho)[0]

    def _more_regimes(self, state: State, here: Evidence) -> State:
        """One more regime: the commonest splits into the queries it explains well and those it explains badly."""
        total, shares = em.expect(here, state.regimes, state.log_rho)
        common = int(shares.sum((0, 1)).argmax())
        hard = total < total.median()
        new = copy.deepcopy(state.regimes[common])
        for regime, rows in ((state.regimes[common], ~hard), (new, hard)):
            weights = shares[..., common] * rows[:, None]
            for _ in range(8):
                em.maximise(here, regime, weights, state.shrinkage, self.floor)
        log_rho = torch.cat([state.log_rho, state.log_rho[common : common + 1]])
        return State([*state.regimes, new], torch.log_softmax(log_rho, 0), state.shrinkage)

    def _iterate(self, state: State, steps: int, evidence: Evidence | None = None) -> list[float]:
        evidence = self.evidence if evidence is None else evidence
        return em.iterate(
            evidence,
            state.regimes,
            state.log_rho,
            steps=steps,
            shrinkage=state.shrinkage,
            floor=self.floor,
            tolerance=1e-4,
        )

    def relearned(self, rows: Tensor) -> Any:
        """The corruption as these queries alone show it, as a similarity."""
        state = copy.deepcopy(self.state)
        self._iterate(state, steps=15, evidence=self.evidence.part(rows))
        return self.similarity(state)

    def log_evidence(self) -> Tensor:
        """The log evidence of each query, ``(n,)``."""
        return em.expect(self.evidence, self.state.regimes, self.state.log_rho)[0]


def _unlike_dimensions(regime: Any) -> bool:
    return any(float(values.max() - values.min()) > 1e-6 for values in (regime.mask_rate, regime.log_scale))


def _differing(state: State, here: Evidence) -> State:
    return State(state.regimes, state.log_rho, em.estimate_shrinkage(here, state.regimes, state.log_rho))


def _more_kinds(state: State, here: Evidence) -> State:
    """One more kind of noise: the commonest splits into a narrower and a wider one."""
    return State([_split_kind(regime) for regime in state.regimes], state.log_rho, state.shrinkage)


def _split_kind(regime: Any) -> Any:
    new = regime.like(components=regime.components + 1)
    common = int(regime.mix_logits.argmax())
    for name in ("bias", "log_scale", "mask_logits", "background"):
        getattr(new, name).copy_(getattr(regime, name))
    for name, steps in (("gain", (0.0, 0.0)), ("log_sigma", (-0.4, 0.4)), ("mix_logits", (-0.7, -0.7))):
        old = getattr(regime, name)
        values = torch.cat([old, old[common : common + 1]])
        values[common] += steps[0]
        values[-1] += steps[1]
        getattr(new, name).copy_(values)
    return new
