"""A memory of cases: rows of a table, what is alike about them, and what they say about another row."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ahop._blocks import budget
from ahop._progress import Bar
from ahop.modulation import Kernel
from ahop.nn.rows import RowEmbedding
from ahop.similarity import Similarity

# How many cases are embedded and compared at a time when the memory answers.
_BLOCK = 8192
# The least that a readout leaves to a class.
_LEAST_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Rows:
    """Rows of a table: numbers ``(n, p)``, codes ``(n, c)``, targets ``(n, t)``, and weights ``(n,)`` or None."""

    numbers: Tensor
    codes: Tensor
    targets: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, chosen: Any) -> Rows:
        weights = None if self.weights is None else self.weights[chosen]
        return Rows(self.numbers[chosen], self.codes[chosen], self.targets[chosen], weights)

    def to(self, device: str | torch.device) -> Rows:
        """On another device."""
        weights = None if self.weights is None else self.weights.to(device)
        return Rows(self.numbers.to(device), self.codes.to(device), self.targets.to(device), weights)


class CaseNetwork(nn.Module):
    r"""What a memory of cases says about a row.

    .. math:: a_i = \beta\, \mathrm{sim}(e(\xi_i), e(x)) + \log w_i, \qquad
        y(x) = \sum_i \mathrm{softmax}(a)_i\, y_i \quad\text{or}\quad \mathrm{MLP}(\mathrm{LayerNorm}(a))

    Args:
        embedding: Of rows.
        similarity: A similarity, which is copied, its name, or ``"kernel"`` for dot products in a learned space.
        outputs: How many numbers a target has.
        classifies: Targets are classes, and answers log-probabilities; else both are values.
        cases: How many cases a perceptron looks at; 0 for the readout of their targets.
    """

    def __init__(
        self, embedding: RowEmbedding, similarity: Any, outputs: int, *, classifies: bool, cases: int = 0
    ) -> None:
        super().__init__()
        self.embedding, self.classifies = embedding, classifies
        self.kernel = Kernel(embedding.width) if isinstance(similarity, str) and similarity == "kernel" else None
        self.similarity = _similarity(similarity, embedding.width)
        # An embedding that learns finds the scale of scores by itself.
        self.log_beta = nn.Parameter(torch.tensor(0.0), requires_grad=embedding.kind == "columns")
        self.perceptron: nn.Module | None = None
        if cases:
            layers = nn.LayerNorm(cases), nn.Linear(cases, 128), nn.ReLU(), nn.Linear(128, outputs)
            self.perceptron = nn.Sequential(*layers)

    def embed(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Vectors ``(n, width)`` in the space where rows are compared."""
        return self.place(self.embedding(numbers, codes))

    def place(self, vectors: Tensor) -> Tensor:
        """Embedded rows in the space where they are compared."""
        return vectors if self.kernel is None else self.kernel(vectors)

    def scores(self, queries: Tensor, cases: Tensor, weights: Tensor | None) -> Tensor:
        """How alike embedded rows and cases are.

        Args:
            queries: Embedded rows, ``(Q, width)``.
            cases: Embedded cases, ``(N, width)``.
            weights: How much each case counts, ``(N,)``; None counts all alike.

        Returns:
            Scores ``(Q, N)``, with the log weights added.
        """
        table = self.similarity(cases, queries)
        if self.embedding.kind == "columns":
            table = self.log_beta.exp() * table
        return table if weights is None else table + weights.log()

    def forward(self, queries: Tensor, vectors: Tensor, cases: Rows, hidden: Tensor | None = None) -> Tensor:
        """Read answers out of the cases.

        Args:
            queries: Embedded rows, ``(Q, width)``.
            vectors: Embedded cases, ``(N, width)``.
            cases: The cases themselves, with their targets and weights.
            hidden: True where a query may not use a case, ``(Q, N)``; None hides none.

        Returns:
            Answers, ``(Q, outputs)``.
        """
        table = self.scores(queries, vectors, cases.weights)
        if self.perceptron is not None:
            return self.conclude(self.perceptron(table))
        if hidden is not None:
            table = table.masked_fill(hidden, -torch.inf)
        return self.conclude(table.softmax(1) @ cases.targets)

    def conclude(self, read: Tensor) -> Tensor:
        """What was read, as an answer."""
        if not self.classifies:
            return read
        return read.log_softmax(1) if self.perceptron is not None else read.clamp_min(_LEAST_PROBABILITY).log()

    def loss(self, answers: Tensor, rows: Rows) -> Tensor:
        """Minus the mean log-likelihood of the rows' targets, or their mean squared error."""
        targets = rows.targets.to(answers)
        losses = -(answers * targets).sum(1) if self.classifies else (answers - targets).square().sum(1)
        return losses.mean() if rows.weights is None else (losses * rows.weights).sum() / rows.weights.sum()


class CaseMemory:
    """A trained network and the cases that it reads from.

    Args:
        network: Trained.
        rows: The cases.
        temperature: Answers of a classifier are softened by it.
    """

    def __init__(self, network: CaseNetwork, rows: Rows, temperature: float = 1.0) -> None:
        network.requires_grad_(False).eval()
        # In float64 an answer does not depend, in its last digits, on the rows asked beside it. Large memories answer
        # in float32, for speed, and footprints too, since their kernels are made for it.
        small = len(rows) <= _BLOCK and not network.similarity.prefers_float32
        self.network = copy.deepcopy(network).double() if small else network
        self.rows, self.temperature = rows, temperature
        self._kept: list[Tensor] | None = None

    def embed(self, numbers: Tensor, codes: Tensor, hidden: Sequence[int] = ()) -> Tensor:
        """Rows in the space where they are compared.

        Args:
            numbers: The columns of numbers, ``(n, count)``.
            codes: The categorical columns as codes.
            hidden: Columns to marginalise out: they contribute what they contribute for cases on average.

        Returns:
            Vectors ``(n, width)``.
        """
        like, embedding = self.network.log_beta, self.network.embedding
        if hidden:
            # Of some of the cases, where they are very many.
            some = self.rows[:: -(-len(self.rows) // _BLOCK)]
            usual = embedding.parts(some.numbers.to(like), some.codes, hidden).mean(0)
        vectors = []
        # What is made of a number on the way is some 64 numbers.
        size = min(_BLOCK, max(1, budget() // (8 * 64 * (numbers.shape[1] + 1))))
        for part in torch.arange(len(numbers)).split(size):
            row = numbers[part].to(like), codes[part].to(like.device)
            added = embedding.add(*row)
            if hidden:
                added = added + (usual - embedding.parts(*row, hidden)).sum(1)
            vectors.append(self.network.place(embedding.mix(added)))
        return torch.cat(vectors)

    def answer(self, queries: Tensor, bar: Bar | None = None) -> Tensor:
        """Probabilities of classes or values, ``(Q, outputs)``, for rows in that space; the bar advances by one."""
        network = self.network
        if network.perceptron is not None:
            answers = network.conclude(torch.cat([network.perceptron(self._scores(q)) for q in self._some(queries)]))
            if bar is not None:
                bar.advance()
        else:
            answers = network.conclude(self._read(queries, bar))
        return (answers / self.temperature).softmax(1) if network.classifies else answers

    def weights(self, queries: Tensor) -> Tensor:
        """How much each case counts for each row, ``(Q, N)``."""
        return self._scores(queries).softmax(1)

    def _scores(self, queries: Tensor) -> Tensor:
        return torch.cat([self.network.scores(queries, vectors, rows.weights) for vectors, rows in self._blocks()], 1)

    def _read(self, queries: Tensor, bar: Bar | None) -> Tensor:
        """The readout of all targets, block by block of the cases with the softmax's sums carried along."""
        outputs = self.rows.targets.shape[1]
        best = queries.new_full((len(queries), 1), -torch.inf)
        total, read = torch.zeros_like(best), queries.new_zeros(len(queries), outputs)
        for vectors, rows in self._blocks():
            start = 0
            for some in self._some(queries):
                part = slice(start, start + len(some))
                start += len(some)
                table = self.network.scores(some, vectors, rows.weights)
                peak = torch.maximum(best[part], table.amax(1, keepdim=True))
                table = (table - peak).exp_()
                carry = (best[part] - peak).exp()
                total[part] = total[part] * carry + table.sum(1, keepdim=True)
                read[part] = read[part] * carry + table @ rows.targets.to(table)
                best[part] = peak
            if bar is not None:
                bar.advance(by=len(rows) / len(self.rows))
        return read / total

    def _some(self, queries: Tensor) -> tuple[Tensor, ...]:
        return queries.split(max(1, budget() // (4 * 8 * _BLOCK)))

    def _blocks(self) -> Iterator[tuple[Tensor, Rows]]:
        """The embedded cases, some at a time; kept for the next time if they are not too many."""
        width = self.network.embedding.width
        if self._kept is None and 8 * len(self.rows) * width <= budget():
            self._kept = [self.embed(part.numbers, part.codes) for part in self._parts()]
        for index, rows in enumerate(self._parts()):
            vectors = self.embed(rows.numbers, rows.codes) if self._kept is None else self._kept[index]
            yield vectors, rows

    def _parts(self) -> Iterator[Rows]:
        for start in range(0, len(self.rows), _BLOCK):
            yield self.rows[start : start + _BLOCK]

    def cpu(self) -> CaseMemory:
        """A copy without a GPU."""
        return CaseMemory(copy.deepcopy(self.network).cpu(), self.rows.to("cpu"), self.temperature)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": None}


def _similarity(similarity: Any, width: int) -> Similarity:
    if not isinstance(similarity, (Similarity, str)):
        raise ValueError(f"similarity must be a Similarity, its name, or 'kernel'; got {similarity!r}")
    # A copy: what the caller gave is not what learns.
    made = copy.deepcopy(Similarity.of("dot" if similarity == "kernel" else similarity, width))
    if isinstance(similarity, str):
        made.start_as("distance")
    return made
