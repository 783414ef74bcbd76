"""Data sets by name, from a folder, a cache or a checked download."""

from ahop._registry import read_all
from ahop.datasets.bags import Bags, frequency_check, standard_check
from ahop.datasets.base import ENTRIES, Dataset, load, names_of, register
from ahop.datasets.photos import Photos
from ahop.datasets.real import Drawn, Measured
from ahop.datasets.tables import Table, table

# Every file here may hold data sets, which register themselves.
read_all(__name__, __path__)

__all__ = [
    "ENTRIES",
    "Bags",
    "Dataset",
    "Drawn",
    "Measured",
    "Photos",
    "Table",
    "frequency_check",
    "load",
    "names_of",
    "register",
    "standard_check",
    "table",
]
