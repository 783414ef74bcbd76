"""The network that learns the corruption itself, with labels or without."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from ahop import nuisance
from ahop._blocks import split
from ahop._checks import Observed, as_matrix, as_queries
from ahop._progress import progress
from ahop.fitting import FitReport
from ahop.independent import Learner, State, reach
from ahop.memory import AssociativeMemory, Recall
from ahop.separation import Softmax
from ahop.similarity import InnerProduct, Likelihood, Regimes, Similarity, Subspace, Whitened
from ahop.similarity.inner import inner_product

# A stream is learned from its last queries, and anew as long as these are few.
_WINDOW = 1024
_FEW = 256
_LEAST = 32
# Queries x patterns that hidden causes are looked for in.
_TABLE = 2**24
# Hidden causes are looked for when residuals are so much more correlated than shuffled ones.
_CORRELATED = 1.5
# The share of one value among all that makes them no longer continuous.
_REPEATED = 0.25


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
        plain = similarity is None
        if similarity is None:
            low, high = reach(patterns)
            similarity = Likelihood(patterns.shape[1], low=low, high=high)
        elif not isinstance(similarity, (Likelihood, Regimes, Subspace)):
            kind = type(similarity).__name__
            raise TypeError(f"similarity must be a Likelihood, Regimes, Subspace or None, got {kind}")
        super().__init__(patterns, similarity, Softmax(), values=values, prior=prior)
        self._recent: tuple[Tensor, Tensor | None] | None = None
        # Of how many queries the similarity knows; one that was given knows enough.
        self._known = 0 if plain else _FEW

    @torch.no_grad()
    def fit(
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        hidden_causes: int | None = None,
        learn_prior: bool = False,
        seed: int = 0,
    ) -> BayesianHopfield:
        """Learn what happens to queries; returns the memory itself.

        With origins, by expectation maximisation on the pairs, at a cost that does not grow with the number of
        stored patterns. Without, the origins are shared out among the likeliest patterns as well. How many kinds
        of noise and regimes there are, and whether dimensions differ, is decided on a fifth of the queries, held
        out for that.

        When the corruption moves many dimensions at once, a :class:`~ahop.similarity.Subspace` takes the place of
        terms for single dimensions if it does better: in retrieval on origins it has not seen, or without labels in
        evidence. Then the number of hidden causes is chosen without labels by the mutual information between query
        and origin, which presumes that the queries ask for many different patterns; give ``hidden_causes`` if yours
        do not.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``, or None when nobody knows them.
            hidden_causes: How many move several dimensions at once; 0 for none, None to find out.
            learn_prior: Learn too how often each pattern is asked for.
            seed: For what is held out.
        """
        queries, origins = self._asked(queries, origins)
        if hidden_causes is not None and not 0 <= hidden_causes <= queries.shape[1]:
            raise ValueError(f"hidden_causes must lie in 0 to {queries.shape[1]} or be None, got {hidden_causes}")
        before, self.prior = self.prior, None if learn_prior else self.prior
        try:
            if hidden_causes:
                self.similarity = self._correlated(queries, origins, hidden_causes, seed)[0]
                self.report = self._report(queries)
            else:
                self._learn(queries, origins, hidden_causes is None, seed)
            if learn_prior:
                self.prior = self._frequencies(queries, origins)
        except BaseException:
            self.prior = before
            raise
        self._recent = (queries[-_WINDOW:], None if origins is None else origins[-_WINDOW:])
        self._known = len(queries)
        return self

    @torch.no_grad()
    def partial_fit(self, queries: Any, origins: Any = None) -> BayesianHopfield:
        """Go on learning from a stream, a few queries at a time; returns the memory itself.

        Learns from the last queries that came, so it follows a corruption that changes. Queries with
        origins and queries without make two streams: the window begins anew when one follows the other.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``, or None when nobody knows them.
        """
        queries, origins = self._asked(queries, origins)
        before = self._recent
        if before is not None and (before[1] is None) == (origins is None):
            queries = torch.cat([before[0].to(queries), queries])
            if origins is not None and before[1] is not None:
                origins = torch.cat([before[1].to(origins), origins])
        queries, origins = queries[-_WINDOW:], None if origins is None else origins[-_WINDOW:]
        self._recent = (queries, origins)
        if self._known < _FEW and not isinstance(self.similarity, Subspace):
            self._learn(queries, origins, False, 0)
            self._known = len(queries)
        elif len(queries) < _LEAST:
            # Too few to change what more have taught.
            return self
        elif isinstance(self.similarity, Subspace):
            self.similarity = self._follow(self.similarity, queries, origins)
            self.report = self._report(queries)
        else:
            assert isinstance(self.similarity, (Likelihood, Regimes))
            learner = Learner(self.patterns, queries, self._log_prior(), 0)
            learner.go_on(State.of(self.similarity), origins)
            self._take(learner)
        return self

    def remove(self, indices: Any) -> BayesianHopfield:
        """Forget the stored patterns at ``indices``; see :meth:`~ahop.memory.AssociativeMemory.remove`."""
        super().remove(indices)
        # The window's origins count the patterns as they were.
        self._recent = None
        return self

    # --- the two kinds of corruption ---------------------------------------------------------------------

    def _learn(self, queries: Tensor, origins: Tensor | None, search: bool, seed: int) -> None:
        learner = Learner(self.patterns, queries, self._log_prior(), seed)
        if origins is not None:
            learner.begin_labelled(origins)
        else:
            learner.begin_unlabelled()
        several = origins is None or len(origins.unique()) > 1
        if search and several and self._asks_for_causes(learner, seed):
            found, better = self._correlated(queries, origins, None, seed, against=learner)
            if better:
                self.similarity = found
                self.report = self._report(queries)
                return
        learner.refine()
        self._take(learner)

    def _take(self, learner: Learner) -> None:
        self.similarity = learner.state.similarity().to(self.patterns)
        settled = len(learner.trace) < 2 or learner.trace[-1] - learner.trace[-2] < 1e-2
        self.report = FitReport("em", -float(learner.log_evidence().mean()), len(learner.trace), converged=settled)

    def _report(self, queries: Tensor) -> FitReport:
        # Hidden causes are fitted in a fixed number of steps, many times over: one search, which always ends.
        return FitReport("em", -float(self.log_evidence(queries).mean()), 1, converged=True)

    @staticmethod
    def _asks_for_causes(learner: Learner, seed: int) -> bool:
        """Whether residuals are more correlated than they would be if every dimension had been hit by itself."""
        best = learner.evidence.scores(learner.state.regimes[0]).argmax(1)
        rows = torch.arange(len(best), device=best.device)
        gaps = learner.evidence.queries - learner.evidence.candidates[rows, best]
        gaps = (gaps - gaps.mean(0)) / gaps.std(0, unbiased=False).clamp_min(1e-12)
        generator = torch.Generator().manual_seed(seed)
        order = torch.rand(gaps.shape, generator=generator).argsort(0).to(gaps.device)
        strength, by_chance = (torch.linalg.matrix_norm(m, 2).square() for m in (gaps, gaps.gather(0, order)))
        return len(gaps) >= 16 and bool(strength > _CORRELATED * by_chance)

    def _correlated(
        self, queries: Tensor, origins: Tensor | None, rank: int | None, seed: int, against: Learner | None = None
    ) -> tuple[Subspace, bool]:
        """A likelihood with hidden causes, and whether it does better than one without."""
        patterns, asked = self.patterns.double(), queries.double()
        if origins is not None:
            jury = nuisance.Jury(patterns, asked, origins, seed)
            model, judgement = nuisance.by_retrieval(jury, rank)
            if against is not None:
                return model.to(self.patterns), judgement.beats(self._without_causes(jury, against))
            return model.to(self.patterns), True
        most = max(64, _TABLE // len(self))
        if len(asked) > most:
            order = torch.randperm(len(asked), generator=torch.Generator().manual_seed(seed))
            asked = asked[order[:most].to(asked.device)]
        ranks = nuisance.ladder(len(asked), patterns.shape[1]) if rank is None else [rank]
        with progress("looking for hidden causes", 2 * len(ranks)) as bar:
            model = nuisance.by_information(patterns, asked, ranks, bar.advance)
        better = True
        # One value that comes again and again has no density, and evidence that rests on it means nothing.
        if against is not None and float((queries == queries.flatten().mode().values).double().mean()) < _REPEATED:
            log_prior = self._log_prior()
            prior = -math.log(len(self)) if log_prior is None else log_prior
            evidence = (model(patterns, against.queries.double()) + prior).logsumexp(1)
            gain = evidence - against.log_evidence()
            better = float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain))
        return model.to(self.patterns), better

    def _without_causes(self, jury: nuisance.Jury, learner: Learner) -> nuisance.Judgement:
        """How well terms for single dimensions retrieve origins they were not fitted to."""
        scores: list[Tensor] = []
        for bundle in jury.bundles():
            judged = torch.cat([rows for _, rows in bundle])
            left = ~torch.isin(jury.origins, jury.origins[judged])
            plain = learner.relearned(left.nonzero().squeeze(1)).similarity()
            scores += [jury.score(plain, rows, self.patterns, learner.queries) for _, rows in bundle]
        return jury.judge(scores)

    def _follow(self, model: Subspace, queries: Tensor, origins: Tensor | None) -> Subspace:
        shape = nuisance.Shape.of(model)
        asked, patterns = queries.double(), self.patterns.double()
        if origins is None:
            new = nuisance.fit_queries(patterns, asked, shape, 4, model)
        else:
            new = nuisance.fit_pairs(asked, patterns[origins], shape)
        new.log_beta.copy_(model.log_beta)
        return new.to(self.patterns)

    # --- as dot products ---------------------------------------------------------------------------------

    def as_inner_product(self, tolerance: float = 0.1) -> InnerProduct | Whitened:
        """Codes for patterns and queries whose dot products are the similarities, up to a constant of the query.

        For a vector index or a vector database: store ``encode_patterns(memory.patterns)``, ask with
        ``encode_queries(queries)``. A prior is not in the codes: add its logarithm to the products. Codes of hidden
        causes with heavy tails keep the order of patterns alone, whatever the tolerance.

        Args:
            tolerance: Root mean square error of a score; it decides how long the codes are. Scores are natural
                logarithms, so 0.1 changes a probability by a tenth of itself.

        Example:
            >>> patterns = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
            >>> memory = BayesianHopfield(patterns)
            >>> codes = memory.as_inner_product(tolerance=0.01)
            >>> products = codes.encode_queries(patterns) @ codes.encode_patterns(patterns).T
            >>> bool(products.argmax(1).equal(memory.scores(patterns).argmax(1)))
            True
        """
        if isinstance(self.similarity, Subspace):
            return Whitened(copy.deepcopy(self.similarity))
        if not isinstance(self.similarity, Likelihood):
            raise ValueError("as_inner_product needs one corruption for all queries, but fit found several regimes")
        return inner_product(self.similarity, self.patterns, tolerance)

    # --- the prior ---------------------------------------------------------------------------------------

    def _log_prior(self) -> Tensor | None:
        return None if self.prior is None else (self.prior / self.prior.sum()).clamp_min(1e-30).log()

    def _frequencies(self, queries: Tensor, origins: Tensor | None, steps: int = 30) -> Tensor:
        """How often each pattern is asked for, with one count more for each so that none is ruled out."""
        ones = torch.ones_like(self.patterns[:, 0])
        if origins is not None:
            return ones.index_add(0, origins, torch.ones_like(queries[:, 0]))
        prior = ones
        for _ in range(steps):
            counts = ones.clone()
            for part in split(len(queries), 2 * len(self) * queries.element_size()):
                scores = self.similarity(self.patterns, queries[part])
                counts += torch.softmax(scores + (prior / prior.sum()).log(), -1).sum(0)
            prior = counts
        return prior

    def _asked(self, queries: Any, origins: Any) -> tuple[Tensor, Tensor | None]:
        if queries is None:
            raise ValueError("queries must be given: b-hop learns the corruption from them")
        if origins is not None:
            return self._pairs(queries, origins)
        queries, _ = as_queries(queries, self.patterns, None)
        if queries.ndim != 2 or not len(queries):
            raise ValueError(f"queries must be a non-empty matrix, one row each, got shape {tuple(queries.shape)}")
        return queries, None

    # --- what is known of a query ------------------------------------------------------------------------

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
        similarity = self.similarity
        assert isinstance(similarity, (Likelihood, Regimes, Subspace))
        background = similarity.stranger(self.patterns, flat, flat_mask)
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
