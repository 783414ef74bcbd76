"""How a memory of cases learns: by what the other cases say about each row."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from ahop._cycle import cycle
from ahop._progress import Bar
from ahop.estimators.cases import CaseMemory, CaseNetwork, Rows

# After a pass no more held-out rows are asked, and no more cases seen, than this.
_EVALUATED_ROWS = 8192
# So many pairs of held-out row and case say which temperature is right.
_TEMPERATURE_PAIRS = 500_000_000
_PRIOR_ROWS = 5.0


@dataclass(frozen=True)
class Training:
    """AdamW with one cycle of the learning rate, the best pass over the rows kept.

    Attributes:
        epochs: Passes over the rows.
        batch: Rows that learn in a step.
        further: Other cases, drawn for each step, that these rows look at; their own batch they see besides.
        rate, decay: Learning rate at its height, and weight decay.
        patience: Passes without gain after which it ends.
    """

    epochs: int
    batch: int
    further: int
    rate: float
    decay: float
    patience: int

    def fit(
        self,
        network: CaseNetwork,
        rows: Rows,
        learned: Tensor,
        held: Tensor | None,
        cases: Tensor | None,
        bar: Bar,
    ) -> None:
        """Train the network.

        Args:
            network: To train.
            rows: All there are.
            learned: Which to learn from.
            held: Which to choose the best pass by; None takes the last.
            cases: Which are cases; None for those that are learned from, of which each step sees some.
            bar: Advances by one in all.
        """
        optimizer = torch.optim.AdamW(network.parameters(), self.rate, weight_decay=self.decay)
        steps = self.epochs * math.ceil(len(learned) / self.batch)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cycle(step, steps))
        best, waited, kept = math.inf, 0, copy.deepcopy(network.state_dict())
        shown = learned[torch.randperm(len(learned))[:_EVALUATED_ROWS]] if cases is None else cases
        note = ""
        for _ in range(self.epochs):
            network.train()
            order = learned[torch.randperm(len(learned)).to(learned.device)]
            for start in range(0, len(order), self.batch):
                loss = self._loss(network, rows, order, start, cases)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                bar.advance(note, by=1 / steps)
            if not math.isfinite(loss.item()):
                raise ValueError(f"training diverged, its loss is {loss.item()}; try a smaller learning_rate")
            if held is not None:
                found = float(_held_out_loss(network, rows[held[:_EVALUATED_ROWS]], rows[shown]))
                best, waited = (found, 0) if found < best else (best, waited + 1)
                if not waited:
                    kept = copy.deepcopy(network.state_dict())
            note = f"loss {loss.item():.3f}" if held is None else f"held-out loss {best:.4f}"
            if waited >= self.patience:
                break
        # What a training that ended early left out.
        bar.advance(note, by=1 - schedule.last_epoch / steps)
        if held is not None:
            network.load_state_dict(kept)
        network.embedding.settle(rows.codes[learned])

    def _loss(self, network: CaseNetwork, rows: Rows, order: Tensor, start: int, cases: Tensor | None) -> Tensor:
        """Of a batch, from this place in the order on: its rows see each other and some others, or the cases.

        No row's own label has a say in what is read out for it.
        """
        # Behind the last come the first, so that batches are of one size.
        batch = order[torch.arange(start, start + self.batch, device=order.device) % len(order)]
        if cases is None:
            rest = len(order) - len(batch)
            drawn = torch.randint(max(1, rest), (min(self.further, rest),), device=order.device)
            others = order[(start + len(batch) + drawn) % len(order)]
            chosen, first = torch.cat([batch, others]), 0
            hidden = torch.eye(len(batch), len(chosen), dtype=torch.bool, device=batch.device)
        else:
            chosen, first = torch.cat([batch, cases]), len(batch)
            hidden = batch[:, None] == cases
        some = rows[chosen]
        vectors = network.embed(some.numbers, some.codes)
        answers = network(vectors[: len(batch)], vectors[first:], some[first:], hidden)
        return network.loss(answers, some[: len(batch)])


@torch.no_grad()
def _held_out_loss(network: CaseNetwork, held: Rows, cases: Rows) -> Tensor:
    network.eval()
    vectors = network.embed(cases.numbers, cases.codes)
    parts = torch.arange(len(held)).split(512)
    answers = [network(network.embed(held.numbers[part], held.codes[part]), vectors, cases) for part in parts]
    return network.loss(torch.cat(answers), held)


@torch.no_grad()
def temperature(memory: CaseMemory, held: Rows) -> float:
    """By what to soften a classifier's log-probabilities so that held-out rows are likeliest."""
    held = held[: max(500, _TEMPERATURE_PAIRS // len(memory.rows))]
    likely = memory.answer(memory.embed(held.numbers, held.codes)).clamp_min(1e-12).log()

    def loss(log_temperature: float) -> float:
        found = memory.network.loss((likely / math.exp(log_temperature)).log_softmax(1), held)
        # As if a few more rows had said that nothing is to be changed: a handful of held-out rows proves little.
        return float(found) + _PRIOR_ROWS * log_temperature**2 / len(held)

    return math.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x)
