"""A classifier for tables: the cases that are like a row say what class it is of."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight

from ahop.estimators.atomic import atomic_fit
from ahop.estimators.tables import TableEstimator
from ahop.estimators.targets import as_classes


class HopfieldClassifier(ClassifierMixin, TableEstimator):
    r"""Classifies a row by the cases that are like it.

    Training rows are stored. A row is embedded (:class:`ahop.nn.RowEmbedding`), compared with all of them, and the
    class probabilities are what the cases say, each as loud as it is alike:

    .. math:: p(y \mid x) = \sum_i \mathrm{softmax}_i\big(\mathrm{sim}(e(\xi_i), e(x)) + \log w_i\big)\, [y_i = y]

    with :math:`w_i` the weight of a case, by its sample and its class. Embedding and similarity are learned so that the
    other cases of a step predict each row. A part of the rows is held out, to choose the best pass over the others and
    a temperature :math:`T` that calibrates the probabilities, which become :math:`\propto p^{1/T}`. Those of several
    members are averaged.

    Columns may be numbers or categories, with values missing, straight from a DataFrame.

    Args:
        similarity: ``"euclidean"``, ``"distance"``, ``"dot"`` (m-hop), ``"kernel"`` (k2-hop: the dot product after a
            learned linear map), ``"adaptive"`` (a-hop: learned weights for footprints; choose a smaller width),
            ``"likelihood"``, any other by name, or an instance.
        readout: ``"labels"`` as above, or ``"mlp"``: the paper's :math:`\mathrm{MLP}(\mathrm{LayerNorm}(scores))`.
        cases: What is stored: ``"all"`` rows; or ``n_cases`` of them, ``"sampled"`` at random or nearest to the
            centres of ``"kmeans"``.
        n_cases: How many, unless all.
        embedding: ``"periodic"``, ``"linear"``, or ``"columns"``: rows are compared column by column, as they are.
        width: Of the embedding; that of ``"columns"`` has its own.
        frequency_scale: Of the periodic embedding at the start; larger makes out finer steps in a column.
        blocks, dropout: Residual blocks of the embedding, and the dropout in them.
        column_dropout: While learning, each column of a row is left out with this probability; for many weak columns.
        scaling: Of numbers: ``"quantile"``, ``"standard"`` or None.
        categorical_features: ``"from_dtype"``: DataFrame columns that are no numbers; or columns, by name or place.
        members: How many networks to train, each with another part held out, and to average.
        class_weight: ``"balanced"``, or a dictionary from class to weight.
        epochs: Passes over the rows; None takes 8, or as many as make 150 steps.
        batch_size: Rows in a step; None takes what makes some thirty steps a pass, from 128 to 1,024.
        cases_per_step: How many cases, drawn anew, the rows of a step look at besides each other.
        learning_rate: Of AdamW at the height of its cycle, for a batch of 1,024; it goes with the root of the batch.
        weight_decay: Of AdamW.
        validation_fraction: Part that is held out, rounded to one in two, three, ...; 0 for none. Of fewer than 100
            rows none is.
        patience: Passes without gain on that part after which training ends.
        random_state: Seed of all that is drawn.
        device: ``"auto"`` is a GPU where there is one.
        verbose: Show a progress bar, on a terminal, where something takes more than a second.

    Attributes:
        classes_: The labels.
        columns_: How columns become numbers and codes.
        case_indices_: Which rows of the training table are cases.
        case_targets_: What they are labelled.
        memories_: The trained members.

    Shape:
        - X: :math:`(n, \text{columns})`, y: :math:`(n,)`
        - ``predict``: :math:`(n,)`, ``predict_proba``: :math:`(n, \text{classes})`
        - ``recall``: :math:`(n, k)` each, ``explain``: :math:`(n, \text{columns})`

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from ahop.estimators import HopfieldClassifier
        >>> flowers, kinds = load_iris(return_X_y=True)
        >>> classifier = HopfieldClassifier(random_state=0).fit(flowers, kinds)
        >>> bool(classifier.score(flowers, kinds) > 0.9)
        True
        >>> classifier.recall(flowers[:1], k=3).targets
        array([[0, 0, 0]])
        >>> classifier.explain(flowers[:1]).shape
        (1, 4)
    """

    def __init__(
        self,
        *,
        similarity: Any = "euclidean",
        readout: str = "labels",
        cases: str = "all",
        n_cases: int = 256,
        embedding: str = "periodic",
        width: int = 128,
        frequency_scale: float = 0.3,
        blocks: int = 0,
        dropout: float = 0.0,
        column_dropout: float = 0.0,
        scaling: str | None = "quantile",
        categorical_features: Any = "from_dtype",
        members: int = 1,
        class_weight: Any = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        cases_per_step: int = 2048,
        learning_rate: float = 1e-2,
        weight_decay: float = 1e-4,
        validation_fraction: float = 0.2,
        patience: int = 5,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity=similarity,
            readout=readout,
            cases=cases,
            n_cases=n_cases,
            embedding=embedding,
            width=width,
            frequency_scale=frequency_scale,
            blocks=blocks,
            dropout=dropout,
            column_dropout=column_dropout,
            scaling=scaling,
            categorical_features=categorical_features,
            members=members,
            epochs=epochs,
            batch_size=batch_size,
            cases_per_step=cases_per_step,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            validation_fraction=validation_fraction,
            patience=patience,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HopfieldClassifier:  # noqa: N803
        """Store rows and their classes, and learn what is alike; a row of weight 2 counts as two.

        Args:
            X: The table, ``(n, columns)``.
            y: The class of each row.
            sample_weight: How much each row counts; None counts all alike.
        """
        table, labels, weights = self._checked(X, y, sample_weight)
        self.classes_, codes = as_classes(labels)
        if self.class_weight is not None:
            own = compute_sample_weight(self.class_weight, labels)
            weights = own if weights is None else weights * own
        self._fit(table, np.eye(len(self.classes_))[codes], self._relative(weights), codes)
        self.case_targets_ = labels[self.case_indices_]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probability of each class, ``(n, classes)``."""
        return self._answers(self._rows(X))

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The likeliest class of each row."""
        likely = self.predict_proba(X)
        return self.classes_[likely.argmax(1)]

    _classifies = True

    def _difference(self, answers: np.ndarray, others: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        rows = np.arange(len(chosen))
        return np.log(answers[rows, chosen]) - np.log(others[rows, chosen])
