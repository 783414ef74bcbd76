"""Data sets by name, from a folder, a cache or a checked download."""

from ahop.datasets import images as _images  # noqa: F401 (registers its data sets)
from ahop.datasets import real as _real  # noqa: F401
from ahop.datasets.base import ENTRIES, Dataset, load
from ahop.datasets.real import Measured

__all__ = ["ENTRIES", "Dataset", "Measured", "load"]
