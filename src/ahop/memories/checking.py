r"""Answers that somebody has checked, and what they prove.

Which to check is drawn: every query is as likely to be asked about as any other, but the draw is spread over how sure
the memory is and over the patterns that it answers with (systematic sampling). So all answers weigh alike, and the
share that is right has an exact confidence interval, however few they are (Clopper and Pearson, 1934). A draw that
preferred doubtful answers would have to weigh them, and twenty weighted answers leave a wider interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._checks import STRANGER, integer, within
from ahop._recall import Recall
from ahop.learning.report import clopper_pearson

# Groups of like confidence that a draw is spread over, and more answers than anyone will check.
_GROUPS, _MAX_ANSWERS = 10, 100_000


# What may have been checked: answers to each query by itself, or to all of them together.
FIRST, MATCHES = "first choices", "matches"


class Decision(str, Enum):
    """What checked answers say of the accuracy that is asked for; WARN where they are too few to tell."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"

    __str__ = str.__str__


class Question(NamedTuple):
    """A query to check, by its row; the patterns that it may come from, likeliest first, and how likely each is."""

    row: int
    candidates: list[int]
    probabilities: list[float]


@dataclass(frozen=True)
class Certificate:
    """How often first choices are right, by answers that were checked.

    Attributes:
        right, labels: How many first choices were right, of how many that were checked.
        strangers: How many of these come from no stored pattern.
        wanted: The accuracy that is asked for, or None.
        of: What was checked, in words.

    Example:
        >>> found = Certificate(right=19, labels=20, strangers=0, wanted=0.9)
        >>> print(found)
        WARN: 95 % of 20 first choices were right (90 % confidence interval 78 to 100 %); 90 % is wanted
        strangers: 0 of 20 (0 to 14 %)
        next: about 69 answers more would decide, if they are like these
    """

    right: int
    labels: int
    strangers: int = 0
    wanted: float | None = None
    of: str = FIRST

    @property
    def accuracy(self) -> float:
        """The share of first choices that were right."""
        return self.right / self.labels

    @property
    def interval(self) -> tuple[float, float]:
        """Its 90 % confidence interval."""
        return clopper_pearson(self.right, self.labels)

    @property
    def verdict(self) -> Decision:
        """PASS if the whole interval reaches what is wanted, FAIL if none of it does, and WARN in between."""
        return _verdict(self.interval, self.wanted)

    @property
    def more(self) -> int | None:
        """How many answers more would decide, if as many of them are right; None if no number would."""
        count = self.labels
        while count < _MAX_ANSWERS and self.wanted is not None:
            if _verdict(clopper_pearson(round(self.accuracy * count), count), self.wanted) is not Decision.WARN:
                return count - self.labels
            count += max(1, count // 20)
        return None if self.wanted is not None else 0

    @property
    def outcome(self) -> str:
        """How often they were right and, where an accuracy is asked for, whether that reaches it, in words."""
        low, high = (f"{100 * end:.0f}" for end in self.interval)
        told = f"{100 * self.accuracy:.0f} % of {self.labels} {self.of} were right"
        told += f" (90 % confidence interval {low} to {high} %)"
        return told if self.wanted is None else f"{self.verdict}: {told}; {100 * self.wanted:g} % is wanted"

    @property
    def advice(self) -> str:
        """What would decide, in words; nothing where it is decided."""
        if self.verdict is not Decision.WARN:
            return ""
        more = "no number of answers" if self.more is None else f"about {self.more} answers more"
        return f"{more} would decide, if they are like these"

    def __str__(self) -> str:
        low, high = (f"{100 * end:.0f}" for end in clopper_pearson(self.strangers, self.labels))
        lines = [self.outcome, f"strangers: {self.strangers} of {self.labels} ({low} to {high} %)"]
        return "\n".join(lines + ([f"next: {self.advice}"] if self.advice else []))


def _verdict(interval: tuple[float, float], wanted: float | None) -> Decision:
    low, high = interval
    if wanted is None or low >= wanted:
        return Decision.PASS
    return Decision.FAIL if high < wanted else Decision.WARN


def questions(found: Recall, count: int, seed: int) -> list[Question]:
    """So many of the queries of a recall, spread over confidence and over first choices.

    Args:
        found: The recall.
        count: How many queries to choose.
        seed: Seed of the random start.
    """
    total = len(found.indices)
    if integer(count, "count", 1) > total:
        raise ValueError(f"count must be at most {total}, as many as there are queries; got {count}")
    first, sure = found.indices[:, 0], found.probabilities[:, 0]
    rank = torch.empty_like(first)
    rank[sure.argsort(descending=True)] = torch.arange(total, device=first.device)
    group = rank * min(_GROUPS, count) // total
    order = torch.argsort(group * (int(first.max()) + 2) + first, stable=True)
    # From a random place on, at equal steps: each query has the same chance.
    start = float(torch.rand((), generator=torch.Generator().manual_seed(seed), dtype=torch.float64))
    rows = [int(order[min(total - 1, int((start + step) * total / count))]) for step in range(count)]
    return [Question(row, found.indices[row].tolist(), found.probabilities[row].tolist()) for row in sorted(rows)]


def certified(first: Tensor, answers: Sequence[Any], patterns: int, wanted: float | None) -> Certificate:
    """What answers prove of first choices ``(n,)``: an origin each, STRANGER for none of the patterns, None if unknown.

    An answer of -1 is refused: where origins are learned from it means that nobody knows, and where patterns are
    recalled that none was.

    Args:
        first: The first choice for each query, ``(n,)``.
        answers: For each query an origin, STRANGER for none of the patterns, or None if unknown.
        patterns: The number of stored patterns.
        wanted: The accuracy to prove, in 0 to 1; None asks for none.
    """
    given = answers.tolist() if isinstance(answers, Tensor) else list(answers)
    if len(given) != len(first):
        raise ValueError(f"answers must be {len(first)}, one for each query; got {len(given)}")
    known = [(int(one), answer) for one, answer in zip(first.tolist(), given, strict=True) if answer is not None]
    for _, answer in known:
        number = isinstance(answer, Real) and not isinstance(answer, bool)
        named = number and 0 <= float(answer) < patterns and not float(answer) % 1
        if not named and answer != STRANGER:
            raise ValueError(
                f"answers must be origins from 0 to {patterns - 1}, ahop.STRANGER for none of them, or None where "
                f"the answer is unknown; got {answer!r}"
            )
    if not known:
        raise ValueError("answers must hold at least one that is known, got None for every query")
    right, strangers = sum(one == answer for one, answer in known), sum(answer == STRANGER for _, answer in known)
    asked = None if wanted is None else within(wanted, "wanted", 0.0, 1.0)
    return Certificate(right, len(known), strangers, asked)
