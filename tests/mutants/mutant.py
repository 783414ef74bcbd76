"""What a mutant is."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake: what it does, where, the text there, the text in its place, and the tests that must fail."""

    does: str
    file: str
    find: str
    put: str
    killers: tuple[str, ...]
