"""What a fit says of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Trial:
    """A kind of model that was tried: the share of unseen queries it found the origin of, and the mean log of the
    probability that it gave to that origin; NaN where nobody knows the origins.

    Kinds are compared beside a sample of very many patterns, and the one that is chosen is judged beside all: ``among``
    is the size of that sample, 0 where it was all of them.
    """

    name: str
    accuracy: float = math.nan
    log_posterior: float = math.nan
    among: int = 0


# So many labels verify a model: fewer leave an interval that is too wide to be of use.
VERIFIED = 20
# The share of genuine queries that may be refused, where a report says what becomes of known strangers.
REJECT = 0.05
# How often the interval holds the truth.
_INTERVAL_LEVEL = 0.9
# How far unchecked fits were off, in nats of log-odds, on nine of ten sets with known answers (see the page on trust).
_LOG_ODDS_ERROR = 1.0
# Below this share, most first choices are wrong.
_MAJORITY = 0.5
# How likely first choices may be right by chance, to be called found.
_CHANCE_LEVEL = 1e-3


@dataclass(frozen=True)
class FitReport:
    """The way down that was taken, the final loss, how many iterations it took (0 where several runs are behind it and
    nobody counted), and whether it had converged. A fit of a given number of steps counts as converged.

    A fit that chooses among kinds of models says more: what it tried, simplest first, what it chose, how often its
    first choice should be right on further queries (``accuracy``), how sure it will be on average (``confidence``), and
    on how many ``labels`` that rests, each judged by a model that did not learn from it. Several queries of one origin
    may be right or wrong together: labels are then worth fewer ``witnesses``. NaN where nobody knows. Origins that a
    fit was given say nothing of queries that come from no stored pattern, be they ever so many: the accuracy is that of
    the others. Answers that were ``checked`` may say *none of these*, and theirs is that of all.

    Known strangers judge what is refused: of so many ``strangers``, how many are ``refused`` where a twentieth of
    genuine queries may be. Where some origins are known, they also tell what share of all queries seem to come from
    no stored pattern (``stranger_share``).

    Two more things are said where there is need: that nothing was ``found`` that is better than chance, so that answers
    mean nothing however well the fit converged; and, of one that had not converged, an ``advice`` on what to change.
    It says of how many ``queries`` it ``learned_from``: a sample of very many, or those of known origin alone.

    Example:
        >>> tried = (Trial("single dimensions", 0.7, -1.5), Trial("hidden causes", 0.68, -1.62))
        >>> print(FitReport("em", 12.5, 8, True, tried, "single dimensions", 0.7, 0.72, labels=200))
        what happened   single dimensions
        chosen from     single dimensions (70.0 %), hidden causes (68.0 %), by cross-validation
        how right       70 % of first choices, where the origin is stored; 90 % confidence interval 64 to 75 %
        rests on        200 labels, held out
        next            recall; queries like these need no further labels
        >>> print(FitReport("em", 12.5, 8, True, tried[:1], "single dimensions", 0.9, 0.77))
        what happened   single dimensions
        chosen from     single dimensions (70.0 %), by cross-validation
        how right       77 % of first choices, if this model is right; usually 55 to 90 %; not checked
        rests on        no labels
        next            check 20 answers: memory.ask says which, memory.verify what they prove
        >>> print(FitReport("em", 12.5, 8, True, confidence=0.77))   # a single kind
        em: loss 12.5 after 8 iterations; 77 % of first choices, if this model is right; not checked
    """

    solver: str
    loss: float
    iterations: int
    converged: bool
    tried: tuple[Trial, ...] = ()
    chosen: str = ""
    accuracy: float = math.nan
    confidence: float = math.nan
    found: bool = True
    advice: str = ""
    labels: int = 0
    witnesses: int = 0
    strangers: int = 0
    refused: int = 0
    learned_from: int = 0
    queries: int = 0
    pairs_alone: bool = False
    checked: bool = False
    stranger_share: float = 0.0

    @property
    def verified(self) -> bool:
        """Whether enough labels have judged, by as many witnesses."""
        return (self.witnesses or self.labels) >= VERIFIED

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % confidence interval of the accuracy (Clopper and Pearson, 1934); 0 to 1 without labels."""
        if not self.labels or math.isnan(self.accuracy):
            return 0.0, 1.0
        count = self.witnesses or self.labels
        return clopper_pearson(round(self.accuracy * count), count)

    @property
    def usual_range(self) -> tuple[float, float]:
        r"""Where the accuracy of a fit that nobody has checked usually lies, given its ``confidence`` :math:`p`.

        .. math:: \mathrm{sigmoid}(\log \tfrac{p}{1 - p} \pm 1)

        No confidence interval: it is how far such fits were off on sets with known answers, nine of ten of them.
        """
        if not self.found or math.isnan(self.confidence):
            return 0.0, 1.0
        share = min(max(self.confidence, 1e-9), 1 - 1e-9)
        low, high = (1 / (1 + (1 - share) / share * math.exp(-off)) for off in (-_LOG_ODDS_ERROR, _LOG_ODDS_ERROR))
        return low, high

    @property
    def unchecked(self) -> str:
        """How right first choices should be where nobody has checked one, in words."""
        if math.isnan(self.confidence):
            return "unknown: too few queries or patterns to tell it from chance; not checked"
        low, high = (_percent(share).removesuffix(" %") for share in self.usual_range)
        told = f"{_percent(self.confidence)} of first choices, if this model is right"
        usual = f"{low} to {high} %" if low != high else f"about {high} %"
        return f"{told}; usually {usual}; not checked"

    def shifted(self, amount: float) -> FitReport:
        """The same of a loss that is larger by so much, as in other units."""
        return replace(self, loss=self.loss + amount)

    def __str__(self) -> str:
        if self.solver and not self.tried:
            end = "" if self.converged else ", and was still improving"
            took = f" after {self.iterations} iterations" if self.iterations else ""
            went = f"{self.solver}: loss {self.loss:.4g}{took}{end}"
            return went + self._briefly()
        happened = self.chosen if self.found else "nothing was found that is better than chance"
        lines = {
            "what happened": happened or "unknown: nothing was learned",
            "chosen from": self._tried() if self.tried else "",
            "learned from": self.sample,
            "how right": self._right(),
            "rests on": self._rests_on(),
            "strangers": self._strangers(),
            "next": self._next(),
        }
        return "\n".join(f"{name:13}   {text}" for name, text in lines.items() if text)

    def _briefly(self) -> str:
        """How right first choices should be, where there is something to say of it."""
        if not self.found:
            return "; nothing was found that is better than chance: probabilities are the prior"
        if self.labels:
            return f"; {self._right()}, by {self._rests_on()}"
        if math.isnan(self.confidence):
            return ""
        return f"; {_percent(self.confidence)} of first choices, if this model is right; not checked"

    @property
    def sample(self) -> str:
        """Which of the queries were learned from, in words; nothing where it was all of them."""
        if self.learned_from == self.queries:
            return ""
        if self.pairs_alone:
            return (
                f"the {self.learned_from:,} of {self.queries:,} queries whose origins are known: they tell more alone"
            )
        return f"{self.learned_from:,} of {self.queries:,} queries, drawn at random"

    def _tried(self) -> str:
        judged = [trial for trial in self.tried if not math.isnan(trial.accuracy)]
        names = [
            trial.name if math.isnan(trial.accuracy) else f"{trial.name} ({trial.accuracy:.1%})".replace("%", " %")
            for trial in self.tried
        ]
        if not judged:
            return ", ".join(names) + ", by held-out queries"
        among = max(trial.among for trial in judged)
        return ", ".join(names) + ", by cross-validation" + (f" among {among:,} patterns" if among else "")

    def _right(self) -> str:
        if not self.found and not self.labels:
            return "unknown: probabilities are the prior"
        if not self.labels:
            return self.unchecked
        low, high = (_percent(share).removesuffix(" %") for share in self.interval)
        which = "" if self.checked else ", where the origin is stored"
        return f"{_percent(self.accuracy)} of first choices{which}; 90 % confidence interval {low} to {high} %"

    def _rests_on(self) -> str:
        if not self.labels:
            return "no labels"
        return f"{self.labels} answers that were checked" if self.checked else f"{self.labels} labels, held out"

    def _strangers(self) -> str:
        if self.strangers:
            return of_strangers(self.refused, self.strangers, REJECT)
        if self.stranger_share:
            return f"about {_percent(self.stranger_share)} of the queries seem to come from no stored pattern"
        return ""

    def _next(self) -> str:
        if not self.found:
            return f"more queries, or the origins of {VERIFIED} of them"
        if not self.converged:
            return self.advice or "further queries: the fit was still improving"
        if not self.verified:
            return f"check {VERIFIED} answers: memory.ask says which, memory.verify what they prove"
        if self.interval[1] < _MAJORITY:
            return "recall(queries, coverage=0.9): most first choices are wrong, but sets can hold the origin"
        return "recall; queries like these need no further labels"


def clopper_pearson(right: int, count: int, level: float = _INTERVAL_LEVEL) -> tuple[float, float]:
    """The exact confidence interval of a share.

    Args:
        right: How many were right.
        count: Of how many.
        level: The confidence level.

    Returns:
        Both ends of the interval.

    Example:
        >>> [round(end, 3) for end in clopper_pearson(18, 20)]
        [0.717, 0.982]
    """
    from scipy.stats import beta

    miss = (1 - level) / 2
    low = float(beta.ppf(miss, right, count - right + 1)) if right else 0.0
    high = float(beta.isf(miss, right + 1, count - right)) if right < count else 1.0
    return low, high


def of_strangers(refused: int, known: int, reject: float) -> str:
    """How many known strangers are refused, in words.

    Args:
        refused: How many were refused.
        known: How many known strangers there are.
        reject: The share of genuine queries that may be refused.

    Example:
        >>> of_strangers(18, 20, reject=0.05)
        '18 of 20 known strangers are refused at reject=0.05; 90 % confidence interval 72 to 98 %'
    """
    low, high = (f"{100 * end:.0f}" for end in clopper_pearson(refused, known))
    told = f"{refused} of {known} known strangers are refused at reject={reject:g}"
    return f"{told}; 90 % confidence interval {low} to {high} %"


def beats_chance(right: int, count: int, patterns: int) -> bool:
    """Whether first choices are right more often than by chance.

    Args:
        right: How many were right.
        count: The number of first choices.
        patterns: Among how many patterns they chose.
    """
    from scipy.stats import binom

    return bool(right and binom.sf(right - 1, count, 1 / patterns) < _CHANCE_LEVEL)


def _percent(share: float) -> str:
    return "an unknown share" if math.isnan(share) else f"{100 * share:.0f} %"
