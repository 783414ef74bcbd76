"""Pictures of a memory: what it learned, why it decided, and how far it can be trusted.

Every function takes a memory and returns the matplotlib axes that it drew in. Without ``ax`` it makes a figure, as
scikit-learn's displays do, so that a notebook shows it and ``plt.show()`` finds it; whoever draws many passes axes of
figures that they close. Figures that are made here have no background, and their colours read on white and on black:
one file follows a page in light and in dark mode. Axes that are given keep their style.

Drawing needs matplotlib: ``pip install 'ahop[plot]'``.

Example:
    >>> from matplotlib.figure import Figure
    >>> patterns = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
    >>> queries, origins = ahop.variants.Noisy(0.3).sample(patterns, 100)
    >>> ax = ahop.plot.risk_coverage(ahop.BayesianHopfield(patterns), queries, origins, ax=Figure().subplots())
    >>> ax.get_ylabel()
    'share of answers that are wrong'
"""

from ahop.plot.comparison import comparison
from ahop.plot.confidence import confidence
from ahop.plot.corruption import corruption
from ahop.plot.energy import energy
from ahop.plot.evidence import evidence
from ahop.plot.first_look import first_look
from ahop.plot.matches import matches
from ahop.plot.reliability import reliability
from ahop.plot.risk_coverage import risk_coverage

__all__ = [
    "comparison",
    "confidence",
    "corruption",
    "energy",
    "evidence",
    "first_look",
    "matches",
    "reliability",
    "risk_coverage",
]
