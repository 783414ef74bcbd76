"""The footprint's scores, readout and ranking as PyTorch operators: differentiable, and whole under ``torch.compile``.

An operator is written as a function of :class:`ahop.kernels.backend.Pairs` and what it takes besides; PyTorch sees the
fields of the pairs as the operator's first arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ahop._setting import SetHere
from ahop.kernels.backend import Needs, Pairs, Readout
from ahop.kernels.dispatch import backend_for

_library = torch.library.Library("ahop", "DEF")


def _pairs(patterns: Tensor, queries: Tensor, weights: Tensor, observed: Tensor | None, bases: str) -> Pairs:
    """What every operator begins with; the bases are joined by commas."""
    return Pairs(patterns, queries, weights, observed, bases.split(","))


_FIRST = inspect.signature(_pairs).parameters


def _operator(shapes: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Register a function of pairs as ``ahop::footprint_<name>``, with a schema read from its annotations.

    Not by ``torch.library.custom_op``, whose first call imports the compiler: two seconds for everybody.

    Args:
        shapes: A function of the same arguments whose results have the right shapes and any values: all that
            ``torch.compile`` asks for.
    """

    def register(function: Callable[..., Any]) -> Any:
        name, signature = f"footprint_{function.__name__}", inspect.signature(function)

        def run(*args: Any) -> Any:
            # Here, in a backward pass too, a score in half precision could not tell close patterns apart.
            with torch.autocast(args[0].device.type, enabled=False):
                return function(_pairs(*args[: len(_FIRST)]), *args[len(_FIRST) :])

        def sketch(*args: Any) -> Any:
            return shapes(_pairs(*args[: len(_FIRST)]), *args[len(_FIRST) :])

        _, *others = signature.parameters.values()
        run.__signature__ = signature.replace(parameters=[*_FIRST.values(), *others])  # type: ignore[attr-defined]
        _library.define(name + torch.library.infer_schema(run, mutates_args=()))
        _library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"ahop::{name}", sketch, lib=_library)
        return getattr(torch.ops.ahop, name).default

    return register


def _differentiable(operator: Any, keep: Callable[..., None], backward: Callable[..., Any]) -> None:
    def keep_all(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.set_here = SetHere()
        keep(ctx, inputs, output)

    def backward_alike(ctx: Any, *slopes: Any) -> Any:
        # On a GPU, a thread of PyTorch's own runs this.
        with ctx.set_here.taken_over():
            return backward(ctx, *slopes)

    torch.library.register_autograd(operator.name(), backward_alike, setup_context=keep_all, lib=_library)


def _needed(tensors: Iterable[Tensor | None], needs: Sequence[bool]) -> list[Tensor | None]:
    return [tensor if needed else None for tensor, needed in zip(tensors, needs, strict=True)]


def _shaped(tensors: Iterable[Tensor | None], like: Tensor) -> list[Tensor]:
    """New tensors of the same shapes; an empty one for None, which an operator cannot return."""
    return [like.new_empty(0 if tensor is None else tensor.shape) for tensor in tensors]


def _filled(gradients: Iterable[Tensor | None], like: Tensor) -> list[Tensor]:
    return [like.new_empty(0) if gradient is None else gradient.contiguous() for gradient in gradients]


# --- scores ------------------------------------------------------------------------------------------------


@_operator(lambda pairs: pairs.queries.new_empty(*pairs.queries.shape[:2], pairs.patterns.shape[1]))
def scores(pairs: Pairs) -> Tensor:
    """All scores, ``(G, Q, N)``."""
    return backend_for(pairs).scores(pairs)


@_operator(lambda pairs, slopes, needs: _shaped(_needed(pairs[:3], needs), slopes))
def gradients(pairs: Pairs, slopes: Tensor, needs: Sequence[bool]) -> list[Tensor]:
    """The gradients to patterns, queries and weights; an empty tensor for what is not needed.

    Args:
        pairs: What was scored.
        slopes: The gradient of the loss with respect to each score, ``(G, Q, N)``.
        needs: Which of patterns, queries and weights need a gradient.
    """
    return _filled(backend_for(pairs).gradients(pairs, slopes, Needs(*needs)), slopes)


def _keep_for_scores(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.bases = inputs
    ctx.save_for_backward(*tensors)


def _scores_backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, ...]:
    needs = list(ctx.needs_input_grad[:3])
    return *_needed(gradients(*ctx.saved_tensors, ctx.bases, slopes, needs), needs), None, None


_differentiable(scores, _keep_for_scores, _scores_backward)


# --- readout -----------------------------------------------------------------------------------------------


def _readout_shapes(pairs: Pairs, values: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    rows = pairs.queries.shape[:2]
    return values.new_empty(*rows, values.shape[-1]), values.new_empty(rows)


@_operator(_readout_shapes)
def retrieve(pairs: Pairs, values: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The readout ``(G, Q, v)``, and the log-sum-exp of the scores ``(G, Q)``.

    Args:
        pairs: What is scored.
        values: What to blend, ``(G, N, v)``.
        bias: Added to the scores, ``(G, N)``, or None.
    """
    return backend_for(pairs).retrieve(pairs, values, bias)


@_operator(lambda pairs, values, bias, *rest: _shaped(_needed((*pairs[:3], values, bias), rest[-1]), values))
def retrieve_gradients(
    pairs: Pairs,
    values: Tensor,
    bias: Tensor | None,
    blend: Tensor,
    log_sums: Tensor,
    slopes: Tensor,
    log_slopes: Tensor,
    needs: Sequence[bool],
) -> list[Tensor]:
    """The gradients of :func:`retrieve`.

    Args:
        pairs, values, bias: As there.
        blend, log_sums: What it returned.
        slopes: The gradient of the loss with respect to ``blend``, ``(G, Q, v)``.
        log_slopes: That with respect to ``log_sums``, ``(G, Q)``.
        needs: Which gradients are needed, in the order in which they are returned.

    Returns:
        The gradients with respect to patterns, queries, weights, values and bias; an empty tensor for each that is not
        needed.
    """
    found, pulls = Readout(blend, log_sums), Readout(slopes, log_slopes)
    return _filled(backend_for(pairs).retrieve_gradients(pairs, values, bias, found, pulls, needs), values)


def _keep_for_retrieve(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *of_pairs, ctx.bases, values, bias = inputs
    ctx.save_for_backward(*of_pairs, values, bias, *output)


def _retrieve_backward(ctx: Any, slopes: Tensor, log_slopes: Tensor) -> tuple[Tensor | None, ...]:
    needs = [ctx.needs_input_grad[place] for place in (0, 1, 2, 5, 6)]
    *of_pairs, values, bias, blend, log_sums = ctx.saved_tensors
    found = retrieve_gradients(*of_pairs, ctx.bases, values, bias, blend, log_sums, slopes, log_slopes, needs)
    *to_pairs, to_values, to_bias = _needed(found, needs)
    return *to_pairs, None, None, to_values, to_bias


_differentiable(retrieve, _keep_for_retrieve, _retrieve_backward)


# --- no second derivatives ---------------------------------------------------------------------------------


def _keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    pass


def _only_once(ctx: Any, *slopes: Any) -> None:
    raise RuntimeError("footprints in float32 can be differentiated once; use float64 for second derivatives")


_differentiable(gradients, _keep_nothing, _only_once)
_differentiable(retrieve_gradients, _keep_nothing, _only_once)


# --- ranking -----------------------------------------------------------------------------------------------


def _ranking_shapes(pairs: Pairs, k: int, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    rows = pairs.queries.shape[:2]
    best = pairs.queries.new_empty(*rows, k)
    return best, torch.empty_like(best, dtype=torch.long), pairs.queries.new_empty(rows)


@_operator(_ranking_shapes)
def recall(pairs: Pairs, k: int, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The k best scores and their indices, ``(G, Q, k)`` each, and the log-sum-exp of all, ``(G, Q)``.

    Args:
        pairs: What is scored.
        k: How many to return.
        bias: Added to the scores, ``(G, N)``, or None.
    """
    return backend_for(pairs).recall(pairs, k, bias)
