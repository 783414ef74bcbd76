"""The command line of the experiments: one file a command, which joins by being there."""

from ahop._registry import read_all
from ahop_paper.commands.common import app

read_all(__name__, __path__)

__all__ = ["app"]
