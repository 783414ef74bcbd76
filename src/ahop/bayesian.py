"""The network that learns the corruption itself, with labels or without."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from ahop import em
from ahop._blocks import split
from ahop._checks import Observed, as_matrix, as_queries
from ahop._progress import progress
from ahop.em import Evidence, Shrinkage
from ahop.fitting import FitReport
from ahop.memory import AssociativeMemory, Recall
from ahop.separation import Softmax
from ahop.similarity import Likelihood, Regimes, Similarity

# Patterns that stand for all of them in the share-out of an unlabelled query.
_CANDIDATES = 64
# Where unlabelled learning starts: the share of lost values, and the noise in units of the patterns' spread.
_STARTS = ((0.3, 0.7), (0.5, 1.0))


class BayesianHopfield(AssociativeMemory):
    r"""Learns the likelihood of a query given a pattern, from queries with or without their origins.

    .. math:: y = \Xi \, \mathrm{softmax}(s(\Xi, x)), \qquad s(\xi, x) = \log p(x \mid \xi), \qquad
        E(x) = -\log \sum_k p(x \mid \xi_k)

    The scores are real log-likelihoods, so that probabilities mean what they say, and a query that comes from
    no stored pattern can be told (:meth:`familiarity`).

    Args:
        patterns: ``(N, d)``.
        similarity: A likelihood that is already known; None starts from a plain one.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.

    Example:
        >>> patterns = torch.rand(100, 32, generator=torch.Generator().manual_seed(0)) * 2 - 1
        >>> world = ahop.variants.Mixed(mask=0.3, noise=0.3, bias=0.5)
        >>> memory = BayesianHopfield(patterns).fit(world.sample(patterns, 200).queries)   # no labels
        >>> ahop.metrics.retrieval_accuracy(memory, world.sample(patterns, 200)) > 0.9
        True
    """

    name = "b-hop"

    def __init__(
        self, patterns: Any, *, similarity: Similarity | None = None, values: Any = None, prior: Any = None
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        if similarity is None:
            low, high = _reach(patterns)
            similarity = Likelihood(patterns.shape[1], low=low, high=high)
        elif not isinstance(similarity, (Likelihood, Regimes)):
            raise TypeError(f"similarity must be a Likelihood, Regimes or None, got {type(similarity).__name__}")
        super().__init__(patterns, similarity, Softmax(), values=values, prior=prior)

    @torch.no_grad()
    def fit(self, queries: Any = None, origins: Any = None, *, seed: int = 0) -> BayesianHopfield:
        """Learn what happens to queries; returns the memory itself.

        With origins, by expectation maximisation on the pairs, at a cost that does not grow with the number of
        stored patterns. Without, the origins are shared out among the likeliest patterns as well. How many kinds
        of noise and regimes there are, and whether dimensions differ, is decided on a fifth of the queries, held
        out for that.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``, or None when nobody knows them.
            seed: For what is held out.
        """
        if queries is None:
            raise ValueError("queries must be given: b-hop learns the corruption from them")
        if origins is not None:
            queries, origins = self._pairs(queries, origins)
            evidence = Evidence.labelled(self.patterns, queries, origins)
            learner = _Learner(self, evidence, seed)
            learner.begin_labelled()
        else:
            queries, _ = as_queries(queries, self.patterns, None)
            if queries.ndim != 2 or not len(queries):
                raise ValueError(f"queries must be a non-empty matrix, one row each, got shape {tuple(queries.shape)}")
            learner = _Learner(self, None, seed)
            learner.begin_unlabelled(queries)
        learner.refine()
        self.similarity = learner.similarity().to(self.patterns)
        self.report = learner.report()
        return self

    def log_evidence(self, queries: Any, *, observed: Observed = None) -> Tensor:
        r"""How well the stored patterns explain each query, :math:`\log \sum_k \pi_k \, p(x \mid \xi_k)`, ``(...)``.

        It mostly tells how hard a query was hit; :meth:`familiarity` tells whether its origin is stored.
        """
        scores = self.scores(queries, observed=observed)
        return scores.logsumexp(-1) - (math.log(len(self)) if self.prior is None else 0.0)

    @torch.no_grad()
    def familiarity(self, queries: Any, *, observed: Observed = None) -> Tensor:
        r"""The log of how much likelier a query is from a stored pattern than from one that is not stored, ``(...)``.

        The evidence over the evidence under background patterns, each dimension of which is drawn from what the
        stored ones have there:

        .. math:: \log \operatorname*{mean}_k p(x \mid \xi_k) - \sum_i \log \operatorname*{mean}_k p(x_i \mid \xi_{k,i})
        """
        queries, mask = as_queries(queries, self.patterns, observed)
        flat = queries.reshape(-1, queries.shape[-1])
        flat_mask = None if mask is None else mask.reshape(flat.shape)
        background = torch.cat(
            [
                self._background(flat[part], None if flat_mask is None else flat_mask[part])
                for part in split(len(flat), 4 * self.patterns.numel() * flat.element_size())
            ]
            or [flat.new_empty(0)]
        )
        return self.log_evidence(queries, observed=mask) - background.reshape(queries.shape[:-1])

    def recall(self, queries: Any, k: int = 1, *, observed: Observed = None, reject: float | None = None) -> Recall:
        """The k best patterns for each query; see :meth:`~ahop.memory.AssociativeMemory.recall`.

        Args:
            queries, k, observed: As there.
            reject: Queries whose :meth:`familiarity` is below this level come from no stored pattern: their
                indices are -1 and their probabilities 0. 0 is where both are equally likely.
        """
        found = super().recall(queries, k, observed=observed)
        if reject is None:
            return found
        strange = (self.familiarity(queries, observed=observed) < reject)[..., None]
        return Recall(found.indices.masked_fill(strange, -1), found.probabilities.masked_fill(strange, 0.0))

    def _background(self, queries: Tensor, observed: Tensor | None) -> Tensor:
        similarity = self.similarity
        regimes = list(similarity.regimes) if isinstance(similarity, Regimes) else [similarity]
        totals = []
        for regime in regimes:
            terms = regime.terms(self.patterns, queries[:, None]).logsumexp(1) - math.log(len(self))  # type: ignore[operator]
            totals.append((terms if observed is None else terms * observed).sum(-1))
        if len(totals) == 1:
            return totals[0]
        return torch.logsumexp(torch.stack(totals, -1) + torch.log_softmax(similarity.log_rho, 0), -1)  # type: ignore[arg-type]


def _reach(values: Tensor) -> tuple[float, float]:
    """A range for the background that holds all values seen."""
    low, high = float(values.min()), float(values.max())
    margin = 0.02 * (high - low) or 1.0
    return low - margin, high + margin


class _Learner:
    """One fit: the regimes as they stand, and the evidence they are fitted to."""

    def __init__(self, memory: BayesianHopfield, evidence: Evidence | None, seed: int) -> None:
        self.patterns, self.prior, self.seed = memory.patterns, memory.prior, seed
        self.spread = max(float(self.patterns.std(0, unbiased=False).mean()), 1e-6)
        self.floor = 1e-3 * self.spread
        self.shrinkage = Shrinkage()
        self.regimes: list[Likelihood] = []
        self.log_rho = self.patterns.new_zeros(1)
        self.queries: Tensor | None = None
        self.trace: list[float] = []
        if evidence is not None:
            self.evidence = evidence

    # --- the first fit -----------------------------------------------------------------------------------

    def begin_labelled(self) -> None:
        """The better of a background that came before the bias and one that came after it."""
        queries = self.evidence.queries
        bias = (queries - self.evidence.candidates[:, 0]).mean(0)
        best = -math.inf
        for shifted in (False, True):
            regime = self._plain(queries, bias, shifted, mask=0.3, noise=0.5)
            trace = self._iterate(self.evidence, [regime], steps=25)
            if trace[-1] > best:
                best, self.regimes, self.trace = trace[-1], [regime], trace
        self.trace += self._iterate(self.evidence, self.regimes, steps=60)

    def begin_unlabelled(self, queries: Tensor) -> None:
        """A few starts, a few rounds each; then the likeliest to the end."""
        self.queries = queries
        gap = queries.mean(0) - self.patterns.mean(0)
        starts = [(shifted, *start) for shifted in (False, True) for start in _STARTS]
        best = -math.inf
        with progress("learning without labels", 5 * len(starts) + 40) as bar:
            for shifted, mask, noise in starts:
                # Lost values do not carry the bias when it came before them: the mean shows part of it only.
                bias = gap if shifted else gap / (1 - mask)
                regimes = [self._plain(queries, bias, shifted, mask=mask, noise=noise)]
                trace: list[float] = []
                for _ in range(5):
                    self.regimes = regimes
                    self._refresh()
                    trace += self._iterate(self.evidence, regimes, steps=5)
                    bar.advance()
                if trace[-1] > best:
                    best, chosen, self.trace = trace[-1], regimes, trace
            self.regimes = chosen
            self._rounds(40, bar.advance)

    def _rounds(self, most: int, advance: Any = lambda: None) -> None:
        """Look for better candidates, learn from them, and so on until neither changes anything."""
        for _ in range(most):
            self._refresh()
            self.trace += self._iterate(self.evidence, self.regimes, steps=8)
            advance()
            if len(self.trace) > 9 and self.trace[-1] - self.trace[-9] < 1e-2:
                break

    def _plain(self, queries: Tensor, bias: Tensor, shifted: bool, mask: float, noise: float) -> Likelihood:
        values = queries - bias if shifted else queries
        low, high = _reach(values)
        regime = Likelihood(queries.shape[1], shifted=shifted, low=low, high=high).to(queries)
        regime.bias.copy_(bias)
        regime.log_sigma.fill_(math.log(noise * self.spread))
        regime.mask_logits.fill_(math.log(mask / (1 - mask)))
        return regime

    def _refresh(self) -> None:
        """Take the likeliest patterns under what is known now as the candidates of each query."""
        assert self.queries is not None
        similarity, count = self.similarity(), min(_CANDIDATES, len(self.patterns))
        chosen, log_prior = [], math.log(1 / len(self.patterns))
        prior = None if self.prior is None else (self.prior / self.prior.sum()).clamp_min(1e-30).log()
        for part in split(len(self.queries), len(self.patterns) * self.patterns.element_size()):
            scores = similarity(self.patterns, self.queries[part])
            chosen.append((scores if prior is None else scores + prior).topk(count, dim=-1).indices)
        indices = torch.cat(chosen)
        priors = torch.full_like(indices, log_prior, dtype=self.patterns.dtype) if prior is None else prior[indices]
        self.evidence = Evidence(self.queries, self.patterns[indices], priors)

    # --- what the data ask for beyond it -----------------------------------------------------------------

    def refine(self) -> None:
        """Let dimensions differ, noise be of several kinds, and queries of several regimes, where that helps."""
        count = len(self.evidence.queries)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.seed)).to(self.patterns.device)
        held_out, shown = order[: count // 5], order[count // 5 :]
        if len(held_out) < 8:
            return
        here, there = self.evidence.part(shown), self.evidence.part(held_out)
        current = self._state()
        base = self._judge(current, here, there)
        for changes in ((self._differing,), (self._kinds, self._kinds), (self._regimes, self._regimes)):
            for change in changes:
                trial = change(copy.deepcopy(current), here)
                value = self._judge(trial, here, there)
                gain = value - base
                if float(gain.mean()) <= max(1e-3, float(gain.std()) / math.sqrt(len(gain))):
                    break
                current, base = trial, value
        self.regimes, self.log_rho, self.shrinkage = current
        self._iterate(self.evidence, self.regimes, steps=60)
        if self.queries is not None and len(self.regimes) > 1:
            self._rounds(10)

    def _state(self) -> tuple[list[Likelihood], Tensor, Shrinkage]:
        return copy.deepcopy(self.regimes), self.log_rho.clone(), self.shrinkage

    def _judge(self, state: tuple[list[Likelihood], Tensor, Shrinkage], here: Evidence, there: Evidence) -> Tensor:
        """Fit on some queries, and give the log evidence of each of the others."""
        regimes, log_rho, shrinkage = state
        em.iterate(here, regimes, log_rho, steps=30, shrinkage=shrinkage, floor=self.floor, tolerance=1e-4)
        return em.expect(there, regimes, log_rho)[0]

    def _differing(
        self, state: tuple[list[Likelihood], Tensor, Shrinkage], here: Evidence
    ) -> tuple[list[Likelihood], Tensor, Shrinkage]:
        regimes, log_rho, _ = state
        return regimes, log_rho, em.estimate_shrinkage(here, regimes, log_rho)

    def _kinds(
        self, state: tuple[list[Likelihood], Tensor, Shrinkage], here: Evidence
    ) -> tuple[list[Likelihood], Tensor, Shrinkage]:
        """One more kind of noise: the commonest splits into a narrower and a wider one."""
        regimes, log_rho, shrinkage = state
        return [_split_kind(regime) for regime in regimes], log_rho, shrinkage

    def _regimes(
        self, state: tuple[list[Likelihood], Tensor, Shrinkage], here: Evidence
    ) -> tuple[list[Likelihood], Tensor, Shrinkage]:
        """One more regime: the commonest splits into the queries it explains well and those it explains badly."""
        regimes, log_rho, shrinkage = state
        total, shares = em.expect(here, regimes, log_rho)
        common = int(shares.sum((0, 1)).argmax())
        hard = total < total.median()
        new = copy.deepcopy(regimes[common])
        for regime, rows in ((regimes[common], ~hard), (new, hard)):
            weights = shares[..., common] * rows[:, None]
            for _ in range(8):
                em.maximise(here, regime, weights, shrinkage, self.floor)
        log_rho = torch.cat([log_rho, log_rho[common : common + 1]])
        return [*regimes, new], torch.log_softmax(log_rho, 0), shrinkage

    # --- what comes of it --------------------------------------------------------------------------------

    def _iterate(self, evidence: Evidence, regimes: list[Likelihood], steps: int) -> list[float]:
        return em.iterate(
            evidence, regimes, self.log_rho, steps=steps, shrinkage=self.shrinkage, floor=self.floor, tolerance=1e-4
        )

    def similarity(self) -> Similarity:
        if len(self.regimes) == 1:
            return self.regimes[0]
        together = Regimes(self.regimes).to(self.patterns)
        together.log_rho.copy_(self.log_rho)
        return together

    def report(self) -> FitReport:
        total, _ = em.expect(self.evidence, self.regimes, self.log_rho)
        settled = len(self.trace) < 2 or self.trace[-1] - self.trace[-2] < 1e-2
        return FitReport("em", -float(total.mean()), len(self.trace), converged=settled)


def _split_kind(regime: Likelihood) -> Likelihood:
    new = Likelihood(regime.dim, regime.components + 1, shifted=regime.shifted, low=regime.low, high=regime.high).to(
        regime.bias
    )
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
