"""Every memory beside what anybody could do without one, on one's own data."""

from ahop.comparison.comparing import compare
from ahop.comparison.table import Comparison, Row, mcnemar

__all__ = ["Comparison", "Row", "compare", "mcnemar"]
