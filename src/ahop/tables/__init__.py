"""Tables in: files and frames of rows with ids, whose columns are found by name; and tables out."""

from ahop.tables.alignment import Aligned, aligned
from ahop.tables.reading import read
from ahop.tables.table import Table
from ahop.tables.writing import require_table, write

__all__ = ["Aligned", "Table", "aligned", "read", "require_table", "write"]
