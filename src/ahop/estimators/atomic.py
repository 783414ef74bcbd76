"""A fit that changes an estimator when it has succeeded, all at once, and not before."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Estimator = TypeVar("Estimator")
Given = ParamSpec("Given")


def atomic_fit(
    fit: Callable[Concatenate[Estimator, Given], Any],
) -> Callable[Concatenate[Estimator, Given], Estimator]:
    """``fit`` on a twin with the same settings, whose attributes become the estimator's own in the end.

    Whatever stops a fit, a bad argument or an interrupt, every answer and every attribute is then what it was before.
    """

    @wraps(fit)
    def careful(self: Estimator, *args: Given.args, **kwargs: Given.kwargs) -> Estimator:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        fit(twin, *args, **kwargs)
        self.__dict__ = vars(twin)
        return self

    return careful
