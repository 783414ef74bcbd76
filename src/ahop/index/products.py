"""Search by matrix products of codes, a tile of scores at a time: on a GPU, and wherever FAISS is not."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ahop._blocks import budget, split
from ahop.index.rough import Found, Rough, log_minus
from ahop.similarity.codes import Asked, Codes

# How many patterns are a group: on a GPU more, which has many arms.
_GROUP, _GROUP_ON_GPU = 16, 32
_IMPOSSIBLE = -1e30
# Codes that half precision holds, with room to spare.
_LARGE = 1e4


class Products:
    """Codes of all patterns, in half precision where a GPU multiplies them and their sums allow it.

    Args:
        rough: What to score by.
        device: Where codes lie.
    """

    local = True

    def __init__(self, rough: Rough, device: torch.device) -> None:
        self.rough = rough.to(device)
        self.halves = [device.type == "cuda" and _bounded(codes) for _, codes in rough.parts]
        self.recordable = all(self.halves)
        self.group = _GROUP_ON_GPU if device.type == "cuda" else _GROUP
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
        return [codes.half() if half else codes.float() for codes, half in found]

    def keep(self, kept: Tensor) -> None:
        self.codes = [codes[kept] for codes in self.codes]

    def search(self, queries: Tensor, observed: Tensor | None, count: int, log_prior: Tensor | None) -> Found:
        # A tile of scores, what is made of it on the way, and the best of each group.
        tile = max(self.group, budget() // (4 * 4))
        rows = max(1, min(len(queries), tile // min(len(self), 2**16), tile * self.group // len(self)))
        found = []
        for start in range(0, len(queries), rows):
            part = slice(start, start + rows)
            question = self.rough.ask(queries[part], None if observed is None else observed[part])
            found.append(self._searched(question, count, log_prior, max(self.group, tile // rows)))
        return Found(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def _searched(self, question: list[Asked], count: int, log_prior: Tensor | None, width: int) -> Found:
        """All scores, a tile at a time, of which the best of each group stay; then those of the best groups again.

        The best patterns lie in the groups that have the best. So scores are read once, not once for each digit.
        """
        asked = [_ready(one.codes, half) for one, half in zip(question, self.halves, strict=True)]
        straight = len(question) == 1 and question[0].bend is None and log_prior is None

        def logits(products: list[Tensor], places: Tensor | slice) -> Tensor:
            if straight:
                # What is alike for all patterns of a query is added at the end.
                return products[0] if self.rough.beta == 1 else products[0].mul_(self.rough.beta)
            scores = self.rough.logits(question, products)
            # Impossible patterns are worse than any, but not as bad as none.
            return scores if log_prior is None else scores + log_prior[places].clamp_min(_IMPOSSIBLE)

        width, maxima, totals = width // self.group * self.group, [], []
        for start in range(0, len(self), width):
            part = slice(start, min(start + width, len(self)))
            tile = logits([_product(*one, codes[part]) for one, codes in zip(asked, self.codes, strict=True)], part)
            if tile.shape[1] % self.group:
                tile = nn.functional.pad(tile, (0, -tile.shape[1] % self.group), value=-math.inf)
            # A group is what stands in one column, so that neighbours are read together.
            groups = tile.view(len(tile), self.group, -1).amax(1)
            highest = groups.amax(1, keepdim=True).clamp_min(torch.finfo(tile.dtype).min)
            maxima.append(groups)
            totals.append(highest.squeeze(1) + tile.sub_(highest).exp_().sum(1).log())
        maxima_of_all = torch.cat(maxima, 1)
        chosen = maxima_of_all.topk(min(count, maxima_of_all.shape[1]), sorted=False).indices
        members = self._members(chosen, width)
        inside = members.clamp_max(len(self) - 1)
        # Codes of the members, of so many queries at a time.
        each = 2 * members.shape[1] * sum(codes.shape[1] * codes.element_size() for codes in self.codes)
        parts = split(len(members), each)
        products = [
            torch.cat([_products_of(one, codes[inside[part]], part) for part in parts])
            for one, codes in zip(asked, self.codes, strict=True)
        ]
        scores = logits(products, inside).masked_fill_(members >= len(self), -math.inf)
        best, order = scores.topk(min(count, len(self)), sorted=False)
        total = torch.stack(totals).logsumexp(0)
        rest = log_minus(total, best.logsumexp(1))
        if straight and question[0].level is not None:
            level = self.rough.beta * question[0].level.float()
            best, rest = best + level, rest + level.squeeze(1)
        return Found(inside.gather(1, order), best, rest)

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


def _ready(codes: Tensor, half: bool) -> tuple[Tensor, Tensor | None]:
    """Codes to ask with; in half precision in units of their largest value, where it is too large for it."""
    if not half:
        return codes.float(), None
    scale = codes.abs().amax(1, keepdim=True)
    # A recording must not look at values.
    if not torch.cuda.is_current_stream_capturing() and float(scale.max()) < _LARGE:
        return codes.half(), None
    return (codes / scale.clamp_min(1e-30)).half(), scale.float()


def _product(asked: Tensor, scale: Tensor | None, stored: Tensor) -> Tensor:
    """Of all queries with some patterns."""
    if asked.dtype != torch.float16:
        return asked @ stored.mT
    products = torch.mm(asked, stored.mT, out_dtype=torch.float32)
    return products if scale is None else products.mul_(scale)


def _products_of(asked: tuple[Tensor, Tensor | None], stored: Tensor, part: slice) -> Tensor:
    """Of some queries, each with patterns of its own ``(q, n, w)``."""
    codes, scale = asked
    if codes.dtype != torch.float16:
        return torch.bmm(stored, codes[part, :, None]).squeeze(2)
    products = torch.bmm(stored, codes[part, :, None], out_dtype=torch.float32).squeeze(2)
    return products if scale is None else products.mul_(scale[part])
