"""The command line: one file a command."""

from ahop.cli import catalogue, images, mil, real, retrieval, timing, worlds  # noqa: F401 (each adds its commands)
from ahop.cli.common import app

__all__ = ["app"]
