"""Data sets by name, from a folder, a cache or a checked download."""

from ahop.datasets import images as _images  # noqa: F401 (registers its data sets)
from ahop.datasets import real as _real  # noqa: F401
from ahop.datasets.bags import Bags, frequency_check, standard_check
from ahop.datasets.base import ENTRIES, Dataset, load
from ahop.datasets.photos import Photos
from ahop.datasets.real import Measured
from ahop.datasets.tables import Table, table

__all__ = [
    "ENTRIES",
    "Bags",
    "Dataset",
    "Measured",
    "Photos",
    "Table",
    "frequency_check",
    "load",
    "standard_check",
    "table",
]
