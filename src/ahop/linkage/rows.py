"""What a memory says of its patterns and queries, said of the rows and columns of two tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahop.similarity import Corruption

_TRANSLATIONS = {
    "others like them": "made-up rows like them",
    "probabilities are the prior": "no row has a match",
    "the origins of": "known pairs of",
    "are origins indices into them": "are the pairs right",
    "known origins": "known pairs",
    "origins are known": "pairs are known",
    "queries": "incoming rows",
    "query": "incoming row",
    "patterns": "stored rows",
    "pattern": "stored row",
    "dimensions": "columns",
    "dimension": "column",
}
_TRANSLATED = re.compile(rf"\b({'|'.join(_TRANSLATIONS)})\b", re.IGNORECASE)


def in_rows(text: str) -> str:
    """A sentence on queries, patterns and dimensions as one on incoming rows, stored rows and columns.

    Example:
        >>> in_rows("Queries are compared with patterns by their cosine similarity.")
        'Incoming rows are compared with stored rows by their cosine similarity.'
    """

    def word(found: re.Match[str]) -> str:
        other = _TRANSLATIONS[found[0].lower()]
        return other.capitalize() if found[0][0].isupper() else other

    return _TRANSLATED.sub(word, text)


def sentences(similarity: Corruption, columns: Sequence[str] | None = None) -> list[str]:
    """What happens to the rows, a sentence each.

    Args:
        similarity: What was learned.
        columns: The names of the columns; None counts them.

    Example:
        >>> sentences(ahop.similarity.Nearest(dim=2), ("weight", "size"))
        ['Incoming rows are compared with stored rows by their Euclidean distance.']
    """
    return [in_rows(line.strip()) for line in similarity.describe(columns).splitlines()]


def briefly(similarity: Corruption, columns: Sequence[str]) -> str:
    """The first of these sentences, and the first that names a column; arguments as in :func:`sentences`."""
    lines, counted = sentences(similarity, columns), sentences(similarity)
    naming = [line for line, other in zip(lines, counted, strict=True) if line != other]
    return " ".join(dict.fromkeys([*lines[:1], *naming[:1]]))
