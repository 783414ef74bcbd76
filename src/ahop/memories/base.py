"""AssociativeMemory: stored patterns, and the walk from a query to what it recalls."""

from __future__ import annotations

import copy
import math
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import (
    STRANGER,
    Observed,
    as_matrix,
    as_origins,
    as_queries,
    integer,
    require_finite,
    within,
)
from ahop._component import single
from ahop._precision import in_range
from ahop._queries import Queries
from ahop._recall import Recall
from ahop._settle import settle
from ahop._warnings import warn
from ahop.energy import parts_energy
from ahop.learning.report import FitReport
from ahop.memories import storage
from ahop.memories.context import Prior, in_context
from ahop.memories.moments import differentiable_on_demand, of_one_moment
from ahop.memories.stored import Stored
from ahop.modulation import Modulation
from ahop.separation import Exponential, Separation, Softmax
from ahop.similarity import Density, Similarity, reranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from typing_extensions import Self


class AssociativeMemory(Stored):
    r"""Stores patterns and retrieves the one that best explains a query.

    .. math:: y = V^\top \mathrm{sep}\big(\mathrm{sim}(\mathrm{mod}(\Xi), \mathrm{mod}(x)) + \tfrac1\beta \log \pi\big)

    Every network of the library is one choice of the three parts; this class is the walk they share. Several threads
    may ask, add, remove, learn and save at once: each answer and each file is that of the memory at one moment.

    A memory begins in evaluation mode: its answers are plain numbers, ``memory.retrieve(x).numpy()``, unless the
    queries require gradients. ``memory.train()``, or that of a network around it, lets gradients reach its parameters.

    Args:
        patterns: The stored patterns :math:`\Xi`, ``(N, d)``, one a row.
        similarity: How alike a pattern and a query are, or the name of a similarity.
        separation: How scores become weights, or the name of a separation.
        modulation: The space in which they are compared; None compares them as they are.
        values: What is read out, ``(N, v)``; None reads out the patterns themselves.
        prior: How often each pattern is asked for, ``(N,)``, as counts or probabilities; None is uniform.

    Example:
        >>> memory = AssociativeMemory(torch.eye(3), "distance", "softmax")
        >>> memory.recall(torch.tensor([0.9, 0.1, 0.0])).indices
        tensor([0])
    """

    name = "memory"
    report: FitReport | None = None
    """What the last fit says of itself; None before the first."""

    def __init__(
        self,
        patterns: Any,
        similarity: Similarity | str,
        separation: Separation | str,
        *,
        modulation: Modulation | None = None,
        values: Any = None,
        prior: Any = None,
    ) -> None:
        super().__init__()
        self.register_buffer("patterns", as_matrix(patterns, "patterns").detach().clone())
        if modulation is not None and not isinstance(modulation, Modulation):
            raise TypeError(f"modulation must be a Modulation or None, got {type(modulation).__name__}")
        # Copies: a part given to two memories is learned by each for itself, and cast with its own patterns.
        dim = None if modulation is not None else self.patterns.shape[1]
        self.similarity = copy.deepcopy(Similarity.of(similarity, dim))
        self.separation = copy.deepcopy(Separation.of(separation))
        self.modulation = copy.deepcopy(modulation)
        self.register_buffer("values", None if values is None else self._rows(values, "values", len(self)))
        self.register_buffer("prior", None if prior is None else self._counts(prior, len(self)))
        # The parts follow the patterns, so that a float64 memory computes in float64 throughout.
        self.to(self.patterns)
        self.eval()

    def extra_repr(self) -> str:
        return f"patterns={len(self)}, dim={self.patterns.shape[1]}"

    # --- from a query to an answer ---------------------------------------------------------------------

    @differentiable_on_demand
    @of_one_moment
    def scores(self, queries: Any, *, observed: Observed = None) -> Tensor:
        """How alike each stored pattern is to each query, the prior included.

        Args:
            queries: ``(..., d)``.
            observed: Which entries of the queries to trust, a boolean mask that broadcasts to the queries
                (True = trusted); the rest is ignored. ``"not-nan"`` trusts all but NaN. None trusts all.

        Shape:
            ``(..., N)``, in float32 or better; in float64 where float32 cannot tell which pattern is the best.
        """
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        return self._scores(asked.flat()).reshape(*asked.rows.shape[:-1], len(self))

    @differentiable_on_demand
    @of_one_moment
    def weights(self, queries: Any, *, observed: Observed = None) -> Tensor:
        """The weight of each stored pattern in the readout, ``(..., N)``; arguments as in :meth:`scores`."""
        weights: Tensor = self.separation(self.scores(queries, observed=observed))
        return weights

    @differentiable_on_demand
    @of_one_moment
    def retrieve(
        self,
        queries: Any,
        steps: int | None = 1,
        *,
        observed: Observed = None,
        prior: Prior | None = None,
        tolerance: float = 1e-5,
        max_steps: int = 1000,
    ) -> Tensor:
        """Read out what the queries bring to mind.

        Args:
            queries: ``(..., d)``.
            steps: How often the answer becomes the next state; None goes on until the state converges.
            observed: As in :meth:`scores`. Between steps, trusted entries are set back to what was observed.
            prior: As in :meth:`recall`, at every step; it gets no gradients.
            tolerance: A state has converged when no entry moves by more than this.
            max_steps: Where ``steps=None`` gives up, with a warning.

        Shape:
            ``(..., v)`` with ``values``, else ``(..., d)``.
        """
        if steps is not None:
            steps = integer(steps, "steps", 1)
        tolerance = within(tolerance, "tolerance", 0.0, math.inf)
        max_steps = integer(max_steps, "max_steps", 1)
        if steps != 1 and self.query_dim != self.patterns.shape[1]:
            raise ValueError(f"steps must be 1 where answers and queries differ in width; got {steps}")
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        if prior is not None:
            return self._settle_in_context(asked, prior, steps, tolerance, max_steps)
        flat, width = asked.flat(), self.readouts.shape[1]
        parts = [
            self._settle(flat[part], steps, tolerance, max_steps)
            for part in split(len(flat), len(self) * flat.rows.element_size())
        ]
        answer = torch.cat(parts) if parts else flat.rows.new_empty(0, width)
        return answer.reshape(*asked.rows.shape[:-1], width)

    forward = retrieve

    @torch.no_grad()
    @of_one_moment
    def recall(self, queries: Any, k: int = 1, *, observed: Observed = None, prior: Prior | None = None) -> Recall:
        r"""The k stored patterns that best explain each query, and how sure the memory is of each.

        Under a separation with a reach, such as :class:`~ahop.separation.Epanechnikov`, only patterns that reach the
        query are answers. A query that none reaches is a stranger, and refused: all its indices are -1.

        Args:
            queries: ``(..., d)``.
            k: How many patterns, at most N.
            observed: As in :meth:`scores`.
            prior: How likely each query is to mean each pattern, by what is known beside it (a place, a mass, a class):
                ``(..., N)``, as counts, probabilities or True for what it may mean. It multiplies the memory's own.
                A mask, a sparse tensor ``(n, N)`` and zeros cost nothing: only patterns that a query may mean
                are scored. A function from a slice of the n queries to their ``(m, N)`` keeps memory bounded. None is
                uniform. It is the context of Context-gated associative retrieval (2026), without that paper's gate
                circuit.

        Shape:
            ``indices`` and ``probabilities`` are ``(..., k)``, best first; where the prior, or a reach, leaves fewer
            than k, the rest is -1 with a probability of 0.

        Example:
            >>> memory = AssociativeMemory(torch.eye(3), "distance", "softmax")
            >>> memory.recall(torch.tensor([0.9, 0.1, 0.0]), 2, prior=[False, True, True]).indices
            tensor([1, 2])
        """
        k = self._as_count(k)
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        if prior is not None:
            return self._recall_in_context(asked, k, prior)
        shape, flat = (*asked.rows.shape[:-1], k), asked.flat()
        rows, device = flat.rows, flat.rows.device
        indices, probabilities = rows.new_empty(len(rows), k, dtype=torch.long), single(rows.new_empty(len(rows), k))
        left = torch.arange(len(rows), device=device)
        if self._fusible:
            with torch.autocast(device.type, enabled=False):
                beta = self.separation.inverse_temperature
                best = self.similarity.best(self.patterns, rows, flat.observed, k, beta, self._log_prior())
            if best is not None and bool(torch.isfinite(best[1]).all()):
                indices, probabilities, left = best[0], best[1].to(probabilities), (~best[2]).nonzero().squeeze(1)
        for part in split(len(left), len(self) * rows.element_size()):
            here = left[part]
            scores = self._scores(flat[here])
            likely = self.separation.probabilities(scores)
            # A separation may give exact zeros, which the scores still rank; an even power reorders the scores.
            chosen = (scores if self.separation.probabilistic else likely).topk(k, dim=-1).indices
            sure = likely.gather(-1, chosen).to(probabilities.dtype)
            if self.separation.bounded:
                # Not even the best of the patterns is an answer to who lies beyond the reach of it.
                chosen = chosen.masked_fill(sure == 0, -1)
            indices[here], probabilities[here] = chosen, sure
        return Recall(indices.reshape(shape), probabilities.reshape(shape))

    def _as_count(self, k: int) -> int:
        """How many patterns to answer with."""
        if integer(k, "k", 1) > len(self):
            raise ValueError(f"k must be between 1 and {len(self)}, the number of stored patterns; got {k}")
        return int(k)

    @reranking.exact_alone()
    def _recall_in_context(self, queries: Queries, k: int, prior: Prior) -> Recall:
        flat, shape = queries.flat(), queries.rows.shape[:-1]
        indices = flat.rows.new_full((len(flat), k), -1, dtype=torch.long)
        probabilities = single(flat.rows.new_zeros(len(flat), k))
        for group in in_context(self, prior, shape):
            some, most = group.restrict(self), min(k, len(group.kept))
            chosen, likely = some._best(some._scores(flat[group.rows]), most)
            outside = group.prior.gather(1, chosen) == 0
            indices[group.rows, :most] = group.kept[chosen].masked_fill(outside, -1)
            probabilities[group.rows, :most] = likely.to(probabilities)
        return Recall(indices.reshape(*shape, k), probabilities.reshape(*shape, k))

    def _best(self, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k best patterns of each query and how likely they are, ``(Q, k)``, by scores with the prior in them."""
        chosen = scores.topk(k, dim=-1).indices
        return chosen, self.separation.probabilities(scores).gather(-1, chosen)

    @differentiable_on_demand
    @of_one_moment
    def energy(self, queries: Any, *, prior: Prior | None = None) -> Tensor:
        r"""The energy of each query, ``(...)``; lower is closer to what is stored.

        .. math:: E(x) = \mathrm{bowl}(x) - \Psi^\star(s(\Xi, x))

        It belongs to the parts: :math:`\Psi^\star` to the separation, the bowl to the similarity where that separation
        needs one, so that the same parts have the same energy in every network. See :mod:`ahop.energy`.

        Args:
            queries: ``(..., d)``.
            prior: As in :meth:`recall`: each query then has an energy of its own, which :meth:`retrieve` with the same
                prior descends.
        """
        asked = as_queries(queries, self.patterns, None, self.query_dim)
        if prior is None:
            return self._energy(asked.rows, self.scores(asked.rows))
        flat, shape = asked.flat(), asked.rows.shape[:-1]
        rows, parts = [], [single(flat.rows).new_zeros(0)]
        for group in in_context(self, prior, shape):
            some, here = group.restrict(self), flat[group.rows]
            rows.append(group.rows)
            parts.append(some._energy(here.rows, some._scores(here)))
        energy = torch.cat(parts)
        return energy[torch.cat(rows).argsort()].reshape(shape) if rows else energy.reshape(shape)

    def _energy(self, queries: Tensor, scores: Tensor) -> Tensor:
        state = queries if self.modulation is None else self.modulation(single(queries))
        energy = parts_energy(self.similarity, self.separation, state, scores)
        if not bool(torch.isfinite(energy).all()):
            raise ValueError(f"queries must be closer to zero: their energy does not fit {energy.dtype}")
        return energy

    # --- learning, growing, keeping --------------------------------------------------------------------

    def fit(
        self, queries: Any = None, origins: Any = None, *, observed: Observed = None, **options: Any
    ) -> AssociativeMemory:
        """Learn what "alike" means here; returns the memory itself.

        It is the similarity that learns (:meth:`ahop.similarity.Similarity.fit`), or the modulation where that is what
        can. A memory of fixed parts has nothing to learn: it checks what it is given, warns, and stays as it is.

        Args:
            queries: ``(n, d)``.
            origins: The index of the stored pattern that each query came from, ``(n,)``; -1 where unknown, None if
                none is known. Likelihoods learn from such queries too; others leave them out.
                ``ahop.STRANGER`` where somebody knows that it is none of the patterns: nothing learns from these, and
                only b-hop is judged by them.
            observed: As in :meth:`scores`: learn from these entries alone.
            options: Of the similarity's own fit.
        """
        if self.modulation is not None and self.modulation.learns:
            return self._fit_modulation(queries, origins, observed, **options)
        if queries is None:
            raise ValueError(f"queries must be given: {type(self).__name__} learns from them")
        with self.learning() as now:
            asked, known, _ = now._pairs(queries, origins, observed)
            if not isinstance(now.similarity, Density):
                asked, known = _known(asked, known)
            # Learned in a copy of it, for others to go by the old one meanwhile.
            similarity = copy.deepcopy(now.similarity)
            patterns, log_prior = now._described(), now._log_prior()
            if now.modulation is not None:
                patterns, asked = now.modulation(patterns).detach(), Queries(now.modulation(asked.rows).detach())
            report = similarity.fit(
                patterns, asked.rows, known, observed=asked.observed, log_prior=log_prior, **options
            )
            if similarity.learns:
                now._take(similarity, report)
        return self._warned(report) if similarity.learns else self

    def _fit_modulation(self, queries: Any, origins: Any, observed: Observed, **options: Any) -> Self:
        with self.learning() as now:
            rows = known = None
            if queries is not None:
                asked, known, _ = now._pairs(queries, origins, observed)
                asked, known = _known(asked, known)
                rows = asked.rows
            beta, log_prior = now.separation.inverse_temperature, now._log_prior()
            # A sample may come from a pattern that the prior rules out: a surprise, but no infinite one.
            surprise = 0.0 if log_prior is None else log_prior.clamp_min(-1e4)
            modulation = copy.deepcopy(now.modulation)
            assert modulation is not None

            def score(patterns: Tensor, queries: Tensor) -> Tensor:
                return beta * now.similarity(patterns, queries) + surprise

            now.report = modulation.fit(score, single(now.patterns), rows, known, **options)
            now.modulation = modulation
        return self._warned(now.report)

    _learned: ClassVar[tuple[str, ...]] = ("similarity", "modulation", "report")

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` changes anything."""
        return self.similarity.learns or (self.modulation is not None and self.modulation.learns)

    def _take(self, similarity: Similarity, report: FitReport) -> None:
        """What was learned, if it is sound."""
        for learned in similarity.parameters():
            require_finite(learned, "what was learned from these patterns and queries")
        self.similarity, self.report = similarity.to(single(self.patterns[:0])), report

    _advice: ClassVar[str] = "give it more queries"

    def _warned(self, report: FitReport | None) -> Self:
        """Warn where a fit had not come to its end."""
        if report is not None and not report.converged:
            # Scikit-learn takes a second to import, and it is the name that people filter by.
            from sklearn.exceptions import ConvergenceWarning

            steps = f"{report.iterations} iterations of {report.solver}"
            message = f"the fit was still improving after {steps}; what it learned is kept"
            warn(f"{message}; to go on, {report.advice or self._advice}", ConvergenceWarning)
        return self

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the memory into ``folder``; :func:`ahop.load` reads it back. See :mod:`ahop.memories.storage`."""
        storage.save(copy.copy(self), folder)

    def plot(self, queries: Any = None, origins: Any = None, *, observed: Observed = None) -> Figure:
        """A first look at the memory, as a matplotlib figure: see :func:`ahop.plot.first_look`."""
        # What draws knows of memories, and none of them of it.
        drawn: Figure = import_module("ahop.plot").first_look(self, queries, origins, observed=observed)
        return drawn

    # --- the steps of the walk, for networks to replace --------------------------------------------------

    def _scores(self, queries: Queries) -> Tensor:
        log_prior = self._log_prior()
        added = None if log_prior is None else log_prior / self.separation.inverse_temperature
        # Under autocast, a score in half precision could not tell close patterns apart.
        with torch.autocast(self.patterns.device.type, enabled=False):
            asked = Queries(single(queries.rows), queries.observed if self.modulation is None else None)
            scores = in_range(self.similarity, self._described(), asked, self.modulation, added)
        if log_prior is None or added is None:
            return scores
        # As low as a number can be where a pattern is never asked for. Not minus infinity: a weight of zero times that
        # would be no number.
        return torch.where(log_prior == -torch.inf, torch.finfo(scores.dtype).min, scores + added)

    def _described(self) -> Tensor:
        """The patterns as the similarity takes them, a row each, in float32 or better."""
        return single(self.patterns)

    def _log_prior(self) -> Tensor | None:
        """The log share of each pattern, minus infinity for one that is never asked for; None where all are alike."""
        if self.prior is None:
            return None
        return (self.prior.double() / self.prior.double().sum(-1, keepdim=True)).to(self.prior).log()

    @property
    def _fusible(self) -> bool:
        """Whether the similarity may do the separation too: a plain softmax, and nothing in between replaced."""
        plain = type(self)._scores is AssociativeMemory._scores and self.modulation is None
        # A similarity knows of one prior for all queries.
        plain = plain and (self.prior is None or self.prior.ndim == 1)
        return plain and type(self.separation) in (Exponential, Softmax)

    def _blend(self, queries: Queries, values: Tensor) -> Tensor:
        """The weights times some values, by the similarity's own way where it has one."""
        if self._fusible:
            rows, seen = queries.rows, queries.observed
            with torch.autocast(rows.device.type, enabled=False):
                beta = self.separation.inverse_temperature
                blend = self.similarity.blend(self.patterns, rows, seen, values, beta, self._log_prior())
            if blend is not None and bool(torch.isfinite(blend[0]).all()):
                readout, left = blend[0], (~blend[1]).nonzero().squeeze(1)
                if not len(left):
                    return readout
                return readout.index_copy(0, left, self._read_out(queries[left], values))
        return self._read_out(queries, values)

    def _read_out(self, queries: Queries, values: Tensor) -> Tensor:
        weights: Tensor = self.separation(self._scores(queries))
        readout = (weights @ values.to(weights.dtype)).to(values.dtype)
        if self.separation.bounded and values is self.patterns and readout.shape == queries.rows.shape:
            # A state that no pattern reaches stays where it is, where the energy is flat.
            return torch.where(weights.any(-1, keepdim=True), readout, queries.rows)
        return readout

    def _settle(self, queries: Queries, steps: int | None, tolerance: float, max_steps: int) -> Tensor:
        # The last step is the readout. A given number of steps is made whether states rest or not.
        before, tolerance = (None, tolerance) if steps is None else (steps - 1, 0.0)
        given = queries.rows, queries.observed
        state, known = settle(self._step, *given, steps=before, tolerance=tolerance, most=max_steps)
        return self._read(state, known)

    @reranking.exact_alone()
    def _settle_in_context(
        self, queries: Queries, prior: Prior, steps: int | None, tolerance: float, max_steps: int
    ) -> Tensor:
        flat, shape = queries.flat(), queries.rows.shape[:-1]
        answer = self.readouts.new_empty(len(flat), self.readouts.shape[1])
        for group in in_context(self, prior, shape):
            answer[group.rows] = group.restrict(self)._settle(flat[group.rows], steps, tolerance, max_steps)
        return answer.reshape(*shape, answer.shape[1])

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        """The next state, in the space of the patterns."""
        return self._blend(Queries(state, observed), self.patterns)

    def _read(self, state: Tensor, observed: Tensor | None) -> Tensor:
        """The answer, in the space of the values."""
        return self._blend(Queries(state, observed), self.readouts)

    @property
    def readouts(self) -> Tensor:
        """The values, which are read out, or else the patterns."""
        return self.patterns if self.values is None else self.values

    # --- what comes in ---------------------------------------------------------------------------------

    @property
    def query_dim(self) -> int:
        """How many values a query has; as many as a pattern, unless the similarity was made for another number."""
        own = self.similarity.query_dim if self.modulation is None else None
        return own or self.patterns.shape[1]

    def _pairs(
        self, queries: Any, origins: Any, observed: Observed, width: int | None = None
    ) -> tuple[Queries, Tensor | None, Queries]:
        """Checked queries ``(n, d)`` in float32 or better, with a mask if values are missing, and their origins
        ``(n,)`` if any is known; an origin of -1 is not. Then the known strangers among them, which are left out."""
        asked = as_queries(queries, self.patterns, observed, width or self.query_dim).single()
        if asked.rows.ndim != 2 or not len(asked):
            shape = tuple(asked.rows.shape)
            raise ValueError(f"queries must be a non-empty matrix, one row each, got shape {shape}")
        known, strangers = None, asked[:0]
        if origins is not None:
            known = as_origins(origins, len(asked), len(self), least=STRANGER).to(self.patterns.device)
            genuine = known != STRANGER
            if not bool(genuine.any()):
                raise ValueError("origins must leave some queries to learn from, got known strangers only")
            asked, known, strangers = asked[genuine], known[genuine], asked[~genuine]
            known = None if bool((known < 0).all()) else known
        if asked.observed is None or bool(asked.observed.all()):
            return Queries(asked.rows), known, strangers
        if not bool(asked.observed.any()):
            raise ValueError("observed must leave some entries to learn from, got none")
        return asked, known, strangers


def _known(queries: Queries, origins: Tensor | None) -> tuple[Queries, Tensor | None]:
    """Those queries alone whose origins are known, where some are."""
    if origins is None or not bool((origins < 0).any()):
        return queries, origins
    rows = origins >= 0
    return queries[rows], origins[rows]
