"""What a memory says of its patterns and queries, said of the rows and columns of two tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahop.similarity import Corruption

# Stands around the place of a column until its name does.
_BLANK = "\0"
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


def sentences(similarity: Corruption, columns: Sequence[str]) -> list[str]:
    """What happens to the rows, a sentence each.

    Args:
        similarity: What was learned.
        columns: The names of the columns.

    Example:
        >>> sentences(ahop.similarity.Nearest(dim=2), ("weight", "size"))
        ['Incoming rows are compared with stored rows by their Euclidean distance.']
    """
    return [_filled_in(line, columns) for line in _with_blanks(similarity, len(columns))]


def briefly(similarity: Corruption, columns: Sequence[str]) -> str:
    """The first of these sentences, and the first that names a column; arguments as in :func:`sentences`."""
    lines = _with_blanks(similarity, len(columns))
    naming = [line for line in lines if _BLANK in line]
    return " ".join(_filled_in(line, columns) for line in dict.fromkeys([*lines[:1], *naming[:1]]))


def _with_blanks(similarity: Corruption, count: int) -> list[str]:
    """The sentences with blanks for names, which are not translated, be they words of this library."""
    blanks = [f"{_BLANK}{place}{_BLANK}" for place in range(count)]
    return [in_rows(line.strip()) for line in similarity.describe(blanks).splitlines()]


def _filled_in(line: str, columns: Sequence[str]) -> str:
    words = line.split(_BLANK)
    # Names are in one line, whatever a table has.
    words[1::2] = [" ".join(columns[int(place)].split()) for place in words[1::2]]
    return "".join(words)
