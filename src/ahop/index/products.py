"""Search by matrix products of codes, a tile of scores at a time: on a GPU, and wherever FAISS is not."""

from __future__ import annotations

import torch
from torch import Tensor

from ahop._blocks import budget, split
from ahop.index.rough import Found, Question, Rough, log_minus
from ahop.similarity.codes import Codes

# Scores are looked through by groups first: the best lie in the groups that have the best.
_GROUP = 64


class Products:
    """Codes of all patterns, in half precision where a GPU multiplies them and their sums allow it.

    Args:
        rough: What to score by.
        device: Where codes lie.
    """

    def __init__(self, rough: Rough, device: torch.device) -> None:
        self.rough = rough.to(device)
        self.halves = [device.type == "cuda" and _bounded(codes) for _, codes in rough.parts]
        self.codes: list[Tensor] = []

    def __len__(self) -> int:
        return len(self.codes[0]) if self.codes else 0

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {f"{number}": codes for number, codes in enumerate(self.codes)}, {}

    def add(self, patterns: Tensor, log_prior: Tensor | None) -> None:
        rows = [self._encoded(patterns[part]) for part in split(len(patterns), 64 * patterns.shape[1])]
        new = [torch.cat(blocks) for blocks in zip(*rows, strict=True)]
        self.codes = [torch.cat(pair) for pair in zip(self.codes, new, strict=True)] if self.codes else new

    def _encoded(self, patterns: Tensor) -> list[Tensor]:
        found = zip(self.rough.encode(patterns), self.halves, strict=True)
        return [codes.half() if half else codes.float() for codes, half in found]

    def keep(self, kept: Tensor) -> None:
        self.codes = [codes[kept] for codes in self.codes]

    def search(self, queries: Tensor, observed: Tensor | None, count: int, log_prior: Tensor | None) -> Found:
        # A tile, what is made of it on the way, and room for the codes of the queries.
        tile = max(_GROUP, budget() // (4 * 4))
        rows = max(1, min(len(queries), tile // min(len(self), 2**16)))
        found = []
        for start in range(0, len(queries), rows):
            part = slice(start, start + rows)
            mask = None if observed is None else observed[part]
            question = self.rough.ask(queries[part], mask)
            found.append(self._searched(question, len(queries[part]), count, log_prior, tile // rows))
        return Found(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def _searched(self, question: Question, rows: int, count: int, log_prior: Tensor | None, width: int) -> Found:
        width = max(_GROUP, width // _GROUP * _GROUP)
        asked = [_ready(codes, half) for codes, half in zip(question.codes, self.halves, strict=True)]
        best = places = total = None
        for start in range(0, len(self), width):
            part = slice(start, min(start + width, len(self)))
            products = [
                _product(codes, scale, stored[part]) for (codes, scale), stored in zip(asked, self.codes, strict=True)
            ]
            logits = self.rough.logits(question, products)
            if log_prior is not None:
                logits = logits + log_prior[part]
            values, indices = _top(logits, min(count, logits.shape[1]))
            highest = values.amax(1, keepdim=True).clamp_min(torch.finfo(values.dtype).min)
            summed = highest.squeeze(1) + logits.sub_(highest).exp_().sum(1).log()
            indices += start
            if best is None or places is None or total is None:
                best, places, total = values, indices, summed
            else:
                total = torch.logaddexp(total, summed)
                best, order = torch.cat([best, values], 1).topk(min(count, start + width, len(self)))
                places = torch.cat([places, indices], 1).gather(1, order)
        assert best is not None and places is not None and total is not None
        return Found(places, best, log_minus(total, best.logsumexp(1)))


def _bounded(codes: Codes) -> bool:
    """Whether codes are sums over dimensions, whose values are of one size; a square of many is not."""
    return type(codes).steps is not Codes.steps


def _ready(codes: Tensor, half: bool) -> tuple[Tensor, Tensor | None]:
    """Codes to ask with; in half precision in units of their largest value, which may be too large for it."""
    if not half:
        return codes.float(), None
    scale = codes.abs().amax(1, keepdim=True).clamp_min(1e-30)
    return (codes / scale).half(), scale.float()


def _product(asked: Tensor, scale: Tensor | None, stored: Tensor) -> Tensor:
    if scale is None:
        return asked @ stored.mT
    return torch.mm(asked, stored.mT, out_dtype=torch.float32).mul_(scale)


def _top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest of each row and their places, in any order; rows are read once, not once for each digit."""
    rows, columns = scores.shape
    if columns % _GROUP or columns <= 4 * _GROUP * count:
        return scores.topk(count, sorted=False)
    groups = scores.view(rows, -1, _GROUP)
    chosen = groups.amax(2).topk(count, sorted=False).indices
    members = groups.gather(1, chosen[..., None].expand(-1, -1, _GROUP)).flatten(1)
    values, order = members.topk(count, sorted=False)
    return values, chosen.gather(1, order // _GROUP) * _GROUP + order % _GROUP
