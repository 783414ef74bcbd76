"""The network that learns the corruption itself, with labels or without."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import Observed, as_matrix, as_queries, as_tensor, within
from ahop._component import single
from ahop._precision import Units, reach
from ahop._recall import Recall
from ahop.memories.context import Prior
from ahop.memories.frequencies import frequencies
from ahop.memories.indexed import Indexed
from ahop.memories.matching import Matching, as_room, matched
from ahop.memories.moments import of_one_moment
from ahop.memories.scattered import Scattered
from ahop.memories.verifiable import Verifiable
from ahop.memories.window import Window
from ahop.separation import Softmax
from ahop.similarity import Corruption, Density, Likelihood, Similarity, reranking
from ahop.similarity.bridge import Adapter
from ahop.similarity.codes import NoCodesError
from ahop.similarity.families.stand_ins import like_all

if TYPE_CHECKING:
    from ahop.index.index import Index
    from ahop.index.view import View

# Patterns that a set is first looked for among; four times as many where they are not enough.
_FIRST_CANDIDATES = 16


class BayesianHopfield(Indexed, Scattered, Verifiable):
    r"""Learns the likelihood of a query given a pattern, from queries with or without their origins.

    .. math:: y = \Xi^\top \mathrm{softmax}(s(\Xi, x)), \qquad s(\xi, x) = \log p(x \mid \xi), \qquad
        E(x) = -\log \sum_k p(x \mid \xi_k)

    The scores are real log-likelihoods, so that probabilities mean what they say, and a query that comes from
    no stored pattern can be told (:meth:`familiarity`).

    Args:
        patterns: ``(N, d)``.
        similarity: A likelihood that is already known, or the name of a kind of likelihood to begin as; None begins as
            a plain one. :meth:`fit` chooses the kind anew.
        spread: The standard deviation of a measurement of each pattern, ``(N, d)``, for replicate measurements
            (:meth:`from_replicates` makes it of them); None scatters nothing. What is corrupted then is a measurement.
            Only single dimensions and hidden causes are learned beside it, and there are no codes.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.

    Example:
        >>> patterns = torch.rand(50, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1
        >>> world = ahop.variants.Mixed(mask=0.3, noise=0.3, bias=0.5)
        >>> memory = BayesianHopfield(patterns).fit(world.sample(patterns, 100).queries)   # no labels
        >>> ahop.metrics.retrieval_accuracy(memory, world.sample(patterns, 100)) > 0.9
        True
    """

    name = "b-hop"
    similarity: Corruption

    def __init__(
        self,
        patterns: Any,
        *,
        similarity: Similarity | str | None = None,
        spread: Any = None,
        values: Any = None,
        prior: Any = None,
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        if similarity is None or isinstance(similarity, str):
            corruption = _beginning(patterns, Likelihood.name if similarity is None else similarity)
        elif isinstance(similarity, Density):
            named = isinstance(similarity, Corruption)
            corruption = similarity if named else Corruption(patterns.shape[1], similarity)  # type: ignore[assignment]
        else:
            kind = type(similarity).__name__
            raise TypeError(f"similarity must be a likelihood (a Density), the name of one or None, got {kind}")
        if spread is not None and not corruption.model.takes_spread:
            kind = type(corruption.model).__name__
            raise ValueError(
                f"similarity must know what to do with patterns that scatter where spread is given, got {kind}"
            )
        super().__init__(patterns, corruption, Softmax(), spread=spread, values=values, prior=prior)
        self._recent: Window | None = None

    @torch.no_grad()
    def fit(  # type: ignore[override]
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        observed: Observed = None,
        hidden_causes: int | None = None,
        order: int | Sequence[int] | None = None,
        room: Any = None,
        standardise: bool = False,
        learn_prior: bool = False,
        seed: int = 0,
        verbose: bool = True,
    ) -> BayesianHopfield:
        """Learn what happens to queries; returns the memory itself.

        Finds out what kind of corruption it is: one that hits every dimension by itself, hidden causes that move many
        at once, a floor that many values lie at, a space that was moved as a whole (queries may then have another width
        than patterns), or values that are better compared in another scale or by their slopes; and whether any of that
        is better than a plain metric, whitening or ridge regression. With origins, the kinds are compared by retrieval
        of origins that were left out (cross-validation). Without, origins are shared out among the likeliest patterns,
        and held-out queries decide as far as they can: see
        :mod:`ahop.similarity.families`. ``print(memory.report)`` says what was tried and what to expect.

        Work is bounded: where queries x patterns x dimensions are more than :math:`2^{36}`, a random sample of the
        queries is learned from, 2,048 at least, as the report says; and beyond 65,536 patterns, queries are shared out
        among their likeliest ones and a weighted sample of the others (:mod:`~ahop.similarity.families.stand_ins`).

        Args:
            queries: ``(n, d)``, or ``(n, q)`` of a space of their own.
            origins: ``(n,)``; -1 for one that nobody knows, None when nobody knows any. ``ahop.STRANGER`` for a query
                that comes from none of the patterns: these judge what ``reject`` refuses, 512 of them at most, and
                nothing else. They do not tell how common strangers are: somebody has picked them.
            observed: As in :meth:`scores`: learn from these entries alone. Hidden causes, a moved space and slopes
                take complete rows, and are not looked for when some are missing.
            hidden_causes: How many move several dimensions at once; 0 for single dimensions alone, None to find out
                what there is. Few queries may get a plain metric all the same, where they cannot tell more.
            order: Of the columns: 1 for a spectrum or a series, ``(height, width)`` for an image, row by row, whose
                slopes are then tried, too; 0 for none, None to find out.
            room: How many queries a pattern takes at most, as in :meth:`match`, if that is known: what is likely under
                this constraint is learned from (:mod:`ahop.similarity.families.capacity`). None for any number.
            standardise: Whether columns have units of their own, as grams beside degrees: each is then counted in the
                standard deviation of the patterns. Not for images, spectra and embeddings, whose columns are alike.
            learn_prior: Learn too how often each pattern is asked for.
            seed: For what is held out.
            verbose: Whether to show progress when it takes long.
        """
        if queries is None:
            raise ValueError("queries must be given: b-hop learns the corruption from them")
        queries = as_tensor(queries, "queries")
        width = queries.shape[-1] if queries.ndim else None
        with self.learning() as now:
            asked, known, strangers = now._pairs(queries, origins, observed, width)
            window = Window(asked, known)
            similarity = copy.deepcopy(now.similarity)
            report = similarity.fit(
                now._described(),
                window.queries.rows,
                window.origins,
                observed=window.queries.observed,
                log_prior=None if learn_prior else now._log_prior(),
                hidden_causes=hidden_causes,
                order=order,
                room=None if room is None else as_room(room, len(now)).to(now.patterns.device),
                standardise=standardise,
                seed=seed,
                verbose=verbose,
            )
            if learn_prior:
                now.prior = frequencies(similarity, now._described(), window)
            now._take(similarity, report)
            now._meet(strangers)
            now._recent = window.after(None)
        return self._warned(report)

    _learned: ClassVar[tuple[str, ...]] = ("similarity", "report", "prior", "_recent", "_turnover")
    _advice: ClassVar[str] = "give further queries to partial_fit"

    @torch.no_grad()
    def partial_fit(self, queries: Any, origins: Any = None, *, observed: Observed = None) -> BayesianHopfield:
        """Go on learning from a stream, a few queries at a time; returns the memory itself.

        Learns from the last queries that came, so it follows a corruption that changes. Queries with
        origins and queries without make two streams: the window begins anew when one follows the other.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``, or None when nobody knows them. Known strangers are left out.
            observed: As in :meth:`fit`; a memory that has found hidden causes needs complete queries.
        """
        with self.learning() as now:
            asked, known, _ = now._pairs(queries, origins, observed)
            window = Window(asked, known).after(now._recent)
            similarity, log_prior = copy.deepcopy(now.similarity), now._log_prior()
            rows, seen = window.queries.rows, window.queries.observed
            report = similarity.follow(now._described(), rows, window.origins, observed=seen, log_prior=log_prior)
            # A few steps at a time, as more queries come: nobody expects these to converge, or to be warned.
            if report is not None:
                now._take(similarity, report)
            now._recent = window
        return self

    def _resized(self, before: Tensor, kept: Tensor, added: int) -> None:
        super()._resized(before, kept, added)
        # The window's origins count the patterns as they were.
        self._recent = self._recent if added else None

    def _follow(self, kept: Tensor, added: int) -> None:
        super()._follow(kept, added)
        self._recent = self._recent if added else None
        if self.prior is not None:
            # Nobody has asked for new ones yet, and none is ruled out.
            self.prior = torch.cat([self.prior[kept], self.prior.new_ones(added)])

    # --- as dot products ---------------------------------------------------------------------------------

    def as_inner_product(self, tolerance: float = 0.1) -> Similarity:
        """Codes for patterns and queries whose dot products are the similarities, up to a constant of the query.

        For a vector index or a vector database: store ``encode_patterns(memory.patterns)``, ask with
        ``encode_queries(queries)``. A prior is not in the codes: add its logarithm to the products. Codes of hidden
        causes with heavy tails keep the order of patterns alone, whatever the tolerance, and codes of patterns that lie
        very far apart in units of the noise are float64: their products lose neighbours in float32.

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
        return self.similarity.codes(self._described(), tolerance)

    # --- what is known of a query ------------------------------------------------------------------------

    @torch.no_grad()
    @of_one_moment
    def log_evidence(self, queries: Any, *, observed: Observed = None) -> Tensor:
        r"""How well the stored patterns explain each query, :math:`\log \sum_k \pi_k \, p(x \mid \xi_k)`, ``(...)``.

        It mostly tells how hard a query was hit; :meth:`familiarity` tells whether its origin is stored. Neither
        carries gradients.
        """
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        flat, found = asked.flat(), []
        for part in split(len(flat), 2 * len(self) * flat.rows.element_size()) or [slice(0, 0)]:
            found.append(self.scores(flat[part].rows, observed=flat[part].observed).logsumexp(-1))
        level = math.log(len(self)) if self.prior is None else 0.0
        return torch.cat(found).reshape(asked.rows.shape[:-1]) - level

    @torch.no_grad()
    @of_one_moment
    def familiarity(self, queries: Any, *, observed: Observed = None) -> Tensor:
        r"""The log of how much likelier a query is from a stored pattern than from one that is not stored, ``(...)``.

        The evidence over the evidence under background patterns, each dimension of which is drawn from what the
        stored ones have there (of very many, those of a sample):

        .. math:: \log \operatorname*{mean}_k p(x \mid \xi_k) - \sum_i \log \operatorname*{mean}_k p(x_i \mid \xi_{k,i})
        """
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = asked.flat().single()
        background = self.similarity.stranger(like_all(self._described()), flat.rows, flat.observed)
        return self.log_evidence(asked.rows, observed=asked.observed) - background.reshape(asked.rows.shape[:-1])

    @torch.no_grad()
    @of_one_moment
    def restore(self, queries: Any, *, observed: Observed = None) -> Tensor:
        r"""Queries as the stored patterns were measured, ``(..., d)``: what the corruption did to them is undone.

        .. math:: \hat\xi(x) = \mathbb{E}[\xi \mid x]

        under the corruption that was learned, among normal patterns with the mean and covariance of the stored ones
        (:mod:`ahop.similarity.families.posterior`). A query need not come from a stored pattern, and is not drawn to
        the nearest: this is calibration transfer, from the instrument of the queries to that of the patterns. A
        corruption that cannot be undone is refused by its name; none of it carries gradients.

        Args:
            queries: ``(..., d')``.
            observed: As in :meth:`scores`; values that are missing are told by the others.

        Example:
            >>> first = torch.randn(60, 6, generator=torch.Generator().manual_seed(0)).cumsum(1)
            >>> second = 2 + 0.9 * first
            >>> memory = BayesianHopfield(first[:40]).fit(second[:40])   # no labels
            >>> bool((memory.restore(second[40:]) - first[40:]).abs().max() < 0.1)
            True
        """
        if not int(self.similarity.known):
            raise ValueError("restore must come after fit: what happened to queries is learned there")
        if self.report is not None and not self.report.found:
            raise ValueError("queries cannot be restored: fit found nothing that is better than chance")
        if self.spread is not None:
            raise ValueError("queries cannot be restored where patterns have a spread: what they tell is a measurement")
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = asked.flat().single()
        found = self.similarity.restored(single(self.patterns), flat.rows, flat.observed)
        return found.to(asked.rows).reshape(*asked.rows.shape[:-1], self.patterns.shape[1])

    def recall(
        self,
        queries: Any,
        k: int = 1,
        *,
        observed: Observed = None,
        prior: Prior | None = None,
        reject: float | None = None,
        coverage: float | None = None,
    ) -> Recall:
        """The k best patterns for each query; see :meth:`~ahop.memories.base.AssociativeMemory.recall`.

        Args:
            queries, k, observed: As there.
            prior: As there. Nobody has checked it: what comes back is not ``verified``.
            reject: The share of genuine queries that may be refused. Queries that are less familiar
                (:meth:`familiarity`) than all but this share of the genuine ones, as held out while learning, come from
                no stored pattern: their indices are -1 and their probabilities 0. ``refusal`` of what comes back
                says what that comes to, for queries that are observed as those were: of genuine ones that lack more
                values, more are refused. A ``prior`` has no say in it. None refuses nothing.
            coverage: Instead of k: as few patterns for each query as hold its origin at this rate, by labels that were
                held out or verified (conformal prediction, :mod:`ahop.learning.conformal`). ``coverage`` of what comes
                back says what so many labels can promise. Sets differ in size: the rest of a row is -1 with a
                probability of 0.

        Example:
            >>> patterns = torch.rand(100, 4, generator=torch.Generator().manual_seed(0))
            >>> queries, origins = ahop.variants.Noisy(0.2).sample(patterns, 300)
            >>> memory = BayesianHopfield(patterns).fit(queries[:200], origins[:200])
            >>> sets = memory.recall(queries[200:], coverage=0.9)
            >>> held = (sets.indices == origins[200:, None]).any(1).float().mean()
            >>> sets.indices.shape[1] > 1, 0.8 < float(held) <= 1, [round(end, 2) for end in sets.coverage]
            (True, True, [0.86, 0.93])
        """
        if coverage is not None and prior is not None:
            raise ValueError("coverage must be None where queries have a prior: labels were held out without it")
        with self._asking(codes=prior is None) as (now, view):
            if coverage is None:
                return now._refusing(view, queries, k, observed, reject, prior)
            return now._covered(view, queries, k, observed, reject, within(coverage, "coverage", 0.0, 1.0))

    @torch.no_grad()
    def match(self, queries: Any, room: Any = 1, *, observed: Observed = None, reject: float | None = None) -> Matching:
        """Match all queries together, where no pattern is meant by more of them than it has room for.

        Whether that is true of the data is yours to say. What it changed, and which patterns more queries had asked
        for by themselves, is in the answer; see :mod:`ahop.memories.matching` for what is computed. Where there are
        more queries than room, those are left out that the patterns explain least, with an index of -1.

        Args:
            queries: ``(n, d)``.
            room: How many queries a pattern takes: a number, or one for each pattern ``(N,)``.
            observed: As in :meth:`scores`.
            reject: As in :meth:`recall`; None takes every query to come from a stored pattern.

        Example:
            >>> memory = BayesianHopfield([[0.0, 0.0], [1.0, 1.0], [4.0, 4.0]])
            >>> queries = [[0.8, 0.8], [1.0, 1.1]]
            >>> memory.recall(queries).indices.flatten(), memory.match(queries).indices
            (tensor([1, 1]), tensor([0, 1]))
        """
        with self._asking() as (now, view):
            asked = as_queries(queries, now.patterns, observed, now.query_dim)
            if asked.rows.ndim != 2:
                raise ValueError(f"queries must be a matrix, one row each, got shape {tuple(asked.rows.shape)}")
            seats = as_room(room, len(now)).to(now.patterns.device)
            return matched(now, view, asked, seats, now._least_familiar(reject))

    def _least_familiar(self, reject: float | None) -> float:
        return -math.inf if reject is None else self.similarity.least_familiar(within(reject, "reject", 0.0, 1.0))

    def _refusing(
        self,
        view: View | None,
        queries: Any,
        k: int,
        observed: Observed,
        reject: float | None,
        prior: Prior | None = None,
    ) -> Recall:
        """The k best patterns; none for a query that is refused."""
        found = self._recalled(view, queries, k, observed, prior)
        if reject is not None:
            strange = (self.familiarity(queries, observed=observed) < self._least_familiar(reject))[..., None]
            found = Recall(found.indices.masked_fill(strange, -1), found.probabilities.masked_fill(strange, 0.0))
            found.refusal = self.similarity.refusal(reject)
        return found.checked(prior is None and self.verified)

    def _covered(
        self, view: View | None, queries: Any, k: int, observed: Observed, reject: float | None, coverage: float
    ) -> Recall:
        """Sets that hold the origin at a rate; every set has its first choice at least."""
        if k != 1:
            raise ValueError(f"k must be left out where coverage says how many patterns there are, got {k}")
        if self.prior is not None:
            raise ValueError("coverage must be None where the memory has a prior: labels were held out without it")
        if self._outdated:
            raise ValueError(
                "coverage must be None where many patterns have come or gone since labels judged: let verify see "
                "further answers"
            )
        ratio = math.exp(self.similarity.furthest(coverage))
        size = 0
        while True:
            size = min(len(self), max(_FIRST_CANDIDATES, 4 * size))
            found = self._refusing(view, queries, size, observed, reject)
            out = (found.indices < 0) | (found.probabilities < self._least(found.probabilities, ratio))
            out[..., 0] = False
            # One that is out comes after all that are in.
            if size == len(self) or bool(out[..., -1].all()):
                break
        size = max(1, int((~out).sum(-1).max())) if out.numel() else 1
        indices, probabilities = found.indices.masked_fill(out, -1), found.probabilities.masked_fill(out, 0.0)
        sets = Recall(indices[..., :size], probabilities[..., :size]).checked(found.verified)
        sets.refusal, sets.coverage = found.refusal, self.similarity.realised(coverage)
        return sets

    def _least(self, probabilities: Tensor, ratio: float) -> Tensor:
        """The probability that is so many times that of the first choice, doubt aside, ``(..., 1)``."""
        doubt = float(self.similarity.doubt)
        # What doubt alone makes of a pattern that is far behind cannot be told from what it makes of others as far.
        return (ratio * probabilities[..., :1] + (1 - ratio) * doubt / len(self)) * (1 - 1e-6)

    @of_one_moment
    def recall_exactly(self, queries: Any, k: int = 1, *, observed: Observed = None) -> Recall:
        """As :meth:`recall`, with every stored pattern scored exactly however many there are.

        Args:
            queries, k, observed: As in :meth:`recall`.
        """
        with reranking.exact_alone():
            return super().recall(queries, k, observed=observed)

    def index(self) -> Index:
        """Codes of the stored patterns, made once: with them, a recall from millions costs no more than a dot product.

        It is kept with the memory and follows it; :meth:`recall` itself uses it where patterns are many. Not every
        likelihood has codes: one that has none says so.
        """
        with self.changing:
            if self.spread is not None:
                raise NoCodesError("codes are not known where patterns have a spread")
            if self._index is None:
                from ahop.index.index import Index

                self._index = Index(self)
            return self._index

    def query_adapter(self, metric: str = "cosine") -> Adapter:
        """A function from queries of a moved space to vectors for an *existing* index of the patterns as they are.

        Only where :meth:`fit` found such a space. An index knows no covariances, so something is lost against
        :meth:`recall`; see :class:`~ahop.similarity.Moved`.

        Args:
            metric: What the index goes by: "inner", "cosine" or "l2".
        """
        return self.similarity.adapter(single(self.patterns), metric)


def _beginning(patterns: Tensor, name: str) -> Corruption:
    """A corruption of which nothing is known but what kind of likelihood it begins as, in the patterns' units."""
    kinds = {name: kind for name, kind in Similarity.members.items() if issubclass(kind, Density)}
    if name not in kinds:
        known = ", ".join(sorted(kinds))
        raise ValueError(
            f"similarity must name a likelihood, for b-hop's scores to be log-probabilities ({known}), got {name!r}; "
            "u-hop takes every similarity"
        )
    dim, units = patterns.shape[1], Units.of(patterns)
    low, high = reach(units.measure(patterns))
    plain = kinds[name] in (Corruption, Likelihood)
    model = Likelihood(dim, low=low, high=high) if plain else Similarity.of(name, dim)
    corruption = Corruption(dim)
    corruption.model = units.leave(model)
    corruption.query_dim = model.query_dim
    return corruption
