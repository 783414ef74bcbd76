"""A classifier of bags: each holds some instances and has one label."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from ahop._checks import as_device, choice, whole, within
from ahop._progress import progress
from ahop.estimators.targets import as_classes, as_column, as_targets, is_missing
from ahop.estimators.whole import whole_or_not
from ahop.nn import BagNetwork, HopfieldPooling, MaxPooling, pad


class HopfieldBagClassifier(ClassifierMixin, BaseEstimator):
    r"""Learns to label bags of instances by Hopfield pooling (:class:`ahop.nn.BagNetwork`).

    Learned states :math:`q` look at the embedded instances :math:`z_j = f(x_j)` of a bag, and what they read out,
    beside the largest value of each feature, is classified:

    .. math:: p(y \mid X) = \mathrm{softmax}\Big(A \Big[\sum_j \mathrm{sep}_j\big(\mathrm{sim}(z_j, q)\big)\, z_j;\;
              \max_j z_j\Big]\Big)

    Bags come as a list of arrays ``(n_i, d)``; or as one array ``(n, d)`` with ``bags``, the bag of each row, in which
    case bags are in the order of their first rows. One array without ``bags`` holds bags of one instance each.

    Args:
        similarity, separation: Of the pooling layer, see :class:`ahop.nn.Hopfield`.
        width: Width of the embedding.
        num_heads: Heads of the pooling layer.
        quantity: How many learned states pool a bag.
        monotone: Keep to the standard assumption, that a bag is positive because of something in it: plain max pooling
            that can hold no instance against a bag. Two classes, of which the second is the positive one.
        scaling: ``"standard"`` or ``"quantile"``, learned on all instances of the training bags; None for none.
        epochs, batch_size, learning_rate, weight_decay, dropout: Of the training by AdamW, one cycle of the rate.
        random_state: Seed of initial weights, order and dropout.
        device: ``"auto"`` is a GPU where there is one.
        verbose: Show a progress bar, on a terminal, where something takes more than a second.

    Attributes:
        classes_: The labels.
        network_: The trained network.
        scaler_: The fitted scaling, or None.

    Shape:
        - X: bags of :math:`(n_i, d)`, or :math:`(n, d)` with ``bags`` :math:`(n,)`; y: one label a bag
        - ``predict``: :math:`(\text{bags},)`, ``predict_proba``: :math:`(\text{bags}, \text{classes})`

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import HopfieldBagClassifier
        >>> draw = np.random.default_rng(0)
        >>> bags = [draw.normal(size=(3, 2)) for _ in range(40)]
        >>> labels = [int(bag[:, 0].max() > 1) for bag in bags]
        >>> classifier = HopfieldBagClassifier(random_state=0).fit(bags, labels)
        >>> bool(classifier.score(bags, labels) > 0.9)
        True
    """

    def __init__(
        self,
        *,
        similarity: Any = "adaptive",
        separation: Any = "softmax",
        width: int = 64,
        num_heads: int = 4,
        quantity: int = 1,
        monotone: bool = False,
        scaling: str | None = "standard",
        epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.01,
        dropout: float = 0.3,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.similarity = similarity
        self.separation = separation
        self.width = width
        self.num_heads = num_heads
        self.quantity = quantity
        self.monotone = monotone
        self.scaling = scaling
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @whole_or_not
    def fit(self, X: Any, y: Any, bags: Any = None) -> HopfieldBagClassifier:  # noqa: N803
        """Learn from bags and a label for each."""
        self._check_settings()
        labels = as_targets(y, "HopfieldBagClassifier")
        rows, sizes = self._instances(X, bags, reset=True)
        if len(labels) != len(sizes):
            raise ValueError(f"y must be one label a bag, {len(sizes)}; got {len(labels)}")
        self.classes_, codes = as_classes(labels)
        if self.monotone and len(self.classes_) != 2:
            raise ValueError(f"monotone needs two classes, got {len(self.classes_)}")
        self.scaler_ = self._scaler(rows)
        rows = self._scaled(rows)
        # What the caller does with PyTorch's own numbers is left alone.
        with torch.random.fork_rng():
            torch.manual_seed(int(check_random_state(self.random_state).randint(2**31)))
            self.network_ = self._build().to(as_device(self.device))
            self._train(rows, sizes, torch.as_tensor(codes))
        return self

    def predict_proba(self, X: Any, bags: Any = None) -> np.ndarray:  # noqa: N803
        """The probability of each class, ``(bags, classes)``."""
        check_is_fitted(self)
        rows, sizes = self._instances(X, bags, reset=False)
        rows = self._scaled(rows)
        with torch.no_grad():
            parts = [self._probabilities(*batch) for batch, _ in self._batches(rows, sizes, torch.arange(len(sizes)))]
        return torch.cat(parts).cpu().numpy()

    def predict(self, X: Any, bags: Any = None) -> np.ndarray:  # noqa: N803
        """The likeliest class of each bag."""
        likely = self.predict_proba(X, bags)
        return self.classes_[likely.argmax(1)]

    def score(self, X: Any, y: Any, bags: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of bags whose class is found."""
        return float(accuracy_score(y, self.predict(X, bags), sample_weight=sample_weight))

    def _instances(self, X: Any, bags: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
        """All instances, those of a bag behind each other, and the size of each bag."""
        if _is_list_of_bags(X):
            if bags is not None:
                raise ValueError("bags must be None where X is a list of bags")
            some = [np.asarray(bag) for bag in X]
            for index, bag in enumerate(some):
                if bag.ndim != 2 or not len(bag) or bag.shape[1] != some[0].shape[-1]:
                    wanted = f"(n, {some[0].shape[-1]}), with at least one instance"
                    raise ValueError(f"bag {index} of X must have shape {wanted}; got {bag.shape}")
            bags = np.repeat(np.arange(len(some)), [len(bag) for bag in some])
            X = np.concatenate(some)  # noqa: N806
        rows = validate_data(self, X, dtype=np.float32, reset=reset)
        if bags is None:
            return rows, np.ones(len(rows), dtype=int)
        owner = as_column(bags, "bags")
        if len(owner) != len(rows):
            raise ValueError(f"bags must name the bag of each of {len(rows)} instances, got {len(owner)}")
        if any(is_missing(bag) for bag in owner):
            raise ValueError("bags must have no missing values")
        try:
            _, first, place, sizes = np.unique(owner, return_index=True, return_inverse=True, return_counts=True)
        except TypeError as error:
            raise ValueError(f"bags must be names of one kind: {error}") from error
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=int)
        rank[order] = np.arange(len(order))
        return rows[np.argsort(rank[place], kind="stable")], sizes[order]

    def _scaler(self, rows: np.ndarray) -> Any:
        if self.scaling is None:
            return None
        choice(self.scaling, "scaling", ("standard", "quantile"))
        count = min(100, len(rows))
        quantile = QuantileTransformer(n_quantiles=count, output_distribution="normal", random_state=0)
        return (StandardScaler() if self.scaling == "standard" else quantile).fit(rows)

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.scaler_ is None else self.scaler_.transform(rows).clip(-5, 5)

    def _build(self) -> BagNetwork:
        pooling: nn.Module
        if self.monotone:
            pooling = MaxPooling(self.width)
        else:
            pooling = HopfieldPooling(
                self.width,
                num_heads=self.num_heads,
                quantity=self.quantity,
                # Copied, so that what the caller gave is not what learns.
                similarity=copy.deepcopy(self.similarity),
                separation=copy.deepcopy(self.separation),
                pattern_size=self.width,
                pattern_projection_as_static=True,
                disable_out_projection=True,
                # It begins as the mean of a bag; a sharper choice has to be learned.
                scaling=0.02,
            )
        return BagNetwork(
            self.n_features_in_,
            pooling,
            width=self.width,
            outputs=1 if self.monotone else len(self.classes_),
            dropout=self.dropout,
            join_max=not self.monotone,
            monotone=self.monotone,
        )

    def _train(self, rows: np.ndarray, sizes: np.ndarray, labels: Tensor) -> None:
        optimizer = torch.optim.AdamW(self.network_.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        steps = self.epochs * -(-len(sizes) // self.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.learning_rate, total_steps=steps)
        self.network_.train()
        with progress("bags", self.epochs, show=self.verbose) as bar:
            for _ in range(self.epochs):
                for batch, chosen in self._batches(rows, sizes, torch.randperm(len(sizes))):
                    likely = self._probabilities(*batch).clamp_min(1e-12)
                    loss = nn.functional.nll_loss(likely.log(), labels[chosen].to(likely.device))
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(self.network_.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                bar.advance(f"loss {loss.item():.3f}")
        # In float64 an answer does not depend, in its last digits, on the bags that come with it.
        self.network_.double().eval()

    def _batches(
        self, rows: np.ndarray, sizes: np.ndarray, order: Tensor
    ) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor]]:
        """Bags in this order, some at a time, padded and on the network's device."""
        like = self.network_.head.weight
        parts = torch.as_tensor(rows).to(like.dtype).split(sizes.tolist())
        for chosen in order.split(self.batch_size):
            instances, padding = pad([parts[index] for index in chosen.tolist()])
            yield (instances.to(like.device), padding.to(like.device)), chosen

    def _probabilities(self, instances: Tensor, padding: Tensor) -> Tensor:
        logits = self.network_(instances, padding)
        if self.monotone:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        return logits.softmax(1)

    def _check_settings(self) -> None:
        for name in ("width", "num_heads", "quantity", "epochs", "batch_size"):
            whole(getattr(self, name), name, 1)
        for name, low, high in (("learning_rate", 1e-12, 1e3), ("weight_decay", 0, 1e6), ("dropout", 0, 0.99)):
            within(getattr(self, name), name, low, high)
        if self.width % self.num_heads:
            raise ValueError(f"width must divide by num_heads, {self.num_heads}; got {self.width}")

    def __getstate__(self) -> dict[str, Any]:
        # A file that was written beside a GPU can be read where there is none.
        state = super().__getstate__()
        return state | ({"network_": copy.deepcopy(self.network_).cpu()} if hasattr(self, "network_") else {})


def _is_list_of_bags(X: Any) -> bool:  # noqa: N803
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype == object and len(X) > 0 and np.ndim(X[0]) == 2)
    return isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 2
