"""Warnings that name the line of the caller, whatever lies between it and the place that warns."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# Modules run for the caller: decorators such as torch.no_grad add frames, so that no stack level counted by hand lasts.
_LIBRARIES = ("ahop", "torch")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is neither of this library nor of PyTorch.

    ``skip_file_prefixes`` of :func:`warnings.warn` does the same from Python 3.12 on.
    """
    frame = sys._getframe(1)
    while _inside(frame) and frame.f_back is not None:
        frame = frame.f_back
    names = frame.f_globals
    # The registry is what lets Python show a warning once for each line.
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__") or "<unknown>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)


def _inside(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _LIBRARIES
