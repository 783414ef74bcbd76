"""Search by matrix products of codes, a tile of scores at a time: on a GPU, and wherever FAISS is not."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ahop._blocks import budget, split
from ahop._queries import Queries
from ahop.index.rough import Found, Rough, log_minus
from ahop.kernels import plain
from ahop.similarity.codes import Asked, Codes

# How many patterns are a group: on a GPU more, which has many arms.
_GROUP_SIZE, _GROUP_SIZE_ON_GPU = 16, 32
_IMPOSSIBLE = -1e30


class Products:
    """Codes of all patterns, in half precision where a GPU multiplies them and their sums allow it, else as they come.

    Args:
        rough: What to score by.
        device: Where codes lie.
    """

    local = True

    def __init__(self, rough: Rough, device: torch.device) -> None:
        self.rough = rough.to(device)
        self.halves = [device.type == "cuda" and _bounded(codes) for _, codes in rough.parts]
        self.recordable = all(self.halves)
        self.folds = plain.runs_on(torch.empty(0, device=device))
        self.group = _GROUP_SIZE_ON_GPU if device.type == "cuda" else _GROUP_SIZE
        self.codes: list[Tensor] = []

    def __len__(self) -> int:
        return len(self.codes[0]) if self.codes else 0

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {f"{number}": codes for number, codes in enumerate(self.codes)}, {}

    def add(self, patterns: Tensor, log_prior: Tensor | None) -> None:
        first, total = len(self), len(self) + len(patterns)
        grown: list[Tensor] = []
        # Room is made once, and filled block by block.
        for part in split(len(patterns), 64 * patterns.shape[1]):
            for number, codes in enumerate(self._encoded(patterns[part])):
                if len(grown) == number:
                    grown.append(codes.new_empty(total, codes.shape[1]))
                    if first:
                        grown[number][:first] = self.codes[number]
                grown[number][first + part.start : first + part.stop] = codes
        self.codes = grown or self.codes

    def _encoded(self, patterns: Tensor) -> list[Tensor]:
        found = zip(self.rough.encode(patterns), self.halves, strict=True)
        return [codes.half() if half else codes for codes, half in found]

    def keep(self, kept: Tensor) -> None:
        self.codes = [codes[kept] for codes in self.codes]

    def search(self, queries: Queries, count: int, log_prior: Tensor | None) -> Found:
        # A tile of scores, what is made of it on the way, and the best of each group.
        tile = max(self.group, budget() // (4 * 4))
        rows = max(1, min(len(queries), tile // min(len(self), 2**15), tile * self.group // len(self)))
        found = []
        for start in range(0, len(queries), rows):
            question = self.rough.ask(queries[start : start + rows])
            found.append(self._searched(question, count, log_prior, max(self.group, tile // rows)))
        return Found(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def _searched(self, question: list[Asked], count: int, log_prior: Tensor | None, width: int) -> Found:
        """All scores, a tile at a time, of which the best of each group stay; then those of the best groups again.

        The best patterns lie in the groups that have the best. So scores are read once, not once for each digit.
        """
        asked = [_ready(one.codes, half) for one, half in zip(question, self.halves, strict=True)]
        straight = len(question) == 1 and question[0].bend is None and log_prior is None
        # What is alike for all patterns of a query is added at the end.
        unit = self.rough.beta * asked[0][1]

        def logits(products: list[Tensor], places: Tensor | slice) -> Tensor:
            scaled = [some * scale for some, (_, scale) in zip(products, asked, strict=True)]
            scores = self.rough.logits(question, scaled).float()
            # Impossible patterns are worse than any, but not as bad as none.
            return scores if log_prior is None else scores + log_prior[places].clamp_min(_IMPOSSIBLE)

        width = width // self.group * self.group
        whole, behind = divmod(len(self), width)
        maxima = unit.new_empty(len(unit), whole * (width // self.group) - (-behind // self.group))
        totals, offset = [], 0
        for start in range(0, len(self), width):
            part = slice(start, min(start + width, len(self)))
            tile = [_product(one, codes[part]) for (one, _), codes in zip(asked, self.codes, strict=True)]
            scores, scale = (tile[0], unit) if straight else (logits(tile, part), torch.ones_like(unit))
            totals.append(self._folded(scores, scale, maxima, offset))
            offset -= -scores.shape[1] // self.group
        chosen = maxima.topk(min(count, maxima.shape[1]), sorted=False).indices
        members = self._members(chosen, width)
        inside = members.clamp_max(len(self) - 1)
        # Codes of the members, of so many queries at a time.
        each = 2 * members.shape[1] * sum(codes.shape[1] * codes.element_size() for codes in self.codes)
        parts = split(len(members), each)
        products = [
            torch.cat([_products_of(one[part], codes[inside[part]]) for part in parts])
            for (one, _), codes in zip(asked, self.codes, strict=True)
        ]
        scores = products[0].mul_(unit) if straight else logits(products, inside)
        scores = scores.masked_fill_(members >= len(self), -math.inf)
        best, order = scores.topk(min(count, len(self)), sorted=False)
        total = torch.cat(totals, 1).logsumexp(1)
        rest = log_minus(total, best.logsumexp(1))
        if straight and question[0].level is not None:
            level = self.rough.beta * question[0].level.float()
            best, rest = best + level, rest + level.squeeze(1)
        return Found(inside.gather(1, order), best, rest)

    def _folded(self, tile: Tensor, scale: Tensor, maxima: Tensor, offset: int) -> Tensor:
        """The logs of what parts of each row sum up to ``(Q, parts)``; the best of each group go where they belong."""
        if self.folds:
            return plain.fold(tile, scale, self.group, maxima, offset)
        tile = tile.mul_(scale)
        if tile.shape[1] % self.group:
            tile = nn.functional.pad(tile, (0, -tile.shape[1] % self.group), value=-math.inf)
        # A group is what stands in one column, so that neighbours are read together.
        groups = tile.view(len(tile), self.group, -1).amax(1)
        maxima[:, offset : offset + groups.shape[1]] = groups
        highest = groups.amax(1, keepdim=True).clamp_min(torch.finfo(tile.dtype).min)
        return highest + tile.sub_(highest).exp_().sum(1, keepdim=True).log()

    def _members(self, groups: Tensor, width: int) -> Tensor:
        """The patterns of some groups ``(Q, C)``, counted through all tiles of this width, ``(Q, C * group)``."""
        whole, columns = len(self) // width, width // self.group
        behind = groups >= whole * columns
        tile = torch.where(behind, whole, groups // columns)
        # The last tile is narrower, and so are its columns fewer.
        stride = torch.where(behind, -(-(len(self) % width) // self.group), columns)
        rows = torch.arange(self.group, device=groups.device)
        return ((tile * width + groups - tile * columns)[..., None] + stride[..., None] * rows).flatten(1)


def _bounded(codes: Codes) -> bool:
    """Whether codes are sums over dimensions, whose values are of one size; a square of many is not."""
    return type(codes).steps is not Codes.steps


def _ready(codes: Tensor, half: bool) -> tuple[Tensor, Tensor]:
    """Codes to ask with, in half precision in units of their largest value, and those units ``(Q, 1)``."""
    if not half:
        return codes, torch.ones_like(codes[:, :1], dtype=torch.float32)
    scale = codes.abs().amax(1, keepdim=True).clamp_min(1e-30)
    return (codes / scale).half(), scale.float()


def _product(asked: Tensor, stored: Tensor) -> Tensor:
    """Of all queries with some patterns."""
    if asked.dtype != torch.float16:
        return asked @ stored.mT
    return torch.mm(asked, stored.mT, out_dtype=torch.float32)


def _products_of(asked: Tensor, stored: Tensor) -> Tensor:
    """Of some queries, each with patterns of its own ``(q, n, w)``."""
    if asked.dtype != torch.float16:
        return torch.bmm(stored, asked[..., None]).squeeze(2)
    return torch.bmm(stored, asked[..., None], out_dtype=torch.float32).squeeze(2)
