"""The footprint's scores, readout and ranking as PyTorch operators: differentiable, and whole under ``torch.compile``.

Arguments are those of :class:`ahop.kernels.reference.Pairs`, with the bases joined by commas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.kernels.dispatch import kernels_for
from ahop.kernels.reference import Pairs

_library = torch.library.Library("ahop", "DEF")


def _operator(function: Callable[..., Any]) -> Any:
    """Register ``ahop::footprint_<name>``.

    Not by ``torch.library.custom_op``, whose first call imports the compiler: two seconds for everybody.
    """
    name = f"footprint_{function.__name__}"

    def run(*args: Any) -> Any:
        # Here, in a backward pass too, a score in half precision could not tell close patterns apart.
        with torch.autocast(args[0].device.type, enabled=False):
            return function(*args)

    _library.define(name + torch.library.infer_schema(function, mutates_args=()))
    _library.impl(name, run, "CompositeExplicitAutograd")
    return getattr(torch.ops.ahop, name).default


def _shapes(operator: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what the compiler learns about an operator's results without running it."""
    return torch.library.register_fake(operator.name(), lib=_library)


@_operator
def scores(patterns: Tensor, queries: Tensor, weights: Tensor, observed: Tensor | None, bases: str) -> Tensor:
    """All scores, ``(G, Q, N)``."""
    pairs = Pairs(patterns, queries, weights, observed, bases.split(","))
    return kernels_for(pairs).scores(pairs)


@_shapes(scores)
def _(patterns: Tensor, queries: Tensor, weights: Tensor, observed: Tensor | None, bases: str) -> Tensor:
    return queries.new_empty(*queries.shape[:2], patterns.shape[1])


@_operator
def gradients(
    slopes: Tensor,
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    needs: Sequence[bool],
) -> list[Tensor]:
    """The gradients to patterns, queries and weights; an empty tensor for what is not needed."""
    pairs = Pairs(patterns, queries, weights, observed, bases.split(","))
    found = kernels_for(pairs).gradients(pairs, slopes, needs)
    return [slopes.new_empty(0) if gradient is None else gradient.contiguous() for gradient in found]


@_shapes(gradients)
def _(
    slopes: Tensor,
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    needs: Sequence[bool],
) -> list[Tensor]:
    inputs = zip((patterns, queries, weights), needs, strict=True)
    return [tensor.new_empty(tensor.shape) if needed else tensor.new_empty(0) for tensor, needed in inputs]


def _only_once(ctx: Any, *slopes: Any) -> None:
    raise RuntimeError("footprints in float32 can be differentiated once; use float64 for second derivatives")


def _keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    pass


torch.library.register_autograd(gradients.name(), _only_once, setup_context=_keep_nothing, lib=_library)


def _keep_for_scores(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.bases = inputs[4]


def _scores_backward(ctx: Any, slopes: Tensor) -> tuple[Tensor | None, ...]:
    needs = list(ctx.needs_input_grad[:3])
    found = gradients(slopes, *ctx.saved_tensors, ctx.bases, needs)
    return *(gradient if needed else None for gradient, needed in zip(found, needs, strict=True)), None, None


torch.library.register_autograd(scores.name(), _scores_backward, setup_context=_keep_for_scores, lib=_library)


@_operator
def retrieve(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    values: Tensor,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The softmax of scores plus ``bias (G, N)``, times ``values (G, N, v)``; and its log-sum-exp ``(G, Q)``.

    A query for which the bias excludes every pattern (minus infinity) reads out zero.
    """
    pairs = Pairs(patterns, queries, weights, observed, bases.split(","))
    kernels = kernels_for(pairs)
    if hasattr(kernels, "retrieve"):
        fused = kernels.retrieve(pairs, values, bias)
        if fused is not None:
            return fused
    blend, log_sums = queries.new_empty(*queries.shape[:2], values.shape[-1]), queries.new_empty(queries.shape[:2])
    for part, table in _tables(kernels, pairs, bias):
        log_sums[:, part] = table.logsumexp(-1)
        blend[:, part] = _chances(table, log_sums[:, part]) @ values
    return blend, log_sums


@_shapes(retrieve)
def _(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    values: Tensor,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor]:
    return queries.new_empty(*queries.shape[:2], values.shape[-1]), queries.new_empty(queries.shape[:2])


@_operator
def retrieve_gradients(
    slopes: Tensor,
    log_slopes: Tensor,
    blend: Tensor,
    log_sums: Tensor,
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    values: Tensor,
    bias: Tensor | None,
    needs: Sequence[bool],
) -> list[Tensor]:
    """The gradients to patterns, queries, weights, values and bias, the scores of some queries at a time made again."""
    pairs = Pairs(patterns, queries, weights, observed, bases.split(","))
    kernels = kernels_for(pairs)
    inputs = (patterns, queries, weights, values, queries.new_empty(0) if bias is None else bias)
    totals = [
        torch.zeros_like(tensor) if needed else tensor.new_empty(0)
        for tensor, needed in zip(inputs, needs, strict=True)
    ]
    for part, table in _tables(kernels, pairs, bias):
        chances, pull = _chances(table, log_sums[:, part]), slopes[:, part]
        # The softmax's own slope: what a score adds is weighed against what the blend already has.
        centre = (pull * blend[:, part]).sum(-1, keepdim=True) - log_slopes[:, part, None]
        on_scores = chances * (pull @ values.mT - centre)
        if needs[3]:
            totals[3] += chances.mT @ pull
        if needs[4]:
            totals[4] += on_scores.sum(1)
        if any(needs[:3]):
            found = kernels.gradients(pairs.some(part), on_scores, needs[:3])
            places = (totals[0], totals[1][:, part], totals[2][:, part] if pairs.separate else totals[2])
            for total, more in zip(places, found, strict=True):
                if more is not None:
                    total += more
    return totals


@_shapes(retrieve_gradients)
def _(
    slopes: Tensor,
    log_slopes: Tensor,
    blend: Tensor,
    log_sums: Tensor,
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    values: Tensor,
    bias: Tensor | None,
    needs: Sequence[bool],
) -> list[Tensor]:
    inputs = (patterns, queries, weights, values, bias)
    return [
        tensor.new_empty(tensor.shape) if tensor is not None and needed else queries.new_empty(0)
        for tensor, needed in zip(inputs, needs, strict=True)
    ]


torch.library.register_autograd(retrieve_gradients.name(), _only_once, setup_context=_keep_nothing, lib=_library)


def _keep_for_retrieve(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    patterns, queries, weights, observed, ctx.bases, values, bias = inputs
    ctx.save_for_backward(*output, patterns, queries, weights, observed, values, bias)


def _retrieve_backward(ctx: Any, slopes: Tensor, log_slopes: Tensor) -> tuple[Tensor | None, ...]:
    blend, log_sums, patterns, queries, weights, observed, values, bias = ctx.saved_tensors
    needs = [ctx.needs_input_grad[place] for place in (0, 1, 2, 5, 6)]
    found = retrieve_gradients(
        *(slopes, log_slopes, blend, log_sums, patterns, queries, weights, observed, ctx.bases, values, bias, needs)
    )
    given = [gradient if needed else None for gradient, needed in zip(found, needs, strict=True)]
    return *given[:3], None, None, *given[3:]


torch.library.register_autograd(retrieve.name(), _retrieve_backward, setup_context=_keep_for_retrieve, lib=_library)


@_operator
def recall(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    k: int,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The k best scores and their indices, ``(G, Q, k)`` each, and the log-sum-exp of all, ``(G, Q)``."""
    pairs = Pairs(patterns, queries, weights, observed, bases.split(","))
    kernels = kernels_for(pairs)
    if hasattr(kernels, "recall"):
        fused = kernels.recall(pairs, k, bias)
        if fused is not None:
            return fused
    best = queries.new_empty(*queries.shape[:2], k)
    indices, log_sums = torch.empty_like(best, dtype=torch.long), queries.new_empty(queries.shape[:2])
    for part, table in _tables(kernels, pairs, bias):
        best[:, part], indices[:, part] = table.topk(k, dim=-1)
        log_sums[:, part] = table.logsumexp(-1)
    return best, indices, log_sums


@_shapes(recall)
def _(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    observed: Tensor | None,
    bases: str,
    k: int,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    best = queries.new_empty(*queries.shape[:2], k)
    return best, torch.empty_like(best, dtype=torch.long), queries.new_empty(queries.shape[:2])


def _tables(kernels: Any, pairs: Pairs, bias: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
    """The scores with their bias, for as many queries at a time as the memory budget allows."""
    patterns = pairs.patterns
    for part in split(pairs.queries.shape[1], patterns.shape[0] * patterns.shape[1] * patterns.element_size()):
        table = kernels.scores(pairs.some(part))
        yield part, table if bias is None else table + bias[:, None]


def _chances(table: Tensor, log_sums: Tensor) -> Tensor:
    """The softmax; zero where every pattern is excluded."""
    return (table - log_sums.clamp_min(torch.finfo(table.dtype).min)[..., None]).exp()
