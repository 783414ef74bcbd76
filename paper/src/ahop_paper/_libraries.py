"""Libraries that come with this package, for checkouts and machines that have the package and not all of them."""

from __future__ import annotations

from ahop._extras import require_from


def require(*libraries: str) -> None:
    """Import the libraries, or say in one line that installing ``ahop-paper`` brings the first that is missing."""
    require_from("ahop-paper", *libraries)
