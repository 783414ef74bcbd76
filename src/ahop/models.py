"""The named networks: one short recipe each over :class:`~ahop.memory.AssociativeMemory`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from ahop import energy as energies
from ahop._checks import Observed, as_matrix, choice, require_finite, whole
from ahop._component import single
from ahop._precision import unit_of
from ahop.fitting import FitReport, adam, fit_adaptive, retrieval_loss
from ahop.memory import AssociativeMemory, Memory
from ahop.modulation import Kernel
from ahop.separation import Exponential, Identity, Power, Separation, Softmax, Sparsemax
from ahop.similarity import Adaptive, Decomposable, Dot, Similarity


class _Binary(AssociativeMemory, abstract=True):
    """A network of units that are -1 or +1: the readout goes through the sign."""

    def __init__(self, patterns: Any, separation: Separation, values: Any) -> None:
        super().__init__(self._signs(patterns, "patterns"), Dot(), separation, values=values)
        if self.values is not None:
            self._signs(self.values, "values")

    def _signs(self, rows: Any, name: str) -> Tensor:
        signs = as_matrix(rows, name)
        if not bool((signs.abs() == 1).all()):
            raise ValueError(f"{name} of a {type(self).__name__} must be -1 or +1, got other values")
        return signs

    def add(self, patterns: Any, *, values: Any = None, prior: Any = None) -> AssociativeMemory:
        """Store further patterns of -1 and +1."""
        self._signs(patterns, "patterns")
        if values is not None:
            self._signs(values, "values")
        return super().add(patterns, values=values, prior=prior)

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        return self._moved(super()._step(state, observed), state)

    @staticmethod
    def _moved(drive: Tensor, state: Tensor) -> Tensor:
        """A unit that is not driven either way stays as it is or, if nobody has observed it either, is up."""
        moved = torch.where(drive == 0, state, drive.sign())
        return torch.where(moved == 0, 1.0, moved)

    def _read(self, state: Tensor, observed: Tensor | None) -> Tensor:
        return self._step(state, observed) if self.values is None else super()._read(state, observed).sign()


class ClassicalHopfield(_Binary):
    r"""The original network of binary units.

    .. math:: x \leftarrow \mathrm{sign}(\Xi \Xi^\top x), \qquad E(x) = -\tfrac12 x^\top \Xi \Xi^\top x

    It stores about 0.14 d random patterns.

    Args:
        patterns: ``(N, d)`` of -1 and +1.
        update: ``"synchronous"`` moves all units at once. ``"asynchronous"`` moves one after the other, each
            driven by all the others, in a random order; the energy then never rises.
        seed: For that order.
        values: Read out instead of the patterns, through the sign.

    Example:
        >>> memory = ClassicalHopfield(torch.tensor([[1, 1, -1, -1], [1, -1, 1, -1]]))
        >>> memory.retrieve(torch.tensor([1, 1, 1, -1]), steps=None)
        tensor([ 1.,  1.,  1., -1.])
    """

    name = "hop"
    _energy = energies.quadratic

    def __init__(
        self,
        patterns: Any,
        *,
        update: Literal["synchronous", "asynchronous"] = "synchronous",
        seed: int = 0,
        values: Any = None,
    ) -> None:
        super().__init__(patterns, Identity(), values)
        self.update, self.seed = choice(update, "update", ("synchronous", "asynchronous")), whole(seed, "seed", 0)

    def _step(self, state: Tensor, observed: Tensor | None) -> Tensor:
        if self.update == "synchronous":
            return super()._step(state, observed)
        state = (state if observed is None else state * observed).clone()
        overlaps = state @ self.patterns.mT
        order = torch.randperm(state.shape[1], generator=torch.Generator().manual_seed(self.seed)).tolist()
        for unit in order:
            column = self.patterns[:, unit]
            drive = overlaps @ column - len(self) * state[:, unit]
            moved = self._moved(drive, state[:, unit])
            overlaps += (moved - state[:, unit])[:, None] * column
            state[:, unit] = moved
        return state


class DenseHopfield(_Binary):
    r"""Binary units that store far more by raising overlaps to a power.

    .. math:: x \leftarrow \mathrm{sign}(\Xi (\Xi^\top x)^k), \qquad E(x) = -\sum_i (\xi_i^\top x)^{k+1}

    Args:
        patterns: ``(N, d)`` of -1 and +1.
        k: The power; 1 is the classical network.
        values: Read out instead of the patterns, through the sign.
    """

    name = "d-hop"
    _energy = energies.polynomial

    def __init__(self, patterns: Any, *, k: int = 3, values: Any = None) -> None:
        super().__init__(patterns, Power(k), values)
        self.k = whole(k, "k", 1)


class ExponentialHopfield(_Binary):
    r"""Binary units that store exponentially many patterns.

    .. math:: x \leftarrow \mathrm{sign}(\Xi \exp(\Xi^\top x)), \qquad E(x) = -\log \sum_i \exp(\xi_i^\top x)

    The textbook energy is :math:`-\sum_i \exp(\xi_i^\top x)`; its logarithm falls and rises with it and does not
    overflow.

    Args:
        patterns: ``(N, d)`` of -1 and +1.
        values: Read out instead of the patterns, through the sign.
    """

    name = "e-hop"

    def __init__(self, patterns: Any, *, values: Any = None) -> None:
        super().__init__(patterns, Exponential(), values)


class ModernHopfield(AssociativeMemory):
    r"""The modern network of real-valued units, which is attention.

    .. math:: x \leftarrow \Xi \, \mathrm{softmax}(\beta \Xi^\top x), \qquad
        E(x) = \tfrac12 x^\top x - \tfrac1\beta \mathrm{lse}(\beta \Xi^\top x)

    Args:
        patterns: ``(N, d)``.
        beta: Inverse temperature.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.
    """

    name = "m-hop"
    _energy = energies.convex

    def __init__(self, patterns: Any, *, beta: float = 1.0, values: Any = None, prior: Any = None) -> None:
        super().__init__(patterns, Dot(), Softmax(beta), values=values, prior=prior)
        self.beta = float(beta)


class UniversalHopfield(AssociativeMemory):
    """Any similarity with any separation; by default Manhattan distance and the single best pattern.

    Args:
        patterns: ``(N, d)``.
        similarity, separation: The parts, or their names.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.

    Example:
        >>> memory = UniversalHopfield(torch.eye(3), similarity="cosine", separation="sparsemax")
    """

    name = "u-hop"

    def __init__(
        self,
        patterns: Any,
        *,
        similarity: Similarity | str = "manhattan",
        separation: Separation | str = "argmax",
        values: Any = None,
        prior: Any = None,
    ) -> None:
        super().__init__(patterns, similarity, separation, values=values, prior=prior)

    def _energy(self, queries: Tensor) -> Tensor:
        parts = f"{self.similarity.name} similarity with {self.separation.name} separation"
        raise ValueError(f"UniversalHopfield has no energy: none is known for {parts}")


class SparseHopfield(AssociativeMemory):
    r"""A modern network whose weights are exactly zero for all but a few patterns.

    .. math:: x \leftarrow \Xi \, \mathrm{sparsemax}(\beta \Xi^\top x), \qquad
        E(x) = \tfrac12 x^\top x - \tfrac1\beta \Psi_2^\star(\beta \Xi^\top x)

    Args:
        patterns: ``(N, d)``.
        beta: Inverse temperature.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.
    """

    name = "s-hop"
    _energy = energies.convex

    def __init__(self, patterns: Any, *, beta: float = 1.0, values: Any = None, prior: Any = None) -> None:
        super().__init__(patterns, Dot(), Sparsemax(beta), values=values, prior=prior)
        self.beta = float(beta)


class KernelHopfield(AssociativeMemory):
    r"""Compares patterns and queries in a learned space.

    .. math:: x \leftarrow \Xi \, \mathrm{sep}(\Xi^\top \Phi^\top \Phi x), \qquad
        E(x) = \tfrac12 \lVert \Phi x \rVert^2 - \Psi^\star(\Xi^\top \Phi^\top \Phi x)

    Args:
        patterns: ``(N, d)``.
        loss: What :math:`\Phi` is fitted to. ``"separation"`` (k-hop) moves the stored patterns apart and needs
            no queries; ``"retrieval"`` (k2-hop) finds the origins of given queries.
        features: Dimensions of the learned space; d when None.
        separation: Softmax, entmax or another, or its name.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.
    """

    name = "k-hop"
    _energy = energies.convex

    def __init__(
        self,
        patterns: Any,
        *,
        loss: Literal["separation", "retrieval"] = "separation",
        features: int | None = None,
        separation: Separation | str = "softmax",
        values: Any = None,
        prior: Any = None,
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        kernel = Kernel(patterns.shape[1], features)
        super().__init__(patterns, Dot(), separation, modulation=kernel, values=values, prior=prior)
        self.loss, self.features = choice(loss, "loss", ("separation", "retrieval")), features

    def fit(
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        observed: Observed = None,
        steps: int = 200,
        rate: float = 1e-3,
        seed: int = 0,
    ) -> KernelHopfield:
        """Fit the kernel by Adam, from the identity; queries and origins are needed for the retrieval loss alone.

        A full kernel has d x d numbers and soon learns a few hundred samples by heart, so the retrieval loss is
        minimised on four fifths of them and the kernel that does best on the last fifth is kept. Patterns are
        measured by their own spread meanwhile, so that a step is as large in any unit.

        Args:
            queries, origins: ``(n, d)`` and ``(n,)``, at least five.
            observed: As in :meth:`scores`; the rest counts as zero, as it does in retrieval.
            steps, rate: Of Adam.
            seed: For the split, and for the patterns that the separation loss draws when there are very many.
        """
        generator = torch.Generator().manual_seed(seed)
        unit = unit_of(self.patterns)
        rows = single(self.patterns) / unit
        kernel = Kernel(rows.shape[1], self.features).to(rows)
        if self.loss == "separation":

            def separate() -> Tensor:
                loss = kernel.separation_loss(rows, generator=generator)
                loss.backward()
                return loss.detach()

            report = adam([kernel.phi], separate, steps=steps, rate=rate)
            return self._keep(kernel.phi.detach() / unit, report)

        if queries is None or origins is None:
            raise ValueError("queries and origins must both be given to fit the retrieval loss")
        queries, origins, _ = self._pairs(queries, origins, observed)
        if len(queries) < 5:
            raise ValueError(f"queries must be at least 5, to hold out a fifth of them; got {len(queries)}")
        queries = queries / unit
        order = torch.randperm(len(queries), generator=generator).to(queries.device)
        held_out, shown = order[: len(order) // 5], order[len(order) // 5 :]
        beta, log_prior = self.separation.inverse_temperature, self._log_prior()
        # A sample may come from a pattern that the prior rules out: a surprise, but no infinite one.
        surprise = 0.0 if log_prior is None else log_prior.clamp_min(-1e4)

        def loss_on(part: Tensor) -> Tensor:
            scores = beta * self.similarity(kernel(rows), kernel(queries[part]))
            return retrieval_loss(scores + surprise, origins[part])

        best, best_phi = float("inf"), kernel.phi.detach().clone()

        def retrieve() -> Tensor:
            nonlocal best, best_phi
            with torch.no_grad():
                value = loss_on(held_out)
            if value.item() < best:
                best, best_phi = value.item(), kernel.phi.detach().clone()
            loss_on(shown).backward()
            return value

        report = adam([kernel.phi], retrieve, steps=steps, rate=rate)
        # The best on what was held out is behind it once that loss rises again.
        return self._keep(best_phi / unit, replace(report, loss=best, converged=report.converged or report.loss > best))

    @torch.no_grad()
    def _keep(self, phi: Tensor, report: FitReport) -> KernelHopfield:
        require_finite(phi, "what was learned from these patterns and queries")
        assert isinstance(self.modulation, Kernel)
        self.modulation.phi.copy_(phi)
        return self._learned(report)


class AdaptiveHopfield(AssociativeMemory):
    r"""Learns from samples what "alike" means under the corruption at hand.

    .. math:: y = \Xi \, \mathrm{softmax}(s(\Xi, x)), \qquad s(\xi, x) = \sum_b w_b^\top \mathrm{ftpt}_b(\xi, x), \qquad
        E(x) = -\mathrm{lse}(s(\Xi, x))

    Args:
        patterns: ``(N, d)``.
        bases: The similarities whose footprints are weighed.
        sort, matrix, learn_matrix: As in :class:`~ahop.similarity.Adaptive`.
        isolated: Give every pattern its own weights, for patterns that are each corrupted in their own way.
        separation: Softmax or another, or its name.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.

    Example:
        >>> patterns = torch.rand(100, 16, generator=torch.Generator().manual_seed(0))
        >>> world = ahop.variants.Mixed(mask=0.3, noise=0.1, bias=0.1)
        >>> memory = AdaptiveHopfield(patterns).fit(*world.sample(patterns, 200))
        >>> memory.report.converged
        True
    """

    name = "a-hop"
    similarity: Adaptive

    def __init__(
        self,
        patterns: Any,
        *,
        bases: Sequence[Decomposable | str] = ("distance", "dot"),
        sort: bool = True,
        matrix: Literal["cumulative", "identity"] | Tensor = "cumulative",
        learn_matrix: bool = False,
        isolated: bool = False,
        separation: Separation | str = "softmax",
        values: Any = None,
        prior: Any = None,
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        count, dim = patterns.shape
        own = count if isolated else None
        similarity = Adaptive(dim, bases, sort=sort, matrix=matrix, learn_matrix=learn_matrix, patterns=own)
        super().__init__(patterns, similarity, separation, values=values, prior=prior)
        self.sort, self.matrix, self.learn_matrix, self.isolated = sort, matrix, learn_matrix, isolated

    @property
    def bases(self) -> list[Decomposable]:
        return list(self.similarity.bases)  # type: ignore[arg-type]

    def fit(
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        observed: Observed = None,
        solver: Literal["convex", "adam"] = "convex",
        smoothness: float | None = None,
        negatives: int | None = None,
        steps: int = 200,
        rate: float = 0.1,
        seed: int = 0,
    ) -> AdaptiveHopfield:
        """Fit the weights to queries whose origins are known; see :func:`ahop.fitting.fit_adaptive`.

        The prior and a temperature of the separation do not enter: the similarity learns the likelihood alone.
        """
        if queries is None or origins is None:
            raise ValueError("queries and origins must both be given: a-hop learns from labelled pairs")
        queries, origins, mask = self._pairs(queries, origins, observed)
        # Learned in a copy, so that a fit that breaks off has changed nothing.
        similarity = copy.deepcopy(self.similarity)
        report = fit_adaptive(
            similarity,
            single(self.patterns),
            queries,
            origins,
            observed=mask,
            solver=solver,
            smoothness=smoothness,
            negatives=negatives,
            steps=steps,
            rate=rate,
            seed=seed,
        )
        self.similarity.load_state_dict(similarity.state_dict())
        return self._learned(report)


def create(name: str, patterns: Any, **options: Any) -> AssociativeMemory:
    """A network by its short name; "k2-hop" is a :class:`KernelHopfield` fitted to the retrieval loss.

    Example:
        >>> create("m-hop", torch.eye(3), beta=2.0)
        ModernHopfield(
          patterns=3, dim=3
          (similarity): Dot()
          (separation): Softmax(beta=2)
        )
    """
    if name == "k2-hop":
        return KernelHopfield(patterns, loss="retrieval", **options)
    known = sorted([key for key in Memory.members if key.endswith("hop")] + ["k2-hop"])
    if name not in known:
        raise ValueError(f"unknown model {name!r}; known: {', '.join(known)}")
    model: AssociativeMemory = Memory.named(name)(patterns, **options)  # type: ignore[assignment]
    return model
