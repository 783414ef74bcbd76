"""A likelihood of whatever kind the queries ask for."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ahop._checks import integer
from ahop._recall import Refusal
from ahop.learning.conformal import behind, realised, threshold
from ahop.learning.report import FitReport
from ahop.similarity.bridge import Adapter
from ahop.similarity.codes import Codes, Tempered
from ahop.similarity.density import Density
from ahop.similarity.families import calibration, familiarity, fitting
from ahop.similarity.families.family import Family, family_of, known_families
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.families.order import as_order
from ahop.similarity.families.training import TrainingData

# As many queries as a likelihood that was given knows, and the fewest that change what is known.
_KNOWN_IF_GIVEN, _FEWEST_NEW = Family.steady_after, 32
# Buffers of what is kept of queries that were not learned from: those held out, and with them known strangers.
_HELD_OUT = ("genuine", "strange", "behind")
_BUFFERS = (*_HELD_OUT, "met")


class Corruption(Density):
    r"""The log-likelihood of a query under a corruption that is learned, its kind included.

    .. math:: s(\xi, x) = \beta \log p(x \mid \xi)

    :meth:`fit` finds out whether every dimension is hit by itself (:class:`Likelihood`), queries are of several kinds
    (:class:`Regimes`), hidden causes move many dimensions at once (:class:`Correlated`), many values lie at a floor
    (:class:`Floor`), the whole space was moved (:class:`Moved`), or values are better compared in another scale
    (:class:`Transformed`); what it found is ``model``. The inverse temperature :math:`\beta` makes up for what a model
    takes to be independent and is not, so that probabilities mean what they say. Some queries were hit so hard that
    they tell nothing of their origin: their share, where labels tell it, is the ``doubt`` that a memory keeps.

    Args:
        dim: Number of dimensions d.
        model: A likelihood that is already known; None starts from a plain one.

    Attributes:
        known: Of how many queries ``model`` knows; one that was given knows enough.
        log_beta: The log of the inverse temperature.
        doubt: The share of queries that tell nothing of their origin.

    Shape:
        patterns ``(N, d)``, or ``(N, 2d)`` of means and standard deviations, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> patterns = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
        >>> similarity = Corruption(dim=8)
        >>> queries, origins = ahop.variants.Biased(2.0).sample(patterns, 100)
        >>> similarity.fit(patterns, queries).converged
        True
        >>> bool((similarity(patterns, queries).argmax(1) == origins).all())
        True
    """

    dim: int
    known: Tensor
    log_beta: Tensor
    doubt: Tensor
    genuine: Tensor
    genuine_count: Tensor
    strange: Tensor
    strange_count: Tensor
    behind: Tensor
    behind_count: Tensor
    met: Tensor
    met_count: Tensor

    def __init__(self, dim: int, model: Density | None = None) -> None:
        super().__init__()
        if model is not None and not isinstance(model, Density):
            raise TypeError(f"model must be a likelihood (a Density) or None, got {type(model).__name__}")
        self.dim, self.model = dim, Likelihood(dim) if model is None else model
        self.query_dim = self.model.query_dim
        self.register_buffer("known", torch.tensor(0 if model is None else _KNOWN_IF_GIVEN))
        self.register_buffer("log_beta", torch.zeros(()))
        self.register_buffer("doubt", torch.zeros(()))
        # Of queries that were not learned from, in order, as many as the count says: how familiar genuine ones are, how
        # familiar they were if their pattern were not stored, how far origins of labelled ones are behind the first
        # choice, and how familiar known strangers are.
        for name in _BUFFERS:
            self.register_buffer(name, torch.zeros(familiarity.KEPT))
            self.register_buffer(f"{name}_count", torch.tensor(0))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Files of earlier versions have no temperature, and know nothing of strangers or of coverage.
        for name in ("log_beta", "doubt", *_BUFFERS, *(f"{kept}_count" for kept in _BUFFERS)):
            state_dict.setdefault(prefix + name, getattr(self, name))
        # Nor do these say how far origins are behind.
        for name in ("of_origins", "of_origins_count"):
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        scores: Tensor = self.model(patterns, queries, observed)
        return self.log_beta.exp() * scores

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return self.model.rounding(patterns, queries, best)

    @torch.no_grad()
    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
        hidden_causes: int | None = None,
        order: int | Sequence[int] | None = None,
        room: Tensor | None = None,
        standardise: bool = False,
        seed: int = 0,
        verbose: bool = True,
    ) -> FitReport:
        """Learn what happens to queries; see :mod:`ahop.similarity.families` for the decisions.

        Args:
            patterns: ``(N, d)``.
            queries: ``(n, d)``, or ``(n, q)`` for queries of a space of their own.
            origins: ``(n,)``; -1 where unknown, None if none is known.
            observed, log_prior: As in :class:`~ahop.similarity.Similarity`.
            hidden_causes: How many move several dimensions at once; 0 for single dimensions alone, None to find out
                what there is.
            order: Of the columns: 1 for a spectrum or a series, ``(height, width)`` for an image, 0 for none; None to
                find out.
            room: How many queries come from each pattern at most, ``(N,)``; None for any number.
            standardise: Whether each column has a unit of its own.
            seed: For what is held out.
            verbose: Whether to show progress when it takes long.
        """
        scattered = patterns.shape[1] > self.dim
        shape = as_order(order, self.dim)
        if scattered and (shape or standardise):
            raise ValueError(
                "order and standardise must be left out where patterns have a spread: rows stay as they are"
            )
        if hidden_causes is not None and integer(hidden_causes, "hidden_causes", 0) > queries.shape[1]:
            raise ValueError(f"hidden_causes must be between 0 and {queries.shape[1]} or be None, got {hidden_causes}")
        if hidden_causes and observed is not None:
            raise ValueError(f"hidden_causes must be 0 or None where values are missing, got {hidden_causes}")
        if standardise and queries.shape[1] != self.dim:
            raise ValueError(f"standardise must be False: columns of {queries.shape[1]} and {self.dim} values")
        data = TrainingData(
            patterns, queries, origins, observed, log_prior, order=shape, room=room, scattered=scattered
        )
        return self._learn(data, known_families(hidden_causes), seed, verbose, standardise)

    def _learn(
        self,
        data: TrainingData,
        families: Sequence[Family],
        seed: int = 0,
        verbose: bool = True,
        standardise: bool = False,
    ) -> FitReport:
        learned = fitting.learn(data, families, seed, verbose, standardise)
        self.model, self.query_dim = learned.model, learned.model.query_dim
        self.log_beta.fill_(learned.log_beta)
        self.doubt.fill_(learned.doubt)
        for name in _HELD_OUT:
            self._remember(name, getattr(learned, name))
        self.met_count.zero_()
        self.known.fill_(len(data.queries))
        return learned.report

    def _remember(self, name: str, values: Tensor) -> None:
        """Keep some of the values, in order."""
        kept, some = getattr(self, name), values[: familiarity.KEPT]
        kept[: len(some)] = some.sort().values.to(kept)
        getattr(self, f"{name}_count").fill_(len(some))

    @torch.no_grad()
    def recalibrate(self, scores: Tensor, strangers: int, count: int) -> None:
        """Be as sure as the model is right on queries that somebody has checked.

        Args:
            scores: Of the origin of each, first, and of its rivals, ``(n, 1 + R)``, as they are now.
            strangers: How many further queries came from no stored pattern: they tell nothing of their origin.
            count: How many patterns there are.
        """
        # Where nothing was found, there is nothing but doubt.
        found = float(self.doubt) < 1
        log_beta, doubt = calibration.from_answers(scores, found) if len(scores) else (0.0, 0.0)
        checked = len(scores) + strangers
        doubt += (1 - doubt) * strangers / checked
        far = behind(scores) * torch.exp(-self.log_beta) if len(scores) else scores.new_empty(0)
        self._remember("behind", torch.cat([far, far.new_full((strangers,), -math.inf)]))
        self.log_beta.add_(log_beta)
        self.doubt.fill_(doubt)
        # Familiarity is in units of the temperature, but for the share of one pattern; exactly so where one explains a
        # query alone.
        for familiar in (self.genuine, self.strange, self.met):
            familiar.copy_((familiar + math.log(count)) * math.exp(log_beta) - math.log(count))

    def meet(self, familiarity: Tensor) -> None:
        """Keep how familiar known strangers are ``(n,)``, beside those met before, to judge refusals by;
        512 at most."""
        self._remember("met", torch.cat([self.met[: int(self.met_count)], familiarity.to(self.met)]))

    def furthest(self, coverage: float) -> float:
        """How far behind the first choice patterns may be, as scores are now, to belong to sets that hold the origin at
        this rate (:mod:`ahop.learning.conformal`)."""
        if not int(self.behind_count):
            raise ValueError(
                "coverage must be None where no label was held out: pass origins to fit, or checked answers to verify"
            )
        return float(self.log_beta.exp()) * threshold(self.behind[: int(self.behind_count)], coverage)

    def realised(self, coverage: float) -> tuple[float, float]:
        """Between what the coverage lies that the labels at hand bring (:func:`ahop.learning.conformal.realised`)."""
        return realised(int(self.behind_count), coverage)

    def least_familiar(self, share: float) -> float:
        r"""The familiarity below which a query is refused, for at most this share of genuine ones to be.

        The k-th smallest of the genuine ones that were held out, with :math:`k = \lfloor (m + 1) \, share \rfloor`
        (split conformal prediction); minus infinity where they are too few to tell, and infinity where nothing was
        found, so that every query is refused.
        """
        if float(self.doubt) >= 1:
            return math.inf
        if not int(self.genuine_count):
            known = int(self.known)
            if 0 < known < familiarity.MIN_QUERIES:
                raise ValueError(
                    f"reject must be None: the threshold is learned from held-out queries, which takes at least "
                    f"{familiarity.MIN_QUERIES} queries, and fit was given {known}"
                )
            raise ValueError("reject must be None before fit, which learns the threshold")
        place = int((int(self.genuine_count) + 1) * share)
        return float(self.genuine[place - 1]) if place else -math.inf

    def refusal(self, share: float) -> Refusal:
        """What a share of genuine queries that may be refused comes to."""
        known = int(self.met_count)
        if float(self.doubt) >= 1:
            return Refusal((0.0, 0.0), 1.0, known, known)
        level, strange = self.least_familiar(share), self.strange[: int(self.strange_count)]
        simulated = float((strange < level).double().mean()) if len(strange) else math.nan
        count = int(self.genuine_count)
        kept = realised(count, 1 - share) if int((count + 1) * share) else (0.0, 1.0)
        return Refusal(kept, simulated, int((self.met[:known] < level).sum()), known)

    @torch.no_grad()
    def follow(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> FitReport | None:
        """Go on learning from the last queries of a stream; None where they are too few to change what is known.

        Args:
            patterns: ``(N, d)``.
            queries: The last queries of the stream, ``(n, d)``.
            origins: The pattern that each came from, ``(n,)``, -1 where unknown; None if none is known.
            observed: Which entries of the queries count, ``(n, d)``; None is all.
            log_prior: The log prior of each pattern, ``(N,)``; None is uniform.
        """
        scattered = patterns.shape[1] > self.dim
        data = TrainingData(patterns, queries, origins, observed, log_prior, scattered=scattered)
        family = family_of(self.model)
        few = int(self.known) < (_KNOWN_IF_GIVEN if family is None else family.steady_after)
        # Where nothing was found there is nothing to go on from.
        anew = few or float(self.doubt) >= 1
        if not anew and len(queries) < _FEWEST_NEW:
            return None
        followed = None if anew or family is None else fitting.follow(family, self.model, data)
        if followed is None:
            return self._learn(data, known_families() if family is None else family.anew())
        self.model, report = followed
        # What was held out was judged by another model.
        self.behind_count.zero_()
        self.met_count.zero_()
        return report

    @property
    def needs_complete_queries(self) -> bool:
        return self.model.needs_complete_queries

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        return self.log_beta.exp() * self.model.stranger(patterns, queries, observed)

    def adapter(self, patterns: Tensor, metric: str = "cosine") -> Adapter:
        return self.model.adapter(patterns, metric)

    def parts(self) -> list[tuple[float, Density]]:
        return self.model.parts()

    def curve_unit(self, values: str) -> str:
        return self.model.curve_unit(values)

    def describe(self, columns: Sequence[str] | None = None) -> str:
        return self.model.describe() if columns is None else self.model.describe(columns)

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor | None:
        return self.model.transferred(queries, own, others)

    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As the model has it; the temperature says how sure an answer is, not how large the noise."""
        return self.model.restored(patterns, queries, observed)

    def rescaled(self, unit: float, shift: float) -> Corruption:
        new = copy.deepcopy(self)
        new.model = self.model.rescaled(unit, shift)
        return new

    def mixture(self, patterns: Tensor, tolerance: float) -> list[tuple[float, Codes]]:
        """That of the model, without the temperature, which comes after a sum over its parts."""
        return self.model.mixture(patterns, tolerance)

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        return self.log_beta.exp() * self.model.exact(patterns, chosen, queries, observed)

    def codes(self, patterns: Tensor, tolerance: float) -> Codes:
        codes = self.model.codes(patterns, tolerance)
        return codes if not float(self.log_beta) else Tempered(codes, float(self.log_beta.exp()))

    def reset_parameters(self) -> None:
        for zeros in self.buffers(recurse=False):
            zeros.zero_()
        self.model.reset_parameters()  # type: ignore[operator]
