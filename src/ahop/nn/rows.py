"""Rows of a table as vectors: every column is embedded, and the vector is the sum of what the columns contribute."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ahop._checks import choice, integer, share, within
from ahop.nn.linear import Linear, linear
from ahop.nn.start import reset

EMBEDDINGS = ("periodic", "linear", "columns")


class RowEmbedding(nn.Module):
    r"""Numbers and categories of a row to one vector.

    .. math:: e(x) = b + \sum_j W_j \varphi_j(x_j) + \sum_c E_c[x_c], \qquad
        \varphi_j(z) = \big[z, \mathrm{ReLU}(V_j\,[\cos 2\pi f_j z, \sin 2\pi f_j z] + b_j)\big]

    with learned frequencies :math:`f_j`, so that a column may matter in steps and bumps as it does in a tree. Then
    come, if asked for, residual blocks, which let columns act together before rows are compared.

    Args:
        numbers: How many numeric columns; they should be scaled.
        categories: For each further column, how many codes it has. Code 0 stands for "not known" and brings nothing.
        width: Width of the vector; with ``"columns"`` it follows from the columns.
        kind: ``"periodic"`` as above, ``"linear"`` with :math:`\varphi_j(z) = z`, or ``"columns"``: the numbers
            themselves and a one for each category, nothing learned.
        frequencies: How many for each numeric column.
        spread: Standard deviation of the frequencies at the start. Larger makes out finer steps.
        size: How many bumps :math:`\varphi_j` has.
        blocks: How many residual blocks.
        dropout: Inside the blocks.
        column_dropout: While learning, each column of a row is left out with this probability :math:`p`, and those that
            stay count :math:`1 / (1 - p)` times.

    Shape:
        numbers ``(n, p)`` and codes ``(n, c)`` to ``(n, width)``.

    Example:
        >>> embed = RowEmbedding(2, [3], width=8)
        >>> embed(torch.zeros(5, 2), torch.ones(5, 1, dtype=torch.long)).shape
        torch.Size([5, 8])
    """

    starts: Tensor
    weight: Tensor
    table: Tensor
    bias: Tensor

    def __init__(
        self,
        numbers: int,
        categories: Sequence[int] = (),
        width: int = 128,
        *,
        kind: str = "periodic",
        frequencies: int = 16,
        spread: float = 0.3,
        size: int = 8,
        blocks: int = 0,
        dropout: float = 0.0,
        column_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.column_dropout, dropout = share(column_dropout, "column_dropout"), share(dropout, "dropout")
        spread = within(spread, "spread", 0.0, float("inf"))
        self.kind, self.spread = choice(kind, "kind", EMBEDDINGS), spread
        self.count, self.sizes = integer(numbers, "numbers", 0), tuple(integer(n, "categories", 1) for n in categories)
        self.codes, width = sum(self.sizes), integer(width, "width", 1)
        frequencies, size = integer(frequencies, "frequencies", 1), integer(size, "size", 1)
        self.width = self.count + self.codes if kind == "columns" else width
        self.register_buffer("starts", torch.empty(len(self.sizes), dtype=torch.long), persistent=False)
        if kind == "columns":
            self.register_buffer("weight", torch.empty(self.width, self.count), persistent=False)
            self.register_buffer("table", torch.empty(self.codes, self.width), persistent=False)
            self.register_buffer("bias", torch.empty(self.width), persistent=False)
        else:
            if kind == "periodic":
                self.frequencies = nn.Parameter(torch.empty(self.count, frequencies))
                self.inner = nn.Parameter(torch.empty(self.count, 2 * frequencies, size))
                self.inner_bias = nn.Parameter(torch.empty(self.count, size))
            ends = self.count * (1 + size if kind == "periodic" else 1)
            self.weight = nn.Parameter(torch.empty(width, ends))
            self.table = nn.Parameter(torch.empty(self.codes, width))
            self.bias = nn.Parameter(torch.empty(width))
        self._begin()
        self.blocks = nn.ModuleList(_Block(self.width, dropout) for _ in range(integer(blocks, "blocks", 0)))

    def reset_parameters(self) -> None:
        """Begin anew."""
        self._begin()
        reset(self.blocks)

    @torch.no_grad()
    def _begin(self) -> None:
        self.starts.copy_(self.starts.new_tensor([0, *self.sizes]).cumsum(0)[:-1])
        if self.kind == "columns":
            eye = torch.eye(self.width, device=self.weight.device)
            self.weight.copy_(eye[: self.count].T)
            self.table.copy_(eye[self.count :])
            self.bias.zero_()
        else:
            if self.kind == "periodic":
                self.frequencies.normal_(std=self.spread)
                self.inner.normal_().div_(math.sqrt(self.inner.shape[1]))
                self.inner_bias.zero_()
            # As one linear map would begin whose inputs are the embedded numbers and a one for each category.
            bound = 1 / math.sqrt(max(1, self.weight.shape[1] + self.codes))
            for learned in (self.weight, self.table, self.bias):
                learned.uniform_(-bound, bound)
        self.table[self.starts] = 0.0

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        return self.mix(self.add(numbers, codes))

    def add(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """The sum of what all columns contribute, and the bias, before the blocks; ``(n, width)``."""
        self._check(numbers, codes)
        inner, shares = self._inner(numbers), None
        if self.training and self.column_dropout:
            kept = nn.functional.dropout(
                self.table.new_ones(len(codes), self.count + codes.shape[1]), self.column_dropout
            )
            inner, shares = inner * kept[:, : self.count, None], kept[:, self.count :]
        vectors = linear(inner.flatten(1), self.weight, self.bias)
        if codes.shape[1]:
            places = codes + self.starts
            known = nn.functional.embedding_bag(places, self.table, mode="sum", per_sample_weights=shares)
            vectors = vectors + known
        return vectors

    def parts(self, numbers: Tensor, codes: Tensor, columns: Sequence[int]) -> Tensor:
        """What each of these columns contributes to that sum.

        Args:
            numbers: The columns of numbers, ``(n, count)``.
            codes: The categorical columns as codes.
            columns: Which columns; categorical ones are counted behind those of numbers.

        Returns:
            Contributions, ``(n, len(columns), width)``: columns of numbers first.
        """
        first = [column for column in columns if column < self.count]
        then = [column - self.count for column in columns if column >= self.count]
        inner = self._inner(numbers, first)
        weight = self.weight.view(self.width, self.count, inner.shape[-1])[:, first]
        known = self.table[codes[:, then] + self.starts[then]]
        return torch.cat([torch.einsum("npe,wpe->npw", inner, weight), known], dim=1)

    def mix(self, vectors: Tensor) -> Tensor:
        """The residual blocks."""
        for block in self.blocks:
            vectors = vectors + block(vectors)
        return vectors

    @torch.no_grad()
    def settle(self, codes: Tensor) -> None:
        """After learning: a code that none of these rows has brings what theirs bring on average."""
        if self.kind == "columns":
            return
        for column, start, size in zip(codes.T, self.starts.tolist(), self.sizes, strict=True):
            own = self.table[start : start + size]
            own[column.bincount(minlength=size) == 0] = own[column].mean(0)

    def _inner(self, numbers: Tensor, columns: Sequence[int] | slice = slice(None)) -> Tensor:
        """What is mapped linearly of these columns of numbers, ``(n, columns, ...)``."""
        numbers = numbers[:, columns, None]
        if self.kind != "periodic":
            return numbers
        angles = 2 * math.pi * numbers * self.frequencies[columns]
        waves = torch.cat([angles.cos(), angles.sin()], -1)
        bumps = torch.relu(torch.einsum("npk,pke->npe", waves, self.inner[columns]) + self.inner_bias[columns])
        return torch.cat([numbers, bumps], -1)

    def _check(self, numbers: Tensor, codes: Tensor) -> None:
        if numbers.shape != (len(codes), self.count) or codes.shape != (len(numbers), len(self.sizes)):
            wanted = f"(n, {self.count}) and (n, {len(self.sizes)})"
            raise ValueError(f"numbers and codes must be {wanted}, got {tuple(numbers.shape)} and {tuple(codes.shape)}")
        # On a GPU to look would mean to wait.
        if not codes.is_cuda and bool(((codes < 0) | (codes >= codes.new_tensor(self.sizes))).any()):
            raise ValueError(f"codes must lie below the number of codes of their column, {self.sizes}, and not below 0")


class _Block(nn.Sequential):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__(
            nn.LayerNorm(width),
            Linear(width, 2 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            Linear(2 * width, width),
        )
