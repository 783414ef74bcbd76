"""Search by tables of four bits a dimension, with FAISS: d/2 bytes a pattern.

The likelihood is a sum over dimensions. So a product quantiser with one part a dimension has the likelihood's own terms
as its table, and nothing is trained: the sixteen values of a dimension are what its codes take for all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ahop._blocks import split
from ahop._extras import require
from ahop._queries import Queries
from ahop.index.rough import Found, Rough
from ahop.index.sample import Sample
from ahop.similarity.codes import Steps

# Values a dimension.
LEVELS = 16
# Patterns that are listed, for what they sum up to.
_LISTED_PATTERNS = 1024


class Scan:
    """Codes of all patterns, four bits a dimension; see :class:`~ahop.index.rough.Engine`.

    Args:
        rough: What to score by; of one part that is a sum over dimensions.
        steps: The values that stand for others.
        priors: Log priors that stand for others ``(16,)``; None where all are alike.
    """

    local, recordable = True, False

    def __init__(self, rough: Rough, steps: Steps, priors: Tensor | None) -> None:
        self.rough, self.steps, self.priors = rough, steps, priors
        (_, codes), *others = rough.parts
        assert not others
        places = torch.full((LEVELS, steps.values.shape[1]), 0.0).to(steps.values)
        places[:] = steps.values[-1]
        places[: len(steps.values)] = steps.values
        table = codes.encode_patterns(places).view(LEVELS, places.shape[1], -1).transpose(0, 1).float()
        if priors is not None:
            extra = torch.zeros_like(table[:1])
            extra[0, :, 0] = priors / rough.beta
            table = torch.cat([table, extra])
        self.table = table.cpu().contiguous()
        self.packed = np.empty((0, (len(self.table) + 1) // 2), np.uint8)
        self.sample = Sample(rough)
        self._index: Any = None

    @classmethod
    def of(cls, rough: Rough, patterns: Tensor, log_prior: Tensor | None) -> Scan | None:
        """One for patterns like these; None where their likelihood is no single sum over dimensions.

        Args:
            rough: The codes.
            patterns: Patterns like those to be searched, ``(n, d)``.
            log_prior: The log prior of each of these, ``(n,)``; None is uniform.
        """
        if len(rough.parts) > 1 or (steps := rough.parts[0][1].steps(patterns, LEVELS)) is None:
            return None
        if log_prior is not None and not bool(log_prior.isfinite().all()):
            # No table has room for what is impossible.
            return None
        return cls(rough, steps, None if log_prior is None else _levels(log_prior))

    def __len__(self) -> int:
        return len(self.packed)

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        sample = self.sample
        small = {"values": self.steps.values, "edges": self.steps.edges}
        small |= {"places": sample.places, "codes": sample.codes, "weighed": sample.weighed}
        small |= {} if self.priors is None else {"priors": self.priors}
        return {"packed": torch.from_numpy(self.packed)}, small

    def add(self, patterns: Tensor, log_prior: Tensor | None) -> None:
        parts = [self.packed]
        for part in split(len(patterns), 32 * patterns.shape[1]):
            parts.append(self._packed(patterns[part], None if log_prior is None else log_prior[part]))
        first = len(self)
        self._hold(np.concatenate(parts) if first else np.concatenate(parts[1:]))
        self.sample = self.sample.grown(patterns, log_prior, first)

    def keep(self, kept: Tensor) -> None:
        self.sample = self.sample.kept(kept, len(self))
        self._hold(self.packed[kept.numpy()])

    def _packed(self, patterns: Tensor, log_prior: Tensor | None) -> np.ndarray:
        """Which of its dimension's values each value is nearest to, two to a byte."""
        edges = self.steps.edges.mT.contiguous()
        nearest = torch.searchsorted(edges, patterns.mT.contiguous()).mT
        if self.priors is not None and log_prior is not None:
            middles = (self.priors[1:] + self.priors[:-1]) / 2
            nearest = torch.cat([nearest, torch.bucketize(log_prior, middles)[:, None]], 1)
        if nearest.shape[1] % 2:
            nearest = torch.nn.functional.pad(nearest, (0, 1))
        nearest = nearest.to(torch.uint8)
        return (nearest[:, 0::2] | nearest[:, 1::2] << 4).numpy()

    def _hold(self, packed: np.ndarray) -> None:
        self.packed, self._index = packed, None

    def _ready(self) -> Any:
        """The codes in the order in which processors read them; made when they are first asked."""
        if self._index is not None:
            return self._index
        require("faiss", extra="index")
        import faiss  # type: ignore[import-untyped, unused-ignore]

        parts, _, width = self.table.shape
        plain = faiss.IndexPQ(parts * width, parts, 4, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(self.table.numpy().ravel(), plain.pq.centroids)
        plain.is_trained = True
        plain.add_sa_codes(np.ascontiguousarray(self.packed))
        self._index = faiss.IndexPQFastScan(plain)  # type: ignore[arg-type]
        return self._index

    def search(self, queries: Queries, count: int, log_prior: Tensor | None) -> Found:
        # Lists, and scores of the sample, of so many queries at a time.
        parts = [self._searched(queries[part], count) for part in split(len(queries), 64 * _LISTED_PATTERNS)]
        return Found(*(torch.cat(some) for some in zip(*parts, strict=True)))

    def _searched(self, queries: Queries, count: int) -> Found:
        question = self.rough.ask(queries)
        codes = question[0].codes.float()
        if self.priors is not None:
            extra = torch.zeros(len(codes), self.table.shape[2])
            extra[:, 0] = 1.0
            codes = torch.cat([codes, extra], 1)
        listed = min(max(count, _LISTED_PATTERNS), len(self))
        products, places = map(torch.from_numpy, self._ready().search(codes.contiguous().numpy(), listed))
        _fill(products, places, len(self))
        # The prior is among the products, with the temperature already in it.
        logits = self.rough.logits(question, [products])
        return Found(places, logits, self.sample.log_rest(question, len(self), places))


def _fill(products: Tensor, places: Tensor, count: int) -> None:
    """Put others where FAISS lists none, as it does where all score alike; they score as the last that is listed."""
    for row in (places < 0).any(1).nonzero().squeeze(1).tolist():
        here = places[row] >= 0
        left = torch.ones(count, dtype=torch.bool)
        left[places[row][here]] = False
        products[row][~here] = float(products[row][here].min()) if bool(here.any()) else 0.0
        places[row][~here] = left.nonzero().squeeze(1)[: int((~here).sum())]


def _levels(log_prior: Tensor) -> Tensor:
    levels = torch.linspace(0, 1, 2 * LEVELS - 1)[::2]
    return log_prior[:: 1 + len(log_prior) // 2**20].quantile(levels.to(log_prior))
