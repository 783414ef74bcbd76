"""A learned likelihood: what happens to a value, one dimension at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ahop._blocks import pairwise, split
from ahop._queries import Queries
from ahop.kernels import plain
from ahop.similarity import codes, reranking
from ahop.similarity.base import Decomposable
from ahop.similarity.density import Density, column_name
from ahop.similarity.families.posterior import Prior, expected
from ahop.similarity.scatter import mean_and_variance

_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)
# Values far outside anything seen in fitting still have some density, so that no score is infinite: so much of a flat
# density over the range of the background.
_LEAST_SHARE = 4e-6
_TINY = 1e-30


class Likelihood(Decomposable, Density):
    r"""The log-likelihood of a query under a learned corruption.

    .. math:: s(\xi, x) = \sum_i \log\Big((1 - m_i) \sum_j \pi_j \, N(x_i;\, a_j \xi_i + b_i,\, (\sigma_j t_i)^2)
        + m_i \, g(x_i)\Big)

    A value keeps a trace of its pattern's, with gain :math:`a_j`, bias :math:`b_i` and noise :math:`\sigma_j t_i`;
    or it is lost, with probability :math:`m_i`, and comes from a background :math:`g` that every dimension shares.
    The background is a density that is linear between knots. :mod:`ahop.similarity.families.independent.learning` fits
    all of it, by expectation maximisation.

    A pattern that scatters is its mean, followed by its standard deviations :math:`\varsigma`: a value that is kept
    then has variance :math:`a_j^2 \varsigma_i^2 + (\sigma_j t_i)^2`.

    Without gradients, many scores at once on a CPU are computed as dot products (:mod:`ahop.similarity.codes`): exact
    for the best patterns of each query, with a root mean square error of 0.01 for the rest.

    Args:
        dim: Number of dimensions d.
        components: How many kinds of noise, J.
        shifted: The background lives on :math:`x_i - b_i`: values were lost before the bias came.
        low, high: The range of the background's knots.
        centre: Where gains leave a value as it is: :math:`\xi_i` and :math:`x_i` above are counted from data.
        knots: How many the background has.

    Shape:
        patterns ``(N, d)`` or ``(N, 2d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> likelihood = Likelihood(dim=3)
        >>> likelihood(torch.eye(3), torch.eye(3)).argmax(1)
        tensor([0, 1, 2])
    """

    takes_spread = True
    dim: int

    def __init__(
        self,
        dim: int,
        components: int = 1,
        *,
        shifted: bool = False,
        low: float = -3.0,
        high: float = 3.0,
        centre: float = 0.0,
        knots: int = 48,
    ) -> None:
        super().__init__()
        if dim < 1 or components < 1:
            raise ValueError(f"dim and components must be at least 1, got {dim} and {components}")
        if not low < high:
            raise ValueError(f"low must be less than high, got {low} and {high}")
        if knots < 2:
            raise ValueError(f"knots must be at least 2, got {knots}")
        self.dim, self.components, self.shifted, self.low, self.high = dim, components, shifted, low, high
        self.centre, self.knots = centre, knots
        self.bias = nn.Parameter(torch.empty(dim))
        self.gain = nn.Parameter(torch.empty(components))
        self.log_sigma = nn.Parameter(torch.empty(components))
        self.log_scale = nn.Parameter(torch.empty(dim))
        self.mix_logits = nn.Parameter(torch.empty(components))
        self.mask_logits = nn.Parameter(torch.empty(dim))
        self.background = nn.Parameter(torch.empty(self.knots))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for zeros in (self.bias, self.log_scale, self.mix_logits, self.background):
            zeros.zero_()
        self.gain.fill_(1.0)
        self.mask_logits.fill_(-2.0)
        widths = torch.linspace(-0.5, 0.5, self.components) if self.components > 1 else torch.zeros(1)
        self.log_sigma.copy_(widths)

    @property
    def sigma(self) -> Tensor:
        """The standard deviation of each kind of noise in each dimension, ``(J, d)``."""
        return (self.log_sigma[:, None] + self.log_scale).exp()

    @property
    def mask_rate(self) -> Tensor:
        """The probability that a value is lost, ``(d,)``."""
        return self.mask_logits.sigmoid()

    def place(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The knot to the left of each value, and how far it is on the way to the next."""
        position = (values - self.low) * ((self.knots - 1) / (self.high - self.low))
        left = position.detach().floor().clamp(0, self.knots - 2)
        return left.long(), (position - left).clamp(0, 1)

    def lost(self, queries: Tensor) -> Tensor:
        r"""The log of :math:`m_i \, g(x_i)`, which no pattern has a part in, ``(..., d)``."""
        values = queries - self.bias if self.shifted else queries
        left, way = self.place(values)
        # Knots at the ends carry half a hat.
        hats = torch.ones_like(self.background)
        hats[:1].fill_(0.5)
        hats[-1:].fill_(0.5)
        heights = (torch.softmax(self.background, 0) / hats * ((self.knots - 1) / (self.high - self.low))).to(way)
        flat = left.flatten()
        density = torch.lerp(heights[:-1].index_select(0, flat), heights[1:].index_select(0, flat), way.flatten())
        density = density.view_as(way)
        inside = (values >= self.low) & (values <= self.high)
        density = torch.where(inside, density, 0.0).clamp_min(_LEAST_SHARE / (self.high - self.low))
        return nn.functional.logsigmoid(self.mask_logits) + density.log()

    @property
    def level(self) -> Tensor:
        r"""The log of :math:`(1-m_i) \, \pi_j N(\cdot)` for a value without noise, ``(J, d)``."""
        level = nn.functional.logsigmoid(-self.mask_logits) - _LOG_ROOT_TAU
        return level + torch.log_softmax(self.mix_logits, 0)[:, None] - self.log_sigma[:, None] - self.log_scale

    def kept(self, patterns: Tensor, queries: Tensor) -> Tensor:
        r"""The log of :math:`(1-m_i) \, \pi_j N(\cdot)` for each kind of noise, ``(J, ..., d)``."""
        patterns, scatter = mean_and_variance(patterns, self.dim)
        patterns, queries = patterns - self.centre, queries - self.centre - self.bias
        if isinstance(scatter, Tensor):
            return self._kept_of_scattered(patterns, scatter, queries)
        level, inverse = self.level, 1 / self.sigma
        return torch.stack(
            [
                level[j] - 0.5 * ((queries - self.gain[j] * patterns) * inverse[j]).square()
                for j in range(self.components)
            ]
        )

    def _kept_of_scattered(self, patterns: Tensor, scatter: Tensor, queries: Tensor) -> Tensor:
        found = []
        for gain, noise, level in zip(self.gain, self.sigma.square(), self.level, strict=True):
            wider = 1 + gain**2 / noise * scatter
            found.append(level - 0.5 * ((queries - gain * patterns).square() / (noise * wider) + wider.log()))
        return torch.stack(found)

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        kept = self.kept(patterns, queries)
        kept = kept[0] if self.components == 1 else kept.logsumexp(0)
        return torch.logaddexp(kept, self.lost(queries))

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is None and (table := reranking.table(self, patterns, queries)) is not None:
            return table
        if (table := self._scored(patterns, None, queries, observed)) is not None:
            return table

        def block(patterns: Tensor, queries: Tensor, lost: Tensor, observed: Tensor | None) -> Tensor:
            asked = Queries(queries, observed)[..., None, :]
            kept = self.kept(patterns.unsqueeze(-3), asked.rows)
            kept = kept[0] if self.components == 1 else kept.logsumexp(0)
            return asked.masked(torch.logaddexp(kept, lost.unsqueeze(-2))).sum(-1)

        width = (2 + 2 * self.components) * patterns.shape[-1]
        return pairwise(
            block, patterns, queries, width=width, per_query=(self.lost(queries), observed), learned=self.parameters()
        )

    def _scored(
        self, patterns: Tensor, chosen: Tensor | None, queries: Tensor, observed: Tensor | None
    ) -> Tensor | None:
        """The scores of all patterns, or of those chosen for each query, by compiled code; None where there is none."""
        single = patterns.dtype == queries.dtype == self.bias.dtype == torch.float32
        plainly = patterns.ndim == queries.ndim == 2 and patterns.shape[1] == self.dim
        if torch.is_grad_enabled() or not single or not plainly:
            return None
        asked = queries - self.centre - self.bias
        arguments = self.lost(queries), self.gain, self.sigma, self.level, observed
        if plain.runs_on(patterns):
            return plain.scores(patterns, self.centre, chosen, asked, *arguments)
        if patterns.device.type != "cpu":
            return None
        # Numba takes a while to import.
        from ahop.kernels import mixture

        if chosen is None:
            return mixture.scores(patterns - self.centre, asked, *arguments)
        return mixture.scores_of(patterns, self.centre, chosen, asked, *arguments)

    def approximate(self, patterns: Tensor, queries: int) -> reranking.Table | None:
        """A way to the scores of so many queries by dot products, or None where it would not be faster."""
        return codes.approximate(self, patterns, queries) if patterns.shape[-1] == self.dim else None

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The scores of some patterns for each query, ``(N, d)``, ``(Q, C)`` and ``(Q, d)`` to ``(Q, C)``."""
        if (table := self._scored(patterns, chosen, queries, observed)) is not None:
            return table
        asked = Queries(queries, observed)[:, None]
        return asked.masked(self.terms(patterns[chosen], asked.rows)).sum(-1)

    def codes(self, patterns: Tensor, tolerance: float) -> codes.InnerProduct:
        """See :func:`~ahop.similarity.codes.inner_product`."""
        if patterns.shape[-1] > self.dim:
            raise codes.NoCodesError("codes are not known where patterns have a spread")
        return codes.inner_product(self, patterns, tolerance)

    @torch.no_grad()
    def like(self, **settings: Any) -> Likelihood:
        """A new one that differs in these settings, in the same precision and place; nothing is learned yet."""
        return type(self)(**{**self.arguments(), **settings}).to(self.bias)

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Likelihood:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        low, high, centre = (unit * place + shift for place in (self.low, self.high, self.centre))
        new = self.like(low=low, high=high, centre=centre)
        new.load_state_dict(self.state_dict())
        new.bias.mul_(unit)
        new.log_sigma.add_(math.log(unit))
        return new

    @torch.no_grad()
    def narrowed(self, part: slice) -> Likelihood:
        """The same likelihood of some dimensions alone, in double precision."""
        some = self.like(dim=len(self.bias[part])).double()
        for name, value in self.named_parameters():
            own = some.get_parameter(name)
            own.copy_(value if own.shape == value.shape else value[part])
        return some

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        r"""The log evidence under a pattern whose dimensions are drawn from what the stored ones have there, ``(Q,)``:
        :math:`\sum_i \log \operatorname*{mean}_k p(x_i \mid \xi_{k,i})`."""
        asked, parts = Queries(queries, observed), []
        for part in split(len(queries), 4 * patterns.numel() * queries.element_size()):
            some = asked[part]
            terms = self.terms(patterns, some.rows[:, None]).logsumexp(1) - math.log(len(patterns))
            parts.append(some.masked(terms).sum(-1))
        return torch.cat(parts) if parts else queries.new_empty(0)

    @torch.no_grad()
    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """Lost values stay; those that were kept move as their patterns' do, the noise with them, wider or narrower as
        the patterns scatter."""
        kept = self.kept(own, queries)
        lost, kind = self.lost(queries) > kept.logsumexp(0), kept.argmax(0)
        gain = self.gain[kind]
        (old, scatter), (new, wider) = (mean_and_variance(rows, self.dim) for rows in (own, others))
        moved = queries + gain * (new - old)
        if isinstance(scatter, Tensor):
            noise = self.sigma.square().gather(0, kind)
            ratio = (gain**2 * wider + noise) / (gain**2 * scatter + noise)
            centre = self.centre + self.bias + gain * (new - self.centre)
            moved = centre + ratio.sqrt() * (moved - centre)
        return torch.where(lost, queries, moved)

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """What each value tells by itself, as a normal distribution of the same mean and variance (assumed density
        filtering), put together by the covariance of the patterns: a lost value is told by the others."""
        prior, asked = Prior.of(patterns), queries.double()
        variance = prior.covariance.diagonal()
        mean, left = self._by_itself(prior.mean, variance, asked)
        # What is left of the prior's variance tells how much was seen; nothing, where none of it is gone.
        precision = (1 / left - 1 / variance.clamp_min(_TINY)).clamp_min(0)
        precision = Queries(queries, observed).masked(precision)
        gaps = torch.where(precision > 0, (mean - prior.mean) / left / precision.clamp_min(_TINY), 0.0)
        return expected(prior.mean, prior.covariance, prior.covariance, precision, gaps)

    def _by_itself(self, mean: Tensor, variance: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        """The posterior mean and variance of each value ``(Q, d)``, given its own query alone and a normal prior."""
        gain, noise = self.gain.double()[:, None, None], self.sigma.double().square()[:, None]
        gaps = queries - self.centre - self.bias - gain * (mean - self.centre)
        marginal = gain.square() * variance + noise
        log_noise = self.level.double()[:, None] + self.sigma.double().log()[:, None]
        kept = log_noise - marginal.log() / 2 - gaps.square() / marginal / 2
        shares = torch.softmax(torch.cat([kept, self.lost(queries)[None]]), 0)
        # A lost value leaves the prior as it is.
        means = torch.cat([mean + gain * variance / marginal * gaps, mean.expand_as(gaps[:1])])
        variances = torch.cat([(variance * noise / marginal).expand_as(gaps), variance.expand_as(gaps[:1])])
        found = (shares * means).sum(0)
        return found, (shares * (variances + (means - found).square())).sum(0).clamp_min(_TINY)

    @torch.no_grad()
    def background_density(self) -> tuple[Tensor, Tensor]:
        """The knots of the background and its density there, ``(knots,)`` each."""
        places = torch.linspace(self.low, self.high, self.knots)
        share = torch.softmax(self.background, 0).cpu()
        share[0], share[-1] = 2 * share[0], 2 * share[-1]
        return places, share * ((self.knots - 1) / (self.high - self.low))

    @torch.no_grad()
    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """Bias, noise, and where lost values come from."""
        places, density = self.background_density()
        lost = f"lost: {100 * float(self.mask_rate.mean()):.0f} %, values come from"
        noise = self.sigma.cpu().mean(0)
        return [
            ("shift of values", self.bias.cpu(), None),
            ("noise (mean over kinds)", noise, None),
            (lost, density, places),
        ]

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words.

        Example:
            >>> print(Likelihood(dim=3).describe())
            Of 100 values, 12 are lost, in every dimension.
            What is kept has noise of standard deviation 1.
            A lost value lies between -3 and 3, wherever its pattern's did.
        """
        rate = self.mask_rate
        lost = f"{100 * rate.mean():.0f}"
        lines = [f"Of 100 values, {lost} {'is' if lost == '1' else 'are'} lost, {_by_dimension(100 * rate, '.0f')}."]
        shares = torch.softmax(self.mix_logits, 0)
        widths = self.sigma.mean(1)
        wide = self.log_scale.exp()
        unlike = "" if float(wide.max() / wide.min()) < 1.05 else f", times {wide.min():.2g} to {wide.max():.2g}"
        for share, gain, width in sorted(zip(shares.tolist(), self.gain.tolist(), widths.tolist(), strict=True))[::-1]:
            kept = "What is kept" if self.components == 1 else f"Of what is kept, {100 * share:.0f} in 100"
            scaled = "" if abs(gain - 1) < 0.02 else f" is scaled by {gain:.2f} and"
            lines.append(f"{kept}{scaled} has noise of standard deviation {width:.2g}{unlike}.")
        if float(self.bias.abs().max()) > 0.02 * float(widths.max()):
            most = int(self.bias.abs().argmax())
            size = float(self.bias.abs().mean())
            lines.append(
                f"Values are shifted by {size:.2g} on average, and most in {column_name(columns, most)}, by "
                f"{self.bias[most]:+.2g}."
            )
        low, high = self._middle()
        place = " from the shift" if self.shifted else ""
        lines.append(f"A lost value lies between {low:.2g} and {high:.2g}{place}, wherever its pattern's did.")
        return "\n".join(lines)

    def _middle(self) -> tuple[float, float]:
        """Where nine in ten lost values lie."""
        share = torch.softmax(self.background, 0).cumsum(0)
        places = torch.linspace(self.low, self.high, self.knots)
        first, last = int((share < 0.05).sum()), int((share < 0.95).sum())
        if float(share[0]) < 0.05 and first <= 2 and last >= self.knots - 3:
            first, last = 0, self.knots - 1
        return float(places[first]), float(places[min(last, self.knots - 1)])


def _by_dimension(values: Tensor, form: str) -> str:
    low, high = float(values.min()), float(values.max())
    return "in every dimension" if high - low < 1 else f"from {low:{form}} to {high:{form}} by dimension"
