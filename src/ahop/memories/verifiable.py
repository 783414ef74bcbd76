"""Memories whose answers somebody can check: which to look at, and what they prove."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import STRANGER, Observed, as_queries
from ahop._queries import Queries
from ahop.learning.report import REJECT, FitReport, beats_chance
from ahop.memories.checking import Certificate, Question, certified, questions
from ahop.memories.doubt import Doubting
from ahop.similarity import Corruption, Similarity

# Rivals of an origin that a temperature is fitted beside: the likeliest.
_RIVALS = 1024
# The share of patterns that may come and go before labels that judged beside the others say nothing any more.
_CHANGED_SHARE = 0.1


class Turnover(NamedTuple):
    """How many patterns there were when labels judged, how many there are, and how many came or went since.

    Example:
        >>> Turnover(100, 100).after(kept=95, added=0), Turnover(100, 95, 5).after(kept=95, added=6).much
        (Turnover(judged=100, stored=95, changed=5), True)
    """

    judged: int
    stored: int
    changed: int = 0

    def after(self, kept: int, added: int) -> Turnover:
        """The same once so many are kept, and so many were added."""
        return Turnover(self.judged, kept + added, self.changed + self.stored - kept + added)

    @property
    def much(self) -> bool:
        """Whether labels that judged beside the patterns of then say nothing of these."""
        return self.changed > _CHANGED_SHARE * self.judged


class Verifiable(Doubting, abstract=True):
    """A memory with probabilities that checked answers can confirm or correct."""

    similarity: Corruption
    # What has come and gone since labels judged; None where none has.
    _turnover: Turnover | None = None

    @property
    def verified(self) -> bool:
        """Whether enough labels have judged, beside patterns that are still stored for the most part."""
        return self.report is not None and self.report.verified and not self._outdated

    @property
    def _outdated(self) -> bool:
        return self._turnover is not None and self._turnover.much

    def _take(self, similarity: Similarity, report: FitReport) -> None:
        super()._take(similarity, report)
        self._turnover = Turnover(len(self), len(self))

    def _resized(self, before: Tensor, kept: Tensor, added: int) -> None:
        super()._resized(before, kept, added)
        self._turn_over(kept, added)

    def _follow(self, kept: Tensor, added: int) -> None:
        super()._follow(kept, added)
        self._turn_over(kept, added)

    def _turn_over(self, kept: Tensor, added: int) -> None:
        if self._turnover is not None:
            self._turnover = self._turnover.after(len(kept), added)

    def familiarity(self, queries: Any, *, observed: Observed = None) -> Tensor:
        """The log of how much likelier a query is from a stored pattern than from one that is not stored, ``(...)``."""
        raise NotImplementedError

    def ask(
        self, queries: Any, count: int = 20, *, k: int = 3, observed: Observed = None, seed: int = 0
    ) -> list[Question]:
        """Which answers to check: rows of the queries, drawn so that what they prove holds for all of them.

        Args:
            queries: ``(n, d)``.
            count: How many to check.
            k: How many candidates to show for each.
            observed: As in :meth:`scores`.
            seed: For the draw.
        """
        asked = as_queries(queries, self.patterns, observed, self.query_dim).flat()
        return questions(self.recall(asked.rows, min(k, len(self)), observed=asked.observed), count, seed)

    def verify(
        self, queries: Any, answers: Sequence[Any], *, observed: Observed = None, wanted: float | None = None
    ) -> Certificate:
        """What checked answers prove of the first choices.

        :attr:`report` then rests on them, the memory becomes as sure as it was right (temperature scaling, and a share
        of queries that tell nothing), and :meth:`recall` can promise a ``coverage``. First choices stay what they are.

        Args:
            queries: ``(n, d)``: those of :meth:`ask`, or others that nobody has selected and no fit has seen.
            answers: The origin of each; ``ahop.STRANGER`` where it is none of the patterns, None where nobody knows.
            observed: As in :meth:`scores`.
            wanted: The accuracy that is asked for.

        Example:
            >>> patterns = torch.rand(100, 16, generator=torch.Generator().manual_seed(0))
            >>> memory = ahop.BayesianHopfield(patterns)
            >>> certificate = memory.verify(patterns[:60], range(60), wanted=0.9)
            >>> print(certificate.verdict, memory.recall(patterns[:1]).verified)
            PASS True
        """
        asked = as_queries(queries, self.patterns, observed, self.query_dim).flat()
        answers = answers.tolist() if isinstance(answers, Tensor) else list(answers)
        with self.learning() as now:
            first = now.recall(asked.rows, observed=asked.observed).indices[:, 0]
            found = certified(first, answers, len(now), wanted)
            known = [row for row, answer in enumerate(answers) if answer is not None and answer >= 0]
            origins = torch.tensor([int(answers[row]) for row in known], dtype=torch.long, device=first.device)
            similarity = copy.deepcopy(now.similarity)
            similarity.recalibrate(now._beside_rivals(asked[known], origins), found.strangers, len(now))
            before = now.report or FitReport("", math.nan, 0, converged=True)
            tells = before.found or beats_chance(found.right, found.labels, len(now))
            if not tells:
                similarity.doubt.fill_(1.0)
            now.similarity = similarity
            now.report = replace(
                before, accuracy=found.accuracy, labels=found.labels, witnesses=0, found=tells, checked=True
            )
            now._turnover = Turnover(len(now), len(now))
            strangers = asked[[row for row, answer in enumerate(answers) if answer == STRANGER]]
            if len(strangers):
                # As labels do, they take the place of earlier ones: checked twice, they would count twice.
                similarity.met_count.zero_()
            now._meet(strangers)
        return found

    def _meet(self, strangers: Queries) -> None:
        """Let known strangers, and those met before, judge what ``reject`` refuses, where it can refuse."""
        if not int(self.similarity.genuine_count):
            return
        if len(strangers):
            self.similarity.meet(self.familiarity(strangers.rows, observed=strangers.observed))
        refusal = self.similarity.refusal(REJECT)
        assert self.report is not None
        self.report = replace(self.report, strangers=refusal.known, refused=refusal.refused)

    @torch.no_grad()
    def _beside_rivals(self, queries: Queries, origins: Tensor) -> Tensor:
        """Log-likelihoods of each origin, first, and of its likeliest rivals, ``(n, 1 + R)``; the prior has no say."""
        rivals, prior = min(_RIVALS, len(self)), self._log_prior()
        table = [torch.empty(0, 1 + rivals, device=origins.device)]
        for part in split(len(origins), 2 * len(self) * 4):
            scores, own = self._scores(queries[part]), origins[part, None]
            if prior is not None:
                scores = scores - prior.clamp_min(torch.finfo(prior.dtype).min)
            best = scores.topk(rivals, 1)
            against = best.values.masked_fill(best.indices == own, -math.inf)
            table.append(torch.cat([scores.gather(1, own), against], 1))
        return torch.cat(table)
