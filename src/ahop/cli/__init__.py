"""The command line: one file a command."""

from ahop.cli import (  # noqa: F401 (each adds its commands)
    ablations,
    catalogue,
    claims,
    figures,
    images,
    mil,
    multimodal,
    paper,
    real,
    report,
    retrieval,
    tabular,
    timing,
    worlds,
)
from ahop.cli.common import app

__all__ = ["app"]
