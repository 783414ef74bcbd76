"""The command line: one file a command."""

from ahop.paper.commands import (  # noqa: F401 (each adds its commands)
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
from ahop.paper.commands.common import app

__all__ = ["app"]
