"""What a memory says of its patterns and queries, said of the rows and columns of two tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

# A column as descriptions name it, by its place.
_COLUMN = re.compile(r"\bcolumn (\d+)")
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
        told = _TRANSLATIONS[found[0].lower()]
        return told.capitalize() if found[0][0].isupper() else told

    return _TRANSLATED.sub(word, text)


def named(description: str, columns: Sequence[str]) -> list[str]:
    """What happens to queries, a sentence each, with the names of columns in the place of their numbers.

    Example:
        >>> named("They move column 1 most, by 0.3.\\nQueries are shifted by 2 on average.", ("weight", "size"))
        ['They move size most, by 0.3.', 'Incoming rows are shifted by 2 on average.']
    """

    def name(found: re.Match[str]) -> str:
        place = int(found[1])
        return columns[place] if place < len(columns) else found[0]

    return [_COLUMN.sub(name, in_rows(line.strip())) for line in description.splitlines()]


def briefly(description: str, columns: Sequence[str]) -> str:
    """Its first sentence, and the first that names a column.

    Example:
        >>> briefly("Each value's log counts.\\nOf 100 values, 2 are lost.\\nMost shifted is column 1.", ("a", "b"))
        "Each value's log counts. Most shifted is b."
    """
    lines = description.splitlines()
    shown = dict.fromkeys([*lines[:1], *[line for line in lines if _COLUMN.search(line)][:1]])
    return " ".join(named("\n".join(shown), columns))
