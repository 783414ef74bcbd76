"""What a fit says of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Trial:
    """A kind of model that was tried: the share of unseen queries it found the origin of, and the mean log of the
    probability that it gave to that origin; NaN where nobody knows the origins."""

    name: str
    accuracy: float = math.nan
    log_posterior: float = math.nan


@dataclass(frozen=True)
class FitReport:
    """The way down that was taken, the final loss, how many iterations it took, and whether it had converged.

    A fit that chooses among kinds of models says more: what it tried, simplest first, what it chose, how often its
    first choice should be right on further queries, and how sure it will be on average. NaN where nobody knows.

    Two more things are said where there is need: that a map to another space was looked for and none ``found`` that is
    better than chance, so that answers mean nothing however well the fit converged; and, of one that had not converged,
    an ``advice`` on what to change.

    Example:
        >>> tried = (Trial("single dimensions", 0.7, -1.5), Trial("hidden causes", 0.68, -1.62))
        >>> print(FitReport("em", 12.5, 8, True, tried, "single dimensions", 0.7, 0.72))
        tried               right   log posterior
        single dimensions   0.700   -1.50         chosen
        hidden causes       0.680   -1.62
        expect 0.70 of first choices to be right, at a mean confidence of 0.72
        em: loss 12.5 after 8 iterations
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

    def shifted(self, amount: float) -> FitReport:
        """The same of a loss that is larger by so much, as in other units."""
        return replace(self, loss=self.loss + amount)

    def __str__(self) -> str:
        lines = []
        if self.tried:
            width = max(len("tried"), *(len(trial.name) for trial in self.tried))
            lines.append(f"{'tried':{width}}   right   log posterior")
            for trial in self.tried:
                mark = "chosen" if trial.name == self.chosen else ""
                right, told = _figure(trial.accuracy, 3), _figure(trial.log_posterior, 2)
                lines.append(f"{trial.name:{width}}   {right:5}   {told:13} {mark}".rstrip())
        if not math.isnan(self.confidence):
            right = "an unknown share" if math.isnan(self.accuracy) else f"{self.accuracy:.2f}"
            lines.append(f"expect {right} of first choices to be right, at a mean confidence of {self.confidence:.2f}")
        end = "" if self.converged else ", and was still improving"
        end += "" if self.found else "; no map was found that is better than chance"
        lines.append(f"{self.solver}: loss {self.loss:.4g} after {self.iterations} iterations{end}")
        return "\n".join(lines)


def _figure(value: float, digits: int) -> str:
    return "?" if math.isnan(value) else f"{value:.{digits}f}"
