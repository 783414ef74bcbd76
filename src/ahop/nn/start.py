"""How layers begin: a seed gives the same numbers in a layer built in place and in one built on the meta device."""

from __future__ import annotations

from torch import nn


def reset(*modules: nn.Module | None) -> None:
    """Let modules begin anew, in this order; one that does not know how lets its own parts do so."""
    for module in modules:
        if module is None:
            continue
        begin = getattr(module, "reset_parameters", None)
        if begin is None:
            reset(*module.children())
        else:
            begin()
