"""The converters by the data set that they make, and what they give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ahop._registry import Registry
from ahop_paper.publishers.given import Given

Content = str | dict[str, np.ndarray]
"""The text of a table, or the arrays of an archive."""

CONVERTERS: Registry[Callable[[Given], Content]] = Registry("data set to prepare")
