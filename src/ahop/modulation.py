"""Modulation: where the stored patterns are compared, a learned space in which they lie further apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from ahop._checks import require_finite
from ahop._component import Component
from ahop._precision import unit_of
from ahop.learning.chance import few_more_than_chance
from ahop.learning.gradient import adam
from ahop.learning.holdout import holdout_split
from ahop.learning.report import FitReport

# Standard errors by which a kernel has to be better than the identity on what was held out (as Student's t has it).
_MIN_STANDARD_ERRORS = 2.0


class Modulation(Component):
    """Maps patterns and queries ``(..., d)`` into the space where their similarity is taken."""

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` changes anything."""
        return type(self).fit is not Modulation.fit

    def fit(
        self,
        score: Callable[[Tensor, Tensor], Tensor],
        patterns: Tensor,
        queries: Tensor | None = None,
        origins: Tensor | None = None,
    ) -> FitReport:
        """Learn, in place, a space in which the scores tell patterns apart.

        Args:
            score: Gives the scores ``(n, N)`` of modulated patterns and queries.
            patterns: ``(N, d)``.
            queries: ``(n, d)``, if there are any.
            origins: The pattern that each query came from, ``(n,)``, if known.
        """
        raise TypeError(f"fit() of the {self.name!r} modulation has nothing to learn")


class Kernel(Modulation):
    r"""A linear map into a space with its own inner product.

    .. math:: \mathrm{sim}(\Phi \xi, \Phi x) = \xi^\top \Phi^\top \Phi x

    It starts as the identity (padded or cut when ``features`` differs from ``dim``).

    Args:
        dim: Number of dimensions of a pattern.
        features: Number of dimensions of the kernel space; ``dim`` when None.

    Shape:
        ``(..., dim)`` to ``(..., features)``.

    Example:
        >>> Kernel(dim=2)(torch.tensor([1.0, 2.0]))
        tensor([1., 2.], grad_fn=<SqueezeBackward4>)
    """

    def __init__(self, dim: int, features: int | None = None) -> None:
        super().__init__()
        self.dim, self.features = dim, features
        if features is not None and features < 1:
            raise ValueError(f"features must be at least 1, got {features}")
        self.phi = nn.Parameter(torch.eye(features or dim, dim))

    def reset_parameters(self) -> None:
        nn.init.eye_(self.phi)

    def forward(self, x: Tensor) -> Tensor:
        # Patterns in half precision are lifted to the precision of what was learned.
        wide = torch.promote_types(x.dtype, self.phi.dtype)
        return x.to(wide) @ self.phi.mT.to(wide)

    def fit(
        self,
        score: Callable[[Tensor, Tensor], Tensor],
        patterns: Tensor,
        queries: Tensor | None = None,
        origins: Tensor | None = None,
        *,
        steps: int = 200,
        rate: float = 1e-3,
        seed: int = 0,
    ) -> FitReport:
        """Fit by Adam, from the identity: to the retrieval loss of queries and origins or, without any, apart.

        A full kernel has d x d numbers and soon learns a few hundred samples by heart, so the retrieval loss is
        minimised on 80 % of them and the kernel that does best on the held-out 20 % is kept, if it is better than the
        identity there by more than chance. Patterns are measured by their own spread meanwhile, so that a step is
        as large in any unit.

        Args:
            score: Log-probabilities of patterns for queries in this space, up to a constant of the query.
            patterns, queries, origins: ``(N, d)``, ``(n, d)`` and ``(n,)``, at least five; of fewer than fifteen, too
                few are held out to change anything.
            steps, rate: Of Adam.
            seed: For the split, and for the patterns that the separation loss draws when there are very many.
        """
        generator = torch.Generator().manual_seed(seed)
        unit = unit_of(patterns)
        rows = patterns / unit
        kernel = type(self)(self.dim, self.features).to(rows)
        if queries is None or origins is None:

            def separate() -> Tensor:
                loss = kernel.separation_loss(rows, generator=generator)
                loss.backward()
                return loss.detach()

            report = adam([kernel.phi], separate, steps=steps, rate=rate)
            return self._keep(kernel.phi.detach() / unit, report)

        if len(queries) < 5:
            raise ValueError(f"queries must be at least 5, to hold out one in five; got {len(queries)}")
        asked = queries / unit
        shown, held_out = holdout_split(len(asked), seed, asked.device)

        def losses(part: Tensor) -> Tensor:
            """The retrieval loss of each."""
            return nn.functional.cross_entropy(
                score(kernel(rows), kernel(asked[part])), origins[part], reduction="none"
            )

        with torch.no_grad():
            start = losses(held_out)
        identity = kernel.phi.detach().clone()
        best, best_losses, best_phi = start.mean().item(), start, identity

        def retrieve() -> Tensor:
            nonlocal best, best_losses, best_phi
            with torch.no_grad():
                each = losses(held_out)
            value = each.mean()
            if value.item() < best:
                best, best_losses, best_phi = value.item(), each, kernel.phi.detach().clone()
            losses(shown).mean().backward()
            return value

        report = adam([kernel.phi], retrieve, steps=steps, rate=rate)
        if not few_more_than_chance(start - best_losses, _MIN_STANDARD_ERRORS):
            # Nor would more steps change that.
            found = replace(report, loss=start.mean().item(), converged=True, advice="")
            return self._keep(identity / unit, found)
        # The best on what was held out is behind it once that loss rises again.
        converged = report.converged or report.loss > best
        report = replace(report, loss=best, converged=converged, advice="" if converged else report.advice)
        return self._keep(best_phi / unit, report)

    @torch.no_grad()
    def _keep(self, phi: Tensor, report: FitReport) -> FitReport:
        require_finite(phi, "what was learned from these patterns and queries")
        self.phi.copy_(phi)
        return report

    def separation_loss(self, patterns: Tensor, most: int = 2048, generator: torch.Generator | None = None) -> Tensor:
        r"""How close the stored patterns lie to each other on the unit sphere of the kernel space.

        .. math:: \log \operatorname*{mean}_{i<j} \exp\left(-2 \lVert n(\Phi\xi_i) - n(\Phi\xi_j) \rVert^2\right),
            \qquad n(v) = v / \lVert v \rVert

        Args:
            patterns: ``(N, d)``, at least two.
            most: Of more patterns than this, so many are drawn at random, and their pairs taken.
            generator: Where that draw comes from.
        """
        if len(patterns) < 2:
            raise ValueError(f"patterns must be at least two for the separation loss, got {len(patterns)}")
        if len(patterns) > most:
            patterns = patterns[torch.randperm(len(patterns), generator=generator)[:most].to(patterns.device)]
        unit = nn.functional.normalize(self(patterns), dim=-1)
        # On the unit sphere the squared distance is 2 - 2 cos.
        first, second = torch.triu_indices(len(unit), len(unit), offset=1, device=unit.device)
        exponents = 4 * ((unit @ unit.mT)[first, second] - 1)
        return torch.logsumexp(exponents, dim=0) - math.log(len(exponents))
