"""AssociativeMemory: stored patterns, and the walk from a query to what it recalls."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._checks import (
    Observed,
    as_matrix,
    as_origins,
    as_queries,
    as_tensor,
    require_finite,
    stored_as,
    whole,
    within,
)
from ahop._component import Component, never_half, single
from ahop._precision import in_range
from ahop._recall import Recall
from ahop._settle import settle
from ahop.energy import parts_energy
from ahop.learning.report import FitReport
from ahop.memories import storage
from ahop.modulation import Modulation
from ahop.separation import Exponential, Separation, Softmax
from ahop.similarity import Density, Similarity

if TYPE_CHECKING:
    from typing_extensions import Self


class Memory(Component):
    """The family of memories, which :func:`ahop.create` and :func:`ahop.load` look names up in."""


class AssociativeMemory(Memory):
    r"""Stores patterns and retrieves the one that best explains a query.

    .. math:: y = V^\top \mathrm{sep}\big(\mathrm{sim}(\mathrm{mod}(\Xi), \mathrm{mod}(x)) + \tfrac1\beta \log \pi\big)

    Every network of the library is one choice of the three parts; this class is the walk they share.

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
    patterns: Tensor
    values: Tensor | None
    prior: Tensor | None
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

    def __len__(self) -> int:
        return len(self.patterns)

    def extra_repr(self) -> str:
        return f"patterns={len(self)}, dim={self.patterns.shape[1]}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> AssociativeMemory:
        # Patterns and values may be stored in half precision; the parts see to themselves, and counts do not fit.
        prior = self.prior
        for name in ("patterns", "values"):
            stored = getattr(self, name)
            if stored is not None and (like := fn(stored[:0])).dtype != stored.dtype:
                stored_as(stored, like.to(stored.device), name)
        nn.Module._apply(self, fn, recurse)
        if prior is not None:
            self.prior = never_half(fn)(prior)
        return self

    # --- from a query to an answer ---------------------------------------------------------------------

    def scores(self, queries: Any, *, observed: Observed = None) -> Tensor:
        """How alike each stored pattern is to each query, the prior included.

        Args:
            queries: ``(..., d)``.
            observed: Which entries of the queries to trust, a boolean mask that broadcasts to the queries
                (True = trusted); the rest is ignored. ``"not-nan"`` trusts all but NaN. None trusts all.

        Shape:
            ``(..., N)``, in float32 or better; in float64 where values are so large or small that float32 cannot tell.
        """
        queries, mask = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = queries.reshape(-1, queries.shape[-1])
        scores = self._scores(flat, None if mask is None else mask.reshape(flat.shape))
        return scores.reshape(*queries.shape[:-1], len(self))

    def weights(self, queries: Any, *, observed: Observed = None) -> Tensor:
        """The weight of each stored pattern in the readout, ``(..., N)``; arguments as in :meth:`scores`."""
        weights: Tensor = self.separation(self.scores(queries, observed=observed))
        return weights

    def retrieve(
        self,
        queries: Any,
        steps: int | None = 1,
        *,
        observed: Observed = None,
        tolerance: float = 1e-5,
        max_steps: int = 1000,
    ) -> Tensor:
        """Read out what the queries bring to mind.

        Args:
            queries: ``(..., d)``.
            steps: How often the answer becomes the next state; None goes on until the state converges.
            observed: As in :meth:`scores`. Between steps, trusted entries are set back to what was observed.
            tolerance: A state has converged when no entry moves by more than this.
            max_steps: Where ``steps=None`` gives up, with a warning.

        Shape:
            ``(..., v)`` with ``values``, else ``(..., d)``.
        """
        if steps is not None:
            steps = whole(steps, "steps", 1)
        tolerance = within(tolerance, "tolerance", 0.0, math.inf)
        max_steps = whole(max_steps, "max_steps", 1)
        if steps != 1 and self.query_dim != self.patterns.shape[1]:
            raise ValueError(f"steps must be 1: answers are not as wide as queries and cannot be asked; got {steps}")
        queries, mask = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = queries.reshape(-1, queries.shape[-1])
        mask = None if mask is None else mask.reshape(flat.shape)
        parts = [
            self._settle(flat[part], None if mask is None else mask[part], steps, tolerance, max_steps)
            for part in split(len(flat), len(self) * flat.element_size())
        ]
        width = self.readouts.shape[1]
        answer = torch.cat(parts) if parts else flat.new_empty(0, width)
        return answer.reshape(*queries.shape[:-1], width)

    forward = retrieve

    @torch.no_grad()
    def recall(self, queries: Any, k: int = 1, *, observed: Observed = None) -> Recall:
        """The k stored patterns that best explain each query, and how sure the memory is of each.

        Args:
            queries: ``(..., d)``.
            k: How many patterns, at most N.
            observed: As in :meth:`scores`.

        Shape:
            ``indices`` and ``probabilities`` are ``(..., k)``, best first.
        """
        if whole(k, "k", 1) > len(self):
            raise ValueError(f"k must lie in 1 to {len(self)}, the number of stored patterns; got {k}")
        queries, mask = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = queries.reshape(-1, queries.shape[-1])
        mask = None if mask is None else mask.reshape(flat.shape)
        shape = (*queries.shape[:-1], k)
        if self._fusible:
            with torch.autocast(flat.device.type, enabled=False):
                beta = self.separation.inverse_temperature
                best = self.similarity.best(self.patterns, flat, mask, k, beta, self._log_prior())
            if best is not None and bool(torch.isfinite(best[1]).all()):
                return Recall(best[0].reshape(shape), best[1].reshape(shape))
        indices, probabilities = flat.new_empty(len(flat), k, dtype=torch.long), single(flat.new_empty(len(flat), k))
        for part in split(len(flat), len(self) * flat.element_size()):
            scores = self._scores(flat[part], None if mask is None else mask[part])
            likely = self.separation.probabilities(scores)
            # A separation may give exact zeros, which the scores still rank; an even power reorders the scores.
            indices[part] = (scores if self.separation.probabilistic else likely).topk(k, dim=-1).indices
            probabilities[part] = likely.gather(-1, indices[part]).to(probabilities.dtype)
        return Recall(indices.reshape(shape), probabilities.reshape(shape))

    def energy(self, queries: Any) -> Tensor:
        r"""The energy of each query, ``(...)``; lower is closer to what is stored.

        .. math:: E(x) = \mathrm{bowl}(x) - \Psi^\star(s(\Xi, x))

        It belongs to the parts: :math:`\Psi^\star` to the separation, the bowl to the similarity where that separation
        needs one, so that the same parts have the same energy in every network. See :mod:`ahop.energy`.
        """
        queries, _ = as_queries(queries, self.patterns, None, self.query_dim)
        state = queries if self.modulation is None else self.modulation(single(queries))
        energy = parts_energy(self.similarity, self.separation, state, self.scores(queries))
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
            origins: The index of the stored pattern that each query came from, ``(n,)``; -1 where nobody knows it, None
                when nobody knows any. Likelihoods learn from such queries too; others leave them out.
            observed: As in :meth:`scores`: learn from these entries alone.
            options: Of the similarity's own fit.
        """
        if self.modulation is not None and self.modulation.learns:
            return self._fit_modulation(queries, origins, observed, **options)
        if queries is None:
            raise ValueError(f"queries must be given: {type(self).__name__} learns from them")
        queries, origins, mask = self._pairs(queries, origins, observed)
        if not isinstance(self.similarity, Density):
            queries, origins, mask = _known(queries, origins, mask)
        # Learned in a copy, so that a fit that breaks off has changed nothing.
        similarity = copy.deepcopy(self.similarity)
        patterns, log_prior = single(self.patterns), self._log_prior()
        if self.modulation is not None:
            patterns, queries, mask = self.modulation(patterns).detach(), self.modulation(queries).detach(), None
        report = similarity.fit(patterns, queries, origins, observed=mask, log_prior=log_prior, **options)
        return self._take(similarity, report) if similarity.learns else self

    def _fit_modulation(self, queries: Any, origins: Any, observed: Observed, **options: Any) -> Self:
        asked = known = None
        if queries is not None:
            asked, known, _ = _known(*self._pairs(queries, origins, observed))
        beta, log_prior = self.separation.inverse_temperature, self._log_prior()
        # A sample may come from a pattern that the prior rules out: a surprise, but no infinite one.
        surprise = 0.0 if log_prior is None else log_prior.clamp_min(-1e4)
        modulation = copy.deepcopy(self.modulation)
        assert modulation is not None

        def score(patterns: Tensor, queries: Tensor) -> Tensor:
            return beta * self.similarity(patterns, queries) + surprise

        report = modulation.fit(score, single(self.patterns), asked, known, **options)
        self.modulation = modulation
        return self._learned(report)

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` changes anything."""
        return self.similarity.learns or (self.modulation is not None and self.modulation.learns)

    def _take(self, similarity: Similarity, report: FitReport) -> Self:
        """What was learned, at once and only if it is sound."""
        for learned in similarity.parameters():
            require_finite(learned, "what was learned from these patterns and queries")
        self.similarity = similarity.to(single(self.patterns[:0]))
        return self._learned(report)

    def _learned(self, report: FitReport) -> Self:
        """Keep what a fit says of itself, and warn where it had not come to its end."""
        self.report = report
        if not report.converged:
            # Scikit-learn takes a second to import, and it is the name that people filter by.
            from sklearn.exceptions import ConvergenceWarning

            steps = f"{report.iterations} iterations of {report.solver}"
            warnings.warn(
                f"the fit was still improving after {steps}; what it learned is kept", ConvergenceWarning, stacklevel=3
            )
        return self

    @torch.no_grad()
    def add(self, patterns: Any, *, values: Any = None, prior: Any = None) -> AssociativeMemory:
        """Store further patterns, with their values and prior counts where this memory has them."""
        new = stored_as(as_matrix(patterns, "patterns"), self.patterns, "patterns")
        if new.shape[1] != self.patterns.shape[1]:
            have, came = self.patterns.shape[1], tuple(new.shape)
            raise ValueError(f"patterns must have {have} values each, like those stored; got shape {came}")
        for name, given, stored in (("values", values, self.values), ("prior", prior, self.prior)):
            if given is None and stored is not None:
                raise ValueError(f"{name} must be given for the new patterns: this memory has {name}")
            if given is not None and stored is None:
                raise ValueError(f"{name} must not be given: this memory was made without {name}")
        if self.values is not None:
            more = self._rows(values, "values", len(new)).to(self.values)
            if more.shape[1] != self.values.shape[1]:
                raise ValueError(f"values must have {self.values.shape[1]} numbers each, got shape {tuple(more.shape)}")
            values = torch.cat([self.values, more])
        if self.prior is not None:
            prior = torch.cat([self.prior, self._counts(prior, len(new))])
        kept, before = torch.arange(len(self), device=self.patterns.device), self.patterns
        self.patterns, self.values, self.prior = torch.cat([self.patterns, new]), values, prior
        self._resized(before, kept, len(new))
        return self

    @torch.no_grad()
    def remove(self, indices: Any) -> AssociativeMemory:
        """Forget the stored patterns at ``indices``; those behind them move up."""
        gone = as_tensor(indices, "indices", whole=True).to(self.patterns.device).reshape(-1)
        gone = as_origins(gone if gone.numel() else gone.long(), len(gone), len(self), "indices")
        keep = torch.ones(len(self), dtype=torch.bool, device=self.patterns.device)
        keep[gone] = False
        if not bool(keep.any()):
            raise ValueError(f"indices must leave at least one pattern, got all {len(self)} of them")
        kept, before = keep.nonzero().squeeze(1), self.patterns
        self.patterns = self.patterns[kept]
        self.values = None if self.values is None else self.values[kept]
        self.prior = None if self.prior is None else self.prior[kept]
        self._resized(before, kept, 0)
        return self

    def _resized(self, before: Tensor, kept: Tensor, added: int) -> None:
        """Let the parts follow: of the patterns before, these are kept, and so many were added behind them."""
        self.similarity.resize(kept, added)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the memory into ``folder``; :func:`ahop.load` reads it back. See :mod:`ahop.memories.storage`."""
        storage.save(self, folder)

    # --- the steps of the walk, for networks to replace --------------------------------------------------

    def _scores(self, queries: Tensor, observed: Tensor | None) -> Tensor:
        patterns, queries = single(self.patterns), single(queries)
        if self.modulation is not None:
            patterns, queries, observed = self.modulation(patterns), self.modulation(queries), None
        # Under autocast, a score in half precision could not tell close patterns apart.
        with torch.autocast(patterns.device.type, enabled=False):
            scores = in_range(self.similarity, patterns, queries, observed)
        log_prior = self._log_prior()
        if log_prior is None:
            return scores
        # As low as a number can be where a pattern is never asked for. Not minus infinity: a weight of zero times that
        # would be no number.
        possible = scores + log_prior / self.separation.inverse_temperature
        return torch.where(log_prior == -torch.inf, torch.finfo(scores.dtype).min, possible)

    def _log_prior(self) -> Tensor | None:
        """The log share of each pattern, minus infinity for one that is never asked for; None where all are alike."""
        if self.prior is None:
            return None
        return (self.prior.double() / self.prior.double().sum()).to(self.prior).log()

    @property
    def _fusible(self) -> bool:
        """Whether the similarity may do the separation too: a plain softmax, and nothing in between replaced."""
        plain = type(self)._scores is AssociativeMemory._scores and self.modulation is None
        return plain and type(self.separation) in (Exponential, Softmax)

    def _blend(self, queries: Tensor, observed: Tensor | None, values: Tensor) -> Tensor:
        """The weights times some values, by the similarity's own way where it has one."""
        if self._fusible:
            with torch.autocast(queries.device.type, enabled=False):
                beta = self.separation.inverse_temperature
                blend = self.similarity.blend(self.patterns, queries, observed, values, beta, self._log_prior())
            if blend is not None and bool(torch.isfinite(blend).all()):
                return blend
        weights: Tensor = self.separation(self._scores(queries, observed))
        return (weights @ values.to(weights.dtype)).to(values.dtype)

    def _settle(
        self, queries: Tensor, observed: Tensor | None, steps: int | None, tolerance: float, max_steps: int
    ) -> Tensor:
        # The last step is the readout. A given number of steps is made whether states rest or not.
        before, tolerance = (None, tolerance) if steps is None else (steps - 1, 0.0)
        state, known = settle(
            self._step, queries, observed, steps=before, tolerance=tolerance, most=max_steps, stacklevel=4
        )
        return self._read(state, known)

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        """The next state, in the space of the patterns."""
        return self._blend(state, observed, self.patterns)

    def _read(self, state: Tensor, observed: Tensor | None) -> Tensor:
        """The answer, in the space of the values."""
        return self._blend(state, observed, self.readouts)

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
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Checked queries ``(n, d)`` in float32 or better, their origins ``(n,)`` if any is known, and a mask if some
        miss; an origin of -1 is not known."""
        queries, mask = as_queries(queries, self.patterns, observed, width or self.query_dim)
        if queries.ndim != 2 or not len(queries):
            raise ValueError(f"queries must be a non-empty matrix, one row each, got shape {tuple(queries.shape)}")
        known = None
        if origins is not None:
            known = as_origins(origins, len(queries), len(self), unknown=True).to(self.patterns.device)
            known = None if bool((known < 0).all()) else known
        if mask is None or bool(mask.all()):
            return single(queries), known, None
        if not bool(mask.any()):
            raise ValueError("observed must leave something to learn from, got queries of which nothing was observed")
        return single(queries), known, mask

    def _rows(self, rows: Any, name: str, count: int) -> Tensor:
        rows = as_matrix(rows, name)
        if len(rows) != count:
            raise ValueError(f"{name} must have one row per pattern, {count}; got shape {tuple(rows.shape)}")
        return stored_as(rows, self.patterns, name)

    def _counts(self, prior: Any, count: int) -> Tensor:
        if not self.separation.probabilistic:
            raise ValueError(f"prior needs a separation that gives probabilities, not {self.separation.name!r}")
        prior = as_tensor(prior, "prior")
        if prior.shape != (count,):
            raise ValueError(f"prior must be one number per pattern, shape ({count},), got shape {tuple(prior.shape)}")
        require_finite(prior, "prior")
        if bool((prior < 0).any()) or not float(prior.sum()) > 0:
            raise ValueError("prior must be counts or probabilities: not negative, and not all zero")
        return stored_as(prior, single(self.patterns[:0]), "prior")


def _known(queries: Tensor, origins: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Those queries alone whose origins are known, where some are."""
    if origins is None or not bool((origins < 0).any()):
        return queries, origins, mask
    rows = origins >= 0
    return queries[rows], origins[rows], None if mask is None else mask[rows]
