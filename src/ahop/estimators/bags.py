"""A classifier of bags: each holds some instances and has one label."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from ahop._checks import as_device, choice, integer, within
from ahop._cycle import cycle
from ahop._progress import progress
from ahop.estimators.atomic import atomic_fit
from ahop.estimators.targets import as_classes, as_column, as_targets, is_missing
from ahop.nn import AttentionPooling, BagNetwork, HopfieldPooling, MaxPooling, MeanPooling, pad

POOLINGS = ("hopfield", "mean", "max", "attention")
# A scaled value lies within plus and minus this.
_BOUNDS = {"standard": 5.0, "quantile": 3.0}


class HopfieldBagClassifier(ClassifierMixin, BaseEstimator):
    r"""Learns to label bags of instances by Hopfield pooling (:class:`ahop.nn.BagNetwork`).

    Learned states :math:`q` look at the embedded instances :math:`z_j = f(x_j)` of a bag, and what they read out,
    beside the largest value of each feature, is classified:

    .. math:: p(y \mid X) = \mathrm{softmax}\Big(A \Big[\sum_j \mathrm{sep}_j\big(\mathrm{sim}(z_j, q)\big)\, z_j;\;
              \max_j z_j\Big]\Big)

    Two classes are told apart by one number, the log odds of the second. Training is by AdamW with one cycle of the
    learning rate and gradients of norm 1 at most.

    Bags come as a list of arrays ``(n_i, d)``; or as one array ``(n, d)`` with ``bags``, the bag of each row, in which
    case bags are in the order of their first rows. One array without ``bags`` holds bags of one instance each.

    Args:
        pooling: ``"hopfield"``, or in its place the ``"mean"`` or ``"max"`` of each feature, or gated ``"attention"``.
        similarity, separation: Of Hopfield pooling, see :class:`ahop.nn.Hopfield`.
        join_max: Put the largest value of each feature beside what was pooled, unless that is what was pooled.
        width: Width of the embedding.
        num_heads: Heads of Hopfield pooling or attention.
        quantity: How many learned states pool a bag in Hopfield pooling.
        monotone: Keep to the standard assumption, that a bag is positive because of something in it: plain max pooling,
            whatever ``pooling`` says, that can hold no instance against a bag. Two classes, of which the second is the
            positive one.
        scaling: ``"standard"`` or ``"quantile"``, learned on all instances of the training bags; None for none.
        max_instances: Of a bag with more, each step of training sees so many, drawn anew; None for all.
        epochs: Passes over the bags; a few dozen bags may need more.
        batch_size, learning_rate, weight_decay, dropout: Of the training.
        random_state: Seed of initial weights, order and dropout.
        device: ``"auto"`` is a GPU where there is one.
        verbose: Show a progress bar, on a terminal, where something takes more than a second.

    Attributes:
        classes_: The labels.
        network_: The trained network.
        scaler_: The fitted scaling, or None.

    Shape:
        - X: bags of :math:`(n_i, d)`, or :math:`(n, d)` with ``bags`` :math:`(n,)`; y: one label a bag
        - ``predict``: :math:`(\text{bags},)`, ``predict_proba``: :math:`(\text{bags}, \text{classes})`,
          ``decision_function``: :math:`(\text{bags},)` for two classes, else :math:`(\text{bags}, \text{classes})`

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import HopfieldBagClassifier
        >>> draw = np.random.default_rng(0)
        >>> bags = [draw.normal(size=(3, 2)) for _ in range(40)]
        >>> labels = [int(bag[:, 0].max() > 1) for bag in bags]
        >>> classifier = HopfieldBagClassifier(epochs=100, random_state=0).fit(bags, labels)
        >>> bool(classifier.score(bags, labels) > 0.9)
        True
    """

    def __init__(
        self,
        *,
        pooling: str = "hopfield",
        similarity: Any = "adaptive",
        separation: Any = "softmax",
        join_max: bool = True,
        width: int = 64,
        num_heads: int = 4,
        quantity: int = 1,
        monotone: bool = False,
        scaling: str | None = "standard",
        max_instances: int | None = 128,
        epochs: int = 30,
        batch_size: int = 32,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.01,
        dropout: float = 0.3,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.pooling = pooling
        self.similarity = similarity
        self.separation = separation
        self.join_max = join_max
        self.width = width
        self.num_heads = num_heads
        self.quantity = quantity
        self.monotone = monotone
        self.scaling = scaling
        self.max_instances = max_instances
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, bags: Any = None) -> HopfieldBagClassifier:  # noqa: N803
        """Learn from bags and a label for each.

        Args:
            X: A sequence of bags, an array ``(n_i, d)`` each; or all instances in one array, with ``bags``.
            y: One label a bag.
            bags: The bag of each instance, if ``X`` is one array.
        """
        self._check_settings()
        labels = as_targets(y, "HopfieldBagClassifier")
        rows, sizes = self._instances(X, bags, reset=True)
        if len(labels) != len(sizes):
            raise ValueError(f"y must be one label a bag, {len(sizes)}; got {len(labels)}")
        self.classes_, codes = as_classes(labels)
        if self.monotone and len(self.classes_) != 2:
            raise ValueError(f"monotone needs two classes, got {len(self.classes_)}")
        self.scaler_ = self._scaler(rows)
        some = self._scaled(rows, sizes)
        # What the caller does with PyTorch's own numbers is left alone.
        with torch.random.fork_rng(), torch.enable_grad():
            torch.manual_seed(int(check_random_state(self.random_state).randint(2**31)))
            self.network_ = self._build().to(as_device(self.device))
            self._train(some, torch.as_tensor(codes))
        return self

    def decision_function(self, X: Any, bags: Any = None) -> np.ndarray:  # noqa: N803
        """What speaks for each class: the log odds of the second of two, else a log probability up to a constant."""
        logits = self._logits(X, bags)
        return (logits[:, 0] if len(self.classes_) == 2 else logits).numpy()

    def predict_proba(self, X: Any, bags: Any = None) -> np.ndarray:  # noqa: N803
        """The probability of each class, ``(bags, classes)``."""
        logits = self._logits(X, bags)
        if len(self.classes_) == 2:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        return logits.softmax(1).numpy()

    def predict(self, X: Any, bags: Any = None) -> np.ndarray:  # noqa: N803
        """The likeliest class of each bag."""
        likely = self.predict_proba(X, bags)
        return self.classes_[likely.argmax(1)]

    def score(self, X: Any, y: Any, bags: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of bags whose class is found.

        Args:
            X, bags: As in :meth:`fit`.
            y: One label a bag.
            sample_weight: How much each bag counts; None counts all alike.
        """
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
        count = min(100, len(rows))
        if self.scaling == "quantile":
            by_rank = QuantileTransformer(n_quantiles=count, output_distribution="normal", random_state=0)
            return by_rank.fit(rows)
        scaler = StandardScaler().fit(rows)
        # A feature that never varied says nothing, whatever it is in another bag.
        scaler.scale_ = np.where(np.ptp(rows, axis=0) == 0, np.inf, scaler.scale_)
        return scaler

    def _scaled(self, rows: np.ndarray, sizes: np.ndarray) -> tuple[Tensor, ...]:
        """The bags, of scaled instances."""
        if self.scaler_ is not None:
            bound = _BOUNDS[str(self.scaling)]
            rows = self.scaler_.transform(rows).clip(-bound, bound)
        return torch.as_tensor(rows, dtype=torch.float32).split(sizes.tolist())

    def _build(self) -> BagNetwork:
        largest = self.monotone or self.pooling == "max"
        return BagNetwork(
            self.n_features_in_,
            MaxPooling(self.width) if largest else self._pooling(),
            width=self.width,
            outputs=1 if len(self.classes_) == 2 else len(self.classes_),
            dropout=self.dropout,
            join_max=self.join_max and not largest,
            monotone=self.monotone,
        )

    def _pooling(self) -> nn.Module:
        if self.pooling == "mean":
            return MeanPooling(self.width)
        if self.pooling == "attention":
            return AttentionPooling(self.width, self.num_heads)
        # It reads out the embedded instances themselves and begins as their mean: a sharper choice has to be learned.
        # With projected readouts or a usual beta, a few dozen bags are learned by heart.
        return HopfieldPooling(
            self.width,
            num_heads=self.num_heads,
            quantity=self.quantity,
            # Copied, so that what the caller gave is not what learns.
            similarity=copy.deepcopy(self.similarity),
            separation=copy.deepcopy(self.separation),
            pattern_size=self.width,
            pattern_projection_as_static=True,
            disable_out_projection=True,
            scaling=0.02,
        )

    def _train(self, bags: Sequence[Tensor], labels: Tensor) -> None:
        optimizer = torch.optim.AdamW(self.network_.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        steps = self.epochs * math.ceil(len(bags) / self.batch_size)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cycle(step, steps))
        self.network_.train()
        with progress("bags", self.epochs, show=self.verbose) as bar:
            for _ in range(self.epochs):
                for chosen in torch.randperm(len(bags)).split(self.batch_size):
                    logits = self._answers([_some(bags[index], self.max_instances) for index in chosen.tolist()])
                    loss = self._loss(logits, labels[chosen].to(logits.device))
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(self.network_.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                if not math.isfinite(loss.item()):
                    raise ValueError(f"training diverged, its loss is {loss.item()}; try a smaller learning_rate")
                bar.advance(f"loss {loss.item():.3f}")
        # In float64 an answer does not depend, in its last digits, on the bags that come with it.
        self.network_.double().eval()

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Minus the mean log-likelihood of the labels."""
        if len(self.classes_) == 2:
            return nn.functional.binary_cross_entropy_with_logits(logits[:, 0], labels.to(logits.dtype))
        return nn.functional.cross_entropy(logits, labels)

    def _answers(self, bags: Sequence[Tensor]) -> Tensor:
        """What the network says of some bags, on its device."""
        like = self.network_.head.weight
        instances, padding = pad(bags)
        return self.network_(instances.to(like), padding.to(like.device))

    @torch.no_grad()
    def _logits(self, X: Any, bags: Any) -> Tensor:  # noqa: N803
        """What the network says of all bags, some at a time."""
        check_is_fitted(self)
        some = self._scaled(*self._instances(X, bags, reset=False))
        parts = range(0, len(some), self.batch_size)
        return torch.cat([self._answers(some[start : start + self.batch_size]) for start in parts]).cpu()

    def _check_settings(self) -> None:
        choice(self.pooling, "pooling", POOLINGS)
        if self.scaling is not None:
            choice(self.scaling, "scaling", tuple(_BOUNDS))
        for name in ("width", "num_heads", "quantity", "epochs", "batch_size"):
            integer(getattr(self, name), name, 1)
        if self.max_instances is not None:
            integer(self.max_instances, "max_instances", 1)
        for name, low, high in (("learning_rate", 1e-12, 1e3), ("weight_decay", 0, 1e6), ("dropout", 0, 0.99)):
            within(getattr(self, name), name, low, high)
        if self.pooling == "hopfield" and not self.monotone and self.width % self.num_heads:
            raise ValueError(f"width must be divisible by num_heads, {self.num_heads}; got {self.width}")

    def __getstate__(self) -> dict[str, Any]:
        # A file that was written beside a GPU can be read where there is none.
        state = super().__getstate__()
        return state | ({"network_": copy.deepcopy(self.network_).cpu()} if hasattr(self, "network_") else {})


def _is_list_of_bags(X: Any) -> bool:  # noqa: N803
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype == object and len(X) > 0 and np.ndim(X[0]) == 2)
    return isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 2


def _some(bag: Tensor, most: int | None) -> Tensor:
    """The bag, or so many of its instances, drawn at random."""
    return bag if most is None or len(bag) <= most else bag[torch.randperm(len(bag))[:most]]
