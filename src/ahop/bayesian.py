"""The network that learns the corruption itself, with labels or without."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop import nuisance
from ahop._blocks import split
from ahop._checks import Observed, as_matrix, as_queries, require_finite, whole
from ahop._component import single
from ahop._precision import Units
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


class _Lessons(NamedTuple):
    """Queries to learn from ``(n, d)``, their origins ``(n,)`` if known, and what of them was observed if not all."""

    queries: Tensor
    origins: Tensor | None
    observed: Tensor | None

    def after(self, earlier: _Lessons | None) -> _Lessons:
        """The last of these and of earlier ones of the same kind: a window on a stream."""
        both = [self] if earlier is None or (earlier.origins is None) != (self.origins is None) else [earlier, self]
        queries = torch.cat([lessons.queries.to(self.queries) for lessons in both])[-_WINDOW:]
        origins = None
        if self.origins is not None:
            origins = torch.cat([lessons.origins.to(self.origins) for lessons in both if lessons.origins is not None])
        masks = [lessons.observed for lessons in both]
        observed = None
        if any(mask is not None for mask in masks):
            whole = [torch.ones_like(lessons.queries, dtype=torch.bool) for lessons in both]
            masks = [own if mask is None else mask for own, mask in zip(whole, masks, strict=True)]
            observed = torch.cat([mask.to(self.queries.device) for mask in masks if mask is not None])[-_WINDOW:]
        return _Lessons(queries, None if origins is None else origins[-_WINDOW:], observed)


def _settled(learner: Learner) -> FitReport:
    settled = len(learner.trace) < 2 or learner.trace[-1] - learner.trace[-2] < 1e-2
    return FitReport("em", -float(learner.log_evidence().mean()), len(learner.trace), converged=settled)


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
    known: Tensor

    def __init__(
        self, patterns: Any, *, similarity: Similarity | None = None, values: Any = None, prior: Any = None
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        plain = similarity is None
        if similarity is None:
            units = Units.of(patterns)
            low, high = reach(units.measure(patterns))
            similarity = units.leave(Likelihood(patterns.shape[1], low=low, high=high))
        elif not isinstance(similarity, (Likelihood, Regimes, Subspace)):
            kind = type(similarity).__name__
            raise TypeError(f"similarity must be a Likelihood, Regimes, Subspace or None, got {kind}")
        super().__init__(patterns, similarity, Softmax(), values=values, prior=prior)
        self._recent: _Lessons | None = None
        # Of how many queries the similarity knows; one that was given knows enough.
        self.register_buffer("known", torch.tensor(0 if plain else _FEW))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # Files of earlier versions do not tell: what was kept was learned.
        state_dict.setdefault(prefix + "known", torch.tensor(_FEW))
        super()._load_from_state_dict(state_dict, prefix, *args)

    @torch.no_grad()
    def fit(
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        observed: Observed = None,
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
            observed: As in :meth:`scores`: learn from these entries alone. Hidden causes are not looked for when
                some are missing.
            hidden_causes: How many move several dimensions at once; 0 for none, None to find out.
            learn_prior: Learn too how often each pattern is asked for.
            seed: For what is held out.
        """
        lessons = self._lessons_of(queries, origins, observed)
        if hidden_causes is not None and whole(hidden_causes, "hidden_causes", 0) > lessons.queries.shape[1]:
            dim = lessons.queries.shape[1]
            raise ValueError(f"hidden_causes must lie in 0 to {dim} or be None, got {hidden_causes}")
        if hidden_causes and lessons.observed is not None:
            raise ValueError(f"hidden_causes must be 0 or None where values are missing, got {hidden_causes}")
        log_prior = None if learn_prior else self._log_prior()
        similarity, report = self._learn(lessons, log_prior, hidden_causes, seed)
        prior = self._frequencies(similarity, lessons) if learn_prior else self.prior
        self._take(similarity, prior, lessons, len(lessons.queries))
        return self._learned(report)

    @torch.no_grad()
    def partial_fit(self, queries: Any, origins: Any = None, *, observed: Observed = None) -> BayesianHopfield:
        """Go on learning from a stream, a few queries at a time; returns the memory itself.

        Learns from the last queries that came, so it follows a corruption that changes. Queries with
        origins and queries without make two streams: the window begins anew when one follows the other.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``, or None when nobody knows them.
            observed: As in :meth:`fit`; a memory that has found hidden causes needs whole queries.
        """
        lessons, similarity = self._lessons_of(queries, origins, observed).after(self._recent), self.similarity
        few, correlated = int(self.known) < _FEW, isinstance(similarity, Subspace)
        if correlated and lessons.observed is not None:
            raise ValueError(
                "observed must be None: this memory has found hidden causes, and learns from whole queries"
            )
        if few and not correlated:
            learned, report = self._learn(lessons, self._log_prior(), 0, 0)
            self._take(learned, self.prior, lessons, len(lessons.queries))
            self.report = report
            return self
        if len(lessons.queries) < _LEAST:
            # Too few to change what more have taught.
            self._recent = lessons
            return self
        units = Units.of(self.patterns, lessons.queries)
        patterns, asked = units.measure(self.patterns), units.measure(lessons.queries)
        here = units.enter(similarity)
        if isinstance(here, Subspace):
            learned = self._follow(here, patterns, asked, lessons.origins)
            report = self._report(learned, patterns, asked, self._log_prior())
        else:
            assert isinstance(here, (Likelihood, Regimes))
            learner = Learner(patterns, asked, lessons.observed, self._log_prior(), 0)
            learner.go_on(State.of(here), lessons.origins)
            learned, report = learner.state.similarity(), _settled(learner)
        self._take(units.leave(learned), self.prior, lessons, int(self.known))
        # A few steps at a time, as more queries come: nobody expects these to arrive.
        self.report = report
        return self

    def remove(self, indices: Any) -> BayesianHopfield:
        """Forget the stored patterns at ``indices``; see :meth:`~ahop.memory.AssociativeMemory.remove`."""
        super().remove(indices)
        # The window's origins count the patterns as they were.
        self._recent = None
        return self

    def _take(self, similarity: Similarity, prior: Tensor | None, lessons: _Lessons, known: int) -> None:
        """All that was learned, at once: a fit that breaks off before has changed nothing."""
        for learned in similarity.parameters():
            require_finite(learned, "what was learned from these patterns and queries")
        self.similarity, self.prior, self._recent = similarity.to(single(self.patterns[:0])), prior, lessons
        self.known.fill_(known)

    # --- the two kinds of corruption ---------------------------------------------------------------------

    def _learn(
        self, lessons: _Lessons, log_prior: Tensor | None, hidden_causes: int | None, seed: int
    ) -> tuple[Similarity, FitReport]:
        units = Units.of(self.patterns, lessons.queries)
        patterns, queries = units.measure(self.patterns), units.measure(lessons.queries)
        found, report = self._learn_here(patterns, queries, lessons, log_prior, hidden_causes, seed)
        # A density counts by the unit of its values.
        seen = queries.shape[1] if lessons.observed is None else float(lessons.observed.sum(1).double().mean())
        return units.leave(found), replace(report, loss=report.loss + seen * math.log(units.unit))

    def _learn_here(
        self,
        patterns: Tensor,
        queries: Tensor,
        lessons: _Lessons,
        log_prior: Tensor | None,
        hidden_causes: int | None,
        seed: int,
    ) -> tuple[Similarity, FitReport]:
        origins = lessons.origins
        if hidden_causes:
            found, _ = self._correlated(patterns, queries, origins, log_prior, hidden_causes, seed)
            return found, self._report(found, patterns, queries, log_prior)
        learner = Learner(patterns, queries, lessons.observed, log_prior, seed)
        if origins is not None:
            learner.begin_labelled(origins)
        else:
            learner.begin_unlabelled()
        search = hidden_causes is None and lessons.observed is None
        several = origins is None or len(origins.unique()) > 1
        if search and several and self._asks_for_causes(learner, seed):
            found, better = self._correlated(patterns, queries, origins, log_prior, None, seed, against=learner)
            if better:
                return found, self._report(found, patterns, queries, log_prior)
        learner.refine()
        return learner.state.similarity(), _settled(learner)

    @staticmethod
    def _report(similarity: Similarity, patterns: Tensor, queries: Tensor, log_prior: Tensor | None) -> FitReport:
        # Hidden causes are fitted in a fixed number of steps, many times over: one search, which always ends.
        prior = -math.log(len(patterns)) if log_prior is None else log_prior
        evidence = (similarity(patterns, queries) + prior).logsumexp(-1)
        return FitReport("em", -float(evidence.mean()), 1, converged=True)

    @staticmethod
    def _asks_for_causes(learner: Learner, seed: int) -> bool:
        """Whether residuals are more correlated than they would be if every dimension had been hit by itself."""
        best = learner.evidence.scores(learner.evidence.explained(learner.state.regimes[0])).argmax(1)
        rows = torch.arange(len(best), device=best.device)
        gaps = learner.evidence.queries - learner.evidence.candidates[rows, best]
        gaps = (gaps - gaps.mean(0)) / gaps.std(0, unbiased=False).clamp_min(1e-12)
        generator = torch.Generator().manual_seed(seed)
        order = torch.rand(gaps.shape, generator=generator).argsort(0).to(gaps.device)
        strength, by_chance = (torch.linalg.matrix_norm(m, 2).square() for m in (gaps, gaps.gather(0, order)))
        return len(gaps) >= 16 and bool(strength > _CORRELATED * by_chance)

    def _correlated(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None,
        log_prior: Tensor | None,
        rank: int | None,
        seed: int,
        against: Learner | None = None,
    ) -> tuple[Subspace, bool]:
        """A likelihood with hidden causes, and whether it does better than one without."""
        stored, asked = patterns.double(), queries.double()
        if origins is not None:
            jury = nuisance.Jury(stored, asked, origins, seed)
            model, judgement = nuisance.by_retrieval(jury, rank)
            if against is not None:
                return model.to(patterns), judgement.beats(self._without_causes(jury, against))
            return model.to(patterns), True
        most = max(64, _TABLE // len(self))
        if len(asked) > most:
            order = torch.randperm(len(asked), generator=torch.Generator().manual_seed(seed))
            asked = asked[order[:most].to(asked.device)]
        ranks = nuisance.ladder(len(asked), stored.shape[1]) if rank is None else [rank]
        with progress("looking for hidden causes", 2 * len(ranks)) as bar:
            model = nuisance.by_information(stored, asked, ranks, bar.advance)
        better = True
        # One value that comes again and again has no density, and evidence that rests on it means nothing.
        if against is not None and float((queries == queries.flatten().mode().values).double().mean()) < _REPEATED:
            prior = -math.log(len(self)) if log_prior is None else log_prior
            evidence = (model(stored, against.queries.double()) + prior).logsumexp(1)
            gain = evidence - against.log_evidence()
            better = float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain))
        return model.to(patterns), better

    def _without_causes(self, jury: nuisance.Jury, learner: Learner) -> nuisance.Judgement:
        """How well terms for single dimensions retrieve origins they were not fitted to."""
        scores: list[Tensor] = []
        for bundle in jury.bundles():
            judged = torch.cat([rows for _, rows in bundle])
            left = ~torch.isin(jury.origins, jury.origins[judged])
            plain = learner.relearned(left.nonzero().squeeze(1)).similarity()
            scores += [jury.score(plain, rows, learner.patterns, learner.queries) for _, rows in bundle]
        return jury.judge(scores)

    @staticmethod
    def _follow(model: Subspace, patterns: Tensor, queries: Tensor, origins: Tensor | None) -> Subspace:
        shape = nuisance.Shape.of(model)
        asked, stored = queries.double(), patterns.double()
        if origins is None:
            new = nuisance.fit_queries(stored, asked, shape, 4, model)
        else:
            new = nuisance.fit_pairs(asked, stored[origins], shape)
        new.log_beta.copy_(model.log_beta)
        return new.to(patterns)

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
        return inner_product(self.similarity, single(self.patterns), tolerance)

    def _frequencies(self, similarity: Similarity, lessons: _Lessons, steps: int = 30) -> Tensor:
        """How often each pattern is asked for, with one count more for each so that none is ruled out."""
        queries, patterns = lessons.queries, single(self.patterns)
        ones = torch.ones_like(patterns[:, 0])
        if lessons.origins is not None:
            return ones.index_add(0, lessons.origins, torch.ones_like(queries[:, 0]))
        prior = ones
        for _ in range(steps):
            counts = ones.clone()
            for part in split(len(queries), 2 * len(self) * queries.element_size()):
                seen = None if lessons.observed is None else lessons.observed[part]
                scores = similarity(patterns, queries[part], seen)
                counts += torch.softmax(scores + (prior / prior.sum()).log(), -1).sum(0)
            prior = counts
        return prior

    def _lessons_of(self, queries: Any, origins: Any, observed: Observed) -> _Lessons:
        if queries is None:
            raise ValueError("queries must be given: b-hop learns the corruption from them")
        if origins is None:
            asked, mask = self._lessons(queries, observed)
            return _Lessons(asked, None, mask)
        return _Lessons(*self._pairs(queries, origins, observed))

    # --- what is known of a query ------------------------------------------------------------------------

    @torch.no_grad()
    def log_evidence(self, queries: Any, *, observed: Observed = None) -> Tensor:
        r"""How well the stored patterns explain each query, :math:`\log \sum_k \pi_k \, p(x \mid \xi_k)`, ``(...)``.

        It mostly tells how hard a query was hit; :meth:`familiarity` tells whether its origin is stored. Neither
        carries gradients.
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
        background = similarity.stranger(single(self.patterns), single(flat), flat_mask)
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
