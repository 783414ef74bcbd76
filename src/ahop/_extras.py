"""Libraries that come with an extra: what is missing is said in one line, and how to get it."""

from __future__ import annotations

from importlib import import_module


class MissingExtraError(ImportError):
    """A library is not installed that comes with an extra of ahop, or with a package made of it."""


def require(*libraries: str, extra: str) -> None:
    """Import the libraries, or say in one line which extra of ahop brings the first that is missing.

    Example:
        >>> require("torch", "atlantis", extra="index")
        Traceback (most recent call last):
        ahop._extras.MissingExtraError: atlantis is not installed: pip install 'ahop[index]'
    """
    require_from(f"'ahop[{extra}]'", *libraries)


def require_from(package: str, *libraries: str) -> None:
    """Import the libraries, or say in one line that installing a package brings the first that is missing."""
    for library in libraries:
        try:
            import_module(library)
        except ModuleNotFoundError as error:
            # One that is there and lacks a part of its own says so itself.
            if error.name != library:
                raise
            raise MissingExtraError(f"{library} is not installed: pip install {package}") from error
