"""A learned likelihood of values that are often at a floor: not heard, no peak, zero."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._checks import as_tensor
from ahop._queries import Queries
from ahop.similarity.codes import Asked, Codes, NoCodesError, Steps
from ahop.similarity.density import Density

# Values outside anything seen in fitting still have some density: so much of their bin's, at each open side.
_LEAST_SHARE = 4e-6
_TINY = 1e-30


class Floor(Density):
    r"""The log-likelihood when many values are exactly at a floor, and the rest lie above it.

    .. math:: p(x \mid \xi) = \sum_r \rho_r \prod_i
        \begin{cases} 1 - h_{r,i}(\xi_i) & x_i \text{ at the floor} \\
        h_{r,i}(\xi_i) \, v_r(b \mid \xi_i) \, / \, w_b & x_i \text{ in bin } b \text{, which is } w_b \text{ wide}
        \end{cases}

    A pattern's value counts by its level alone: the floor, or one of a few ranges off it. A query's value is off the
    floor with a probability h that depends on the level and the dimension. Where it lies then, v, depends on the level,
    in all dimensions alike. A whole query belongs to one of a few regimes r, which says how much it hears.
    :mod:`ahop.similarity.families.floor.learning` fits all of it.

    Args:
        dim: Number of dimensions d.
        floor: The value that many entries share.
        slack: How far from the floor a value is still at it.
        regimes: How many kinds of queries there are.
        levels: How many ranges patterns' values above the floor fall into.
        bins: How many those of queries do.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> heard = torch.tensor([[0.0, 0.7, 0.0], [0.9, 0.0, 0.0]])
        >>> Floor(dim=3)(heard, heard).argmax(1)
        tensor([0, 1])
    """

    dim: int
    cuts: Tensor
    edges: Tensor

    def __init__(
        self,
        dim: int,
        floor: float = 0.0,
        *,
        slack: float = 0.0,
        regimes: int = 1,
        levels: int = 1,
        bins: int = 1,
    ) -> None:
        super().__init__()
        if min(dim, regimes, levels, bins) < 1:
            given = f"{dim}, {regimes}, {levels} and {bins}"
            raise ValueError(f"dim, regimes, levels and bins must be at least 1, got {given}")
        if not slack >= 0:
            raise ValueError(f"slack must not be negative, got {slack}")
        self.dim, self.floor, self.slack, self.regimes = dim, floor, slack, regimes
        self.levels, self.bins = levels, bins
        self.log_rho = nn.Parameter(torch.empty(regimes))
        self.heard_logits = nn.Parameter(torch.empty(regimes, dim, levels + 1))
        self.value_logits = nn.Parameter(torch.empty(regimes, levels + 1, bins))
        self.register_buffer("cuts", torch.linspace(floor, floor + 1, levels + 1)[1:-1])
        self.register_buffer("edges", torch.linspace(floor, floor + 1, bins + 1))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.log_rho.fill_(-math.log(self.regimes))
        self.value_logits.zero_()
        # What the pattern has is mostly heard, and what it has not mostly is not.
        self.heard_logits.fill_(1.0)
        self.heard_logits[..., 0] = -3.0

    def at_floor(self, values: Tensor) -> Tensor:
        """Whether each value is at the floor."""
        return (values - self.floor).abs() <= self.slack

    def level(self, patterns: Tensor) -> Tensor:
        """The level of each value of the patterns, 0 at the floor."""
        return torch.where(self.at_floor(patterns), 0, 1 + torch.bucketize(patterns.contiguous(), self.cuts))

    def place(self, queries: Tensor) -> Tensor:
        """The bin of each value of the queries, as many as there are bins at the floor."""
        inner = torch.bucketize(queries.contiguous(), self.edges[1:-1])
        return torch.where(self.at_floor(queries), self.bins, inner)

    def outcomes(self) -> Tensor:
        """The log-probability of each bin and, last, of the floor, ``(R, d, levels + 1, bins + 1)``."""
        heard = nn.functional.logsigmoid(self.heard_logits)[..., None]
        values = heard + torch.log_softmax(self.value_logits, -1)[:, None]
        return torch.cat([values, nn.functional.logsigmoid(-self.heard_logits)[..., None]], -1)

    def within(self, queries: Tensor, places: Tensor) -> Tensor:
        """The log density of each value inside its bin, which no pattern has a part in; 0 at the floor, ``(Q, d)``."""
        width, open_sides = self.edges.diff(), torch.zeros_like(self.edges[1:])
        open_sides[0] += 1
        open_sides[-1] += 1
        own = places.clamp_max(self.bins - 1)
        beyond = (self.edges[0] - queries).clamp_min(0) + (queries - self.edges[-1]).clamp_min(0)
        inside = (-_LEAST_SHARE * open_sides).log1p()[own]
        shape = torch.where(beyond > 0, math.log(_LEAST_SHARE) - beyond / width[own], inside)
        return (shape - width.log()[own]).masked_fill(places == self.bins, 0.0)

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if patterns.ndim > 2:
            seen = [None] * len(patterns) if observed is None else observed
            return torch.stack([self(*rows) for rows in zip(patterns, queries, seen, strict=True)])
        each = self.dim * (self.bins + 1) + self.regimes * len(queries)
        parts = split(len(patterns), 2 * each * patterns.element_size())
        scores = [self._mixed(self.by_regime(patterns[part], queries, observed)) for part in parts]
        within = self.within(queries, self.place(queries))
        return torch.cat(scores, 1) + Queries(queries, observed).masked(within).sum(-1, keepdim=True)

    def by_regime(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """Log-probabilities of the bins and floors that a query falls into, in each regime.

        Args:
            patterns: ``(N, d)``.
            queries: ``(Q, d)``.
            observed: Which entries of the queries count, ``(Q, d)``; None is all.

        Returns:
            Log-probabilities, ``(Q, N, R)``.
        """
        places = self.place(queries)
        heard = places < self.bins if observed is None else (places < self.bins) & observed
        row, dim = heard.nonzero(as_tuple=True)
        entry, counts = dim * (self.bins + 1) + places[row, dim], heard.sum(1)
        levels, scores = self.level(patterns), []
        for outcome in self.outcomes():
            codes = self.pattern_codes(outcome, levels)
            silent = codes[:, -1].sum(0) if observed is None else observed.to(codes) @ codes[:, -1]
            # Only what is off the floor is looked up: most values are not.
            table, starts = codes.flatten(0, 1), counts.cumsum(0) - counts
            scores.append(silent + nn.functional.embedding_bag(entry, table, starts, mode="sum"))
        return torch.stack(scores, -1)

    def pattern_codes(self, outcome: Tensor, levels: Tensor) -> Tensor:
        """What each bin says more than the floor does and, last, what the floor says, ``(d, bins + 1, N)``."""
        terms = torch.cat([outcome[..., :-1] - outcome[..., -1:], outcome[..., -1:]], -1)
        return terms.mT.gather(2, levels.mT[:, None].expand(-1, self.bins + 1, -1))

    def _mixed(self, scores: Tensor) -> Tensor:
        return torch.logsumexp(scores + torch.log_softmax(self.log_rho, 0), -1)

    def codes(self, patterns: Tensor, tolerance: float) -> OneHot:
        """See :class:`OneHot`; they need no tolerance."""
        if self.regimes > 1:
            raise NoCodesError(
                f"codes of Floor need a single regime, got {self.regimes}: the scores of a mixture are not dot products"
            )
        return OneHot(copy.deepcopy(self))

    def mixture(self, patterns: Tensor, tolerance: float) -> list[tuple[float, Codes]]:
        return [(math.log(max(share, _TINY)), OneHot(copy.deepcopy(part))) for share, part in self.parts()]

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The scores of some patterns for each query, ``(N, d)``, ``(Q, C)`` and ``(Q, d)`` to ``(Q, C)``."""
        places, dims = self.place(queries), torch.arange(self.dim, device=queries.device)
        asked, levels = Queries(queries, observed), self.level(patterns[chosen])
        within = asked.masked(self.within(queries, places))
        scores = []
        for outcome in self.outcomes():
            terms = outcome[dims, levels, places[:, None]]
            scores.append(asked[:, None].masked(terms).sum(-1))
        return self._mixed(torch.stack(scores, -1)) + within.sum(-1, keepdim=True)

    @torch.no_grad()
    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        r"""The log evidence under a pattern whose dimensions are drawn from what the stored ones have there, ``(Q,)``:
        :math:`\sum_i \log \operatorname*{mean}_k p(x_i \mid \xi_{k,i})`, over the regimes."""
        common = nn.functional.one_hot(self.level(patterns), self.levels + 1).to(queries).mean(0)
        drawn = (common.log()[..., None] + self.outcomes()).logsumexp(-2)
        places = self.place(queries)
        terms = drawn[:, torch.arange(self.dim, device=queries.device), places].permute(1, 2, 0)
        terms = terms + self.within(queries, places)[..., None]
        return self._mixed((terms if observed is None else terms * observed[..., None]).sum(1))

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Floor:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        moved = {**self.arguments(), "floor": unit * self.floor + shift, "slack": unit * self.slack}
        new = type(self)(**moved).to(self.edges)
        new.load_state_dict(self.state_dict())
        for places in (new.cuts, new.edges):
            places.mul_(unit).add_(shift)
        return new

    @torch.no_grad()
    def parts(self) -> list[tuple[float, Floor]]:  # type: ignore[override]
        """The share of queries in each regime, and the regime by itself."""
        if self.regimes == 1:
            return [(1.0, self)]
        alone: list[tuple[float, Floor]] = []
        for index, share in enumerate(torch.softmax(self.log_rho, 0).tolist()):
            part = type(self)(**{**self.arguments(), "regimes": 1}).to(self.edges)
            own = {"heard_logits": self.heard_logits[[index]], "value_logits": self.value_logits[[index]]}
            part.load_state_dict({**self.state_dict(), **own, "log_rho": torch.zeros(1)})
            alone.append((share, part))
        return alone

    @torch.no_grad()
    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """How often each dimension is off the floor, and where its values then lie."""
        shares = torch.softmax(self.log_rho, 0)
        heard = torch.einsum("r,ril->li", shares, self.heard_logits.sigmoid()).cpu()
        values = torch.einsum("r,rlb->lb", shares, torch.softmax(self.value_logits, -1)) / self.edges.diff()
        middle = (self.edges[1:] + self.edges[:-1]).cpu() / 2
        return [
            ("off the floor where the pattern is", heard[1:].mean(0), None),
            ("off the floor where the pattern is not", heard[0], None),
            ("values where the pattern is highest", values[-1].cpu(), middle),
        ]

    def curve_unit(self, values: str) -> str:
        return "share of values"

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words.

        Example:
            >>> print(Floor(dim=3).describe())
            Many values are exactly 0, the floor.
            Of 100 values that a pattern has above it, 73 are there in its queries; of 100 at the floor, 5 are not.
        """
        lines = [f"Many values are exactly {self.floor:.3g}, the floor."]
        for share, (quiet, *heard) in zip(
            torch.softmax(self.log_rho, 0).tolist(), self.heard_logits.sigmoid().mean(1).tolist(), strict=True
        ):
            text = (
                f"of 100 values that a pattern has above it, {100 * sum(heard) / len(heard):.0f} are there in its "
                f"queries; of 100 at the floor, {100 * quiet:.0f} are not."
            )
            who = "" if self.regimes == 1 else f"In {100 * share:.0f} of 100 queries, "
            lines.append(who + (text if who else text.capitalize()))
        return "\n".join(lines)


class OneHot(Codes):
    r"""Dot products that are the scores of a :class:`Floor` of one regime, up to a constant of the query.

    .. math:: \psi_{i,b}(x) = [x_i \text{ in bin } b], \quad \psi_{i,0}(x) = 1, \qquad
        \phi_{i,b}(\xi) = \log \frac{p(b \mid \xi_i)}{p(\text{floor} \mid \xi_i)}, \quad
        \phi_{i,0}(\xi) = \log p(\text{floor} \mid \xi_i)

    Args:
        likelihood: What was learned.

    Shape:
        patterns ``(N, d)`` to ``(N, d * (bins + 1))``, queries ``(Q, d)`` to ``(Q, d * (bins + 1))``.
    """

    dim: int

    def __init__(self, likelihood: Floor) -> None:
        super().__init__()
        self.likelihood, self.dim = likelihood, likelihood.dim

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        r"""The codes :math:`\phi(\xi)` to store."""
        patterns = as_tensor(patterns, "patterns").to(self.likelihood.edges)
        codes = self.likelihood.pattern_codes(self.likelihood.outcomes()[0], self.likelihood.level(patterns))
        return codes.permute(2, 0, 1).flatten(1)

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        r"""The codes :math:`\psi(x)`, of observed dimensions alone; scores are products and a constant of the query."""
        queries = as_tensor(queries, "queries").to(self.likelihood.edges)
        places = self.likelihood.place(queries)
        codes = nn.functional.one_hot(places, self.likelihood.bins + 1).to(queries)
        codes[..., -1] = 1
        within = self.likelihood.within(queries, places)
        if observed is not None:
            codes, within = codes * observed[..., None], within * observed
        return Asked(codes.flatten(-2), within.sum(-1, keepdim=True))

    def steps(self, patterns: Tensor, count: int) -> Steps | None:
        """The floor and a value of each level, which are all that a pattern's values count by."""
        likelihood = self.likelihood
        first = likelihood.floor + likelihood.slack
        if likelihood.levels + 1 > count or (likelihood.levels > 1 and float(likelihood.cuts[0]) <= first):
            return None
        edges = torch.cat([likelihood.cuts.new_tensor([first]), likelihood.cuts])
        above = torch.cat([(edges[1:] + edges[:-1]) / 2, edges[-1:] + (edges[-1:] - likelihood.floor).abs() + 1])
        values = torch.cat([edges.new_tensor([likelihood.floor]), above])
        return Steps(*(column[:, None].expand(-1, self.dim) for column in (values, edges)))
