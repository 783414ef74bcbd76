"""What the patterns that a search does not list sum up to, as a sample of all of them tells."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop.index.rough import Rough
from ahop.similarity.codes import Asked

_SAMPLE_SIZE = 2048


class Sample:
    """Some of the patterns, by chance: their places ``(m,)``, codes ``(m, w)`` and log priors ``(m,)``.

    Args:
        rough: What to score by; of one part.
    """

    def __init__(self, rough: Rough) -> None:
        self.rough = rough
        self.places, self.weighed = torch.empty(0, dtype=torch.long), torch.empty(0)
        self.codes = torch.empty(0)

    def grown(self, patterns: Tensor, log_prior: Tensor | None, first: int) -> Sample:
        """One in which further patterns, which stand behind ``first`` others, have their share.

        Args:
            patterns: The further patterns, ``(n, d)``.
            log_prior: The log prior of each of these, ``(n,)``; None is uniform.
            first: How many patterns there were before.
        """
        total = first + len(patterns)
        generator = torch.Generator().manual_seed(total)
        # The share of all patterns that is in it; fewer than there is room for, if others were removed.
        share = min(_SAMPLE_SIZE / total, len(self.places) / first if first else 1.0)
        old = torch.randperm(len(self.places), generator=generator)[: round(share * first)]
        new = torch.randperm(len(patterns), generator=generator)[: round(share * len(patterns))]
        (fresh,) = self.rough.encode(patterns[new])
        weighed = torch.zeros(len(new)) if log_prior is None else log_prior[new].cpu()
        return self.holding(
            torch.cat([self.places[old], new + first]),
            torch.cat([self.codes.view(-1, fresh.shape[1])[old], fresh.cpu()]),
            torch.cat([self.weighed[old], weighed]),
        )

    def kept(self, kept: Tensor, before: int) -> Sample:
        """One of the patterns of which these are kept."""
        position = torch.full((before,), -1)
        position[kept] = torch.arange(len(kept))
        left = position[self.places] >= 0
        return self.holding(position[self.places[left]], self.codes[left], self.weighed[left])

    def holding(self, places: Tensor, codes: Tensor, weighed: Tensor) -> Sample:
        """One of these patterns, scored alike; they are put in order.

        Args:
            places: Indices of the patterns, ``(s,)``.
            codes: Their codes, ``(s, width)``.
            weighed: Their log priors, ``(s,)``.
        """
        other = Sample(self.rough)
        other.places, order = places.sort()
        other.codes, other.weighed = codes[order], weighed[order]
        return other

    def log_rest(self, question: list[Asked], count: int, listed: Tensor) -> Tensor:
        """Estimate the log of what the patterns that are not listed sum up to.

        Args:
            question: The queries as codes, by part.
            count: How many patterns there are.
            listed: Indices of those listed for each query, ``(Q, L)``.

        Returns:
            Log sums, ``(Q,)``; minus infinity where all are listed.
        """
        if listed.shape[1] >= count:
            return listed.new_full((len(listed),), -math.inf, dtype=torch.float32)
        away = self.rough.logits(question, [question[0].codes @ self.codes.to(question[0].codes).mT])
        away = away + self.weighed.to(away)
        places = self.places.to(listed.device)
        near = torch.searchsorted(places, listed).clamp_max(len(places) - 1)
        # Those that are listed and in the sample; the rest of the list goes to a column of its own.
        column = torch.where(places[near] == listed, near, len(places))
        gone = torch.zeros(len(away), len(places) + 1, dtype=torch.bool, device=away.device)
        gone = gone.scatter_(1, column, True)[:, :-1]
        return away.masked_fill(gone, -math.inf).logsumexp(1) + math.log(count / max(1, len(self.codes)))
