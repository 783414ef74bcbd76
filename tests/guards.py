"""Guards against leakage: a figure means nothing if what it is measured on was learned from.

There are two ways to notice. *Watch* what goes into the functions that learn and into those that score, and ask that no
row goes into both. Or *poison* what nobody may learn from: whoever does gives other answers, or an error.
"""

import inspect

import numpy as np
import torch


def rows(*tables):
    """The rows of arrays and tensors, the bags of lists, and the names of a frame's rows, as a set."""
    found = set()
    for table in tables:
        if hasattr(table, "iloc"):
            found |= set(table.index)
        else:
            found |= {np.asarray(row).tobytes() for row in table}
    return found


def apart(some, others):
    """That two sets of rows are not empty and share none."""
    assert some and others, "a guard that has seen nothing proves nothing"
    assert not some & others, f"{len(some & others)} of {len(some)} rows are on both sides"


def poisoned(table, which):
    """A copy of which some rows have no value that can be learned from."""
    return table.masked_fill(which[:, None], torch.nan)


class Call:
    """One call: the name of its function, its arguments by their names, and the calls that were made inside it."""

    def __init__(self, what, arguments):
        vars(self).update(arguments, what=what, inside=[])


class Watch:
    """Which functions were called with what, in order."""

    def __init__(self, monkeypatch):
        self.calls, self._monkeypatch = [], monkeypatch

    def on(self, owner, name, instead=None):
        """Watch a function of a module, or a method of a class; ``instead`` takes its place, to save time."""
        original = getattr(owner, name)
        signature = inspect.signature(original)

        def watched(*arguments, **options):
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            call = Call(name, bound.arguments)
            self.calls.append(call)
            before = len(self.calls)
            result = (instead or original)(*arguments, **options)
            call.inside = self.calls[before:]
            return result

        self._monkeypatch.setattr(owner, name, watched)
        return self

    def of(self, name):
        """The calls of one function."""
        return [call for call in self.calls if call.what == name]

    def after(self, call):
        """What was called when a call had ended."""
        return self.calls[self.calls.index(call) + 1 + len(call.inside) :]
