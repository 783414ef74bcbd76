"""Data sets by name, from a folder, a cache or a checked download."""

from ahop.datasets import images as _images  # noqa: F401 (registers its data sets)
from ahop.datasets.base import ENTRIES, Dataset, load

__all__ = ["ENTRIES", "Dataset", "load"]
