"""Tables in: files and frames of rows with ids, whose columns are found by name; and tables out."""

from ahop.tables.alignment import Aligned, aligned
from ahop.tables.reading import parsed, read
from ahop.tables.table import MissingColumnError, Table
from ahop.tables.writing import as_csv, require_table, write

__all__ = ["Aligned", "MissingColumnError", "Table", "aligned", "as_csv", "parsed", "read", "require_table", "write"]
