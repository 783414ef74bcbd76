"""Parts that can be named in a string, rebuilt from their arguments, and saved without pickling."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

Part = TypeVar("Part", bound="Component")

_HALF_PRECISION = (torch.float16, torch.bfloat16)


def single(tensor: Tensor) -> Tensor:
    """The tensor in float32 at least."""
    return tensor.float() if tensor.dtype in _HALF_PRECISION else tensor


def never_half(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """What moves and casts the tensors of a module, but leaves them in float32 where it would make halves of them.

    What was learned, and a temperature above all, loses too much in half precision; it is small, so it costs nothing
    to keep.
    """

    def careful(tensor: Tensor) -> Tensor:
        moved = function(tensor)
        return single(tensor).to(moved.device) if moved.dtype in _HALF_PRECISION else moved

    return careful


class Component(nn.Module):
    """A part of a memory: a similarity, a separation, a modulation, a variant, or the memory itself.

    One rule makes every part nameable and saveable: **a constructor stores each argument under its own
    name**, as in scikit-learn. A direct subclass of ``Component`` opens a family ("similarity"); any class
    below it joins that family under its ``name``, with no list to edit elsewhere. A name that is taken is refused.
    """

    family: ClassVar[str]
    name: ClassVar[str]
    members: ClassVar[dict[str, type[Component]]]

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if Component in cls.__bases__:
            cls.family, cls.members = cls.__name__.lower(), {}
        elif not abstract:
            if "name" not in vars(cls):
                cls.name = cls.__name__.lower()
            known = cls.members.get(cls.name)
            # The same class again is a module that was read once more, as in a notebook: the newer one counts.
            if known is not None and _place(known) != _place(cls):
                raise ValueError(
                    f"{cls.family} {cls.name!r} is known already, as {_place(known)}; choose another name for "
                    f"{_place(cls)}, of the class or as its attribute `name`"
                )
            cls.members[cls.name] = cls

    @classmethod
    def named(cls: type[Part], name: str) -> type[Part]:
        """The member of this family that is called ``name``."""
        found = cls.members.get(name)
        if found is None or not issubclass(found, cls):
            known = ", ".join(sorted(cls.members))
            raise ValueError(f"unknown {cls.family} {name!r}; known: {known}")
        return found

    @classmethod
    def of(cls: type[Part], part: Part | str, **arguments: Any) -> Part:
        """``part`` itself, or, when it is a name, a new part made with ``arguments``."""
        if isinstance(part, cls):
            return part
        if isinstance(part, str):
            kind = cls.named(part)
            try:
                inspect.signature(kind).bind(**arguments)
            except TypeError as error:
                raise ValueError(f"{cls.family} {part!r} cannot be made from its name alone: {error}") from None
            return kind(**arguments)
        raise TypeError(f"{cls.family} must be a {cls.__name__} or a name, got {type(part).__name__}")

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Component:
        return super()._apply(never_half(fn), recurse)

    def __copy__(self: Part) -> Part:
        """Another part that shares all tensors and parts; what is replaced in one of the two is not in the other."""
        other = type(self).__new__(type(self))
        # PyTorch keeps tensors, parts and hooks in dictionaries, which it would share as well.
        vars(other).update(
            {key: value.copy() if isinstance(value, (dict, set)) else value for key, value in vars(self).items()}
        )
        return other

    def copy_from(self: Part, other: Part) -> None:
        """Take over all that another part of the same kind is made of, which is then to be used no more."""
        if type(other) is not type(self):
            raise TypeError(f"{type(self).__name__} cannot become a {type(other).__name__}")
        vars(self).clear()
        vars(self).update(vars(other))

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, as they stand now."""
        if type(self).__init__ is nn.Module.__init__:
            return {}
        parameters = inspect.signature(type(self).__init__).parameters
        return {name: getattr(self, name) for name in parameters if name != "self"}


def _place(kind: type[Component]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def family(name: str) -> type[Component]:
    """The class that opened a family: "similarity", "separation", "memory", ..."""
    return {cls.family: cls for cls in Component.__subclasses__()}[name]


def to_plain(value: Any) -> Any:
    """Turn a constructor argument into JSON; the inverse of :func:`from_plain`."""
    if isinstance(value, Component):
        arguments = {key: to_plain(item) for key, item in value.arguments().items()}
        return {"family": value.family, "name": value.name, "arguments": arguments}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = torch.as_tensor(value)
    if isinstance(value, Tensor):
        if not value.ndim:
            return value.item()
        return {"tensor": value.tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, (list, tuple, nn.ModuleList)):
        return [to_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(f"cannot save {value!r}: only numbers, words, tensors and parts of ahop can be written to a file")


def from_plain(value: Any) -> Any:
    """Rebuild what :func:`to_plain` wrote."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if isinstance(value, dict) and "tensor" in value:
        # Files of version 0.1.0 do not say of what type it was.
        return torch.tensor(value["tensor"], dtype=getattr(torch, value["dtype"]) if "dtype" in value else None)
    if isinstance(value, dict):
        arguments = {key: from_plain(item) for key, item in value["arguments"].items()}
        return family(value["family"]).named(value["name"])(**arguments)
    return value
