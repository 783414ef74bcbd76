"""A memory that predicts: rows of a table are its cases, and what they say about a new row is the answer."""

from __future__ import annotations

import math
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.cluster import MiniBatchKMeans
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from ahop._blocks import budget
from ahop._checks import as_device, choice, integer, within
from ahop._extras import require
from ahop._progress import Bar, progress
from ahop.estimators.cases import CaseMemory, CaseNetwork, Rows
from ahop.estimators.columns import Columns
from ahop.estimators.targets import as_targets
from ahop.estimators.training import Training, temperature
from ahop.nn.rows import EMBEDDINGS, RowEmbedding

if TYPE_CHECKING:
    import pandas

# With fewer rows none are held out.
_FEWEST_ROWS = 100
# How long it learns by default.
_PASSES, _STEPS = 8, 150
# Rows that k-means looks at.
_KMEANS_ROWS = 50_000


class Recalled(NamedTuple):
    """The cases that an answer rests on, ``(n, k)`` each, the weightiest first."""

    indices: np.ndarray
    """Which row of those that ``fit`` was given."""
    weights: np.ndarray
    """How much it counts; all cases together count 1."""
    targets: np.ndarray
    """What it was labelled."""

    def frame(self, table: pandas.DataFrame) -> pandas.DataFrame:
        """The cases themselves, ``n * k`` rows: their weights and targets, and the columns that they have.

        The index says which row asked, and which place the case has. A column of the table that is called ``weight``
        or ``target`` itself comes with ``_of_case`` after its name.

        Args:
            table: What ``fit`` was given.
        """
        require("pandas", extra="tables")
        import pandas

        if not hasattr(table, "iloc") or len(table) <= self.indices.max():
            kind = f"{len(table)} rows" if hasattr(table, "iloc") else type(table).__name__
            raise ValueError(f"table must be the DataFrame that fit was given, with all of its rows; got {kind}")
        asked, places = self.indices.shape
        index = pandas.MultiIndex.from_product([range(asked), range(places)], names=["row", "place"])
        used = pandas.DataFrame({"weight": self.weights.ravel(), "target": self.targets.ravel()}, index)
        cases = (
            table.iloc[self.indices.ravel()].set_axis(index).rename(columns={name: f"{name}_of_case" for name in used})
        )
        return pandas.concat([used, cases], axis=1)


class TableEstimator(BaseEstimator, metaclass=ABCMeta):
    """What the classifier and the regressor have in common."""

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
        self.similarity = similarity
        self.readout = readout
        self.cases = cases
        self.n_cases = n_cases
        self.embedding = embedding
        self.width = width
        self.frequency_scale = frequency_scale
        self.blocks = blocks
        self.dropout = dropout
        self.column_dropout = column_dropout
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.members = members
        self.epochs = epochs
        self.batch_size = batch_size
        self.cases_per_step = cases_per_step
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # --- learning ------------------------------------------------------------------------------------------

    def _fit(self, X: Any, targets: np.ndarray, weights: np.ndarray | None, strata: np.ndarray | None) -> None:  # noqa: N803
        """Learn from checked rows and targets ``(n, t)``; a held-out part has the same share of each stratum."""
        counted = np.arange(len(targets)) if weights is None else np.flatnonzero(weights)
        if len(counted) < 2:
            raise ValueError(f"X must have at least 2 rows of positive weight, got n_samples = {len(counted)}")
        draw = check_random_state(self.random_state)
        self.columns_ = Columns(self.scaling, self.categorical_features).fit(_take(X, counted))
        numbers, codes = self.columns_.transform(_take(X, counted))
        share = None if weights is None else torch.as_tensor(weights[counted], dtype=torch.float32)
        kept = torch.as_tensor(targets[counted], dtype=torch.float32)
        rows = Rows(torch.as_tensor(numbers), torch.as_tensor(codes), kept, share).to(as_device(self.device))
        folds = self._folds(len(counted), None if strata is None else strata[counted], draw)
        places = self._cases(rows, draw)
        self.case_indices_ = counted[places]
        chosen = torch.as_tensor(places, device=rows.numbers.device)
        stored = rows if self.cases == "all" else rows[chosen]
        self.memories_ = []
        # What the caller does with PyTorch's own numbers is left alone.
        with (
            torch.random.fork_rng(),
            torch.enable_grad(),
            progress("fit", self.members, show=self.verbose) as bar,
        ):
            for held in folds:
                torch.manual_seed(int(draw.randint(2**31)))
                self.memories_.append(self._member(rows, stored, held, chosen, bar))

    def _member(self, rows: Rows, stored: Rows, held: np.ndarray | None, places: Tensor, bar: Bar) -> CaseMemory:
        """One network, trained on all rows but those held out."""
        cases = None if self.cases == "all" else places
        shown = torch.ones(len(rows), dtype=torch.bool, device=places.device)
        kept = None
        if held is not None:
            kept = torch.as_tensor(held, device=places.device)
            # A few chosen cases are never held out.
            kept = kept if cases is None else kept[~torch.isin(kept, cases)]
            kept = kept if len(kept) else None
        if kept is not None:
            shown[kept] = False
        learned = shown.nonzero()[:, 0]
        looks = len(places) if self.readout == "mlp" else 0
        embedding = RowEmbedding(
            rows.numbers.shape[1],
            self.columns_.sizes,
            self.width,
            kind=self.embedding,
            spread=self.frequency_scale,
            blocks=self.blocks,
            dropout=self.dropout,
            column_dropout=self.column_dropout,
        )
        outputs = rows.targets.shape[1]
        network = CaseNetwork(embedding, self.similarity, outputs, classifies=self._classifies, cases=looks)
        network = network.float().to(places.device)
        batch = self._batch(len(learned))
        training = Training(
            epochs=self._passes(len(learned)),
            batch=batch,
            further=self.cases_per_step,
            rate=self.learning_rate * math.sqrt(batch / 1024),
            decay=self.weight_decay,
            patience=self.patience,
        )
        training.fit(network, rows, learned, kept, cases, bar)
        softened = 1.0
        if kept is not None and self._classifies:
            softened = temperature(CaseMemory(network, rows[learned if cases is None else cases]), rows[kept])
        return CaseMemory(network, stored, softened)

    def _cases(self, rows: Rows, draw: np.random.RandomState) -> np.ndarray:
        """Which rows the memory keeps."""
        count = min(self.n_cases, len(rows))
        if self.cases == "all":
            return np.arange(len(rows))
        if self.cases == "sampled":
            return np.sort(draw.choice(len(rows), count, replace=False))
        plain = RowEmbedding(rows.numbers.shape[1], self.columns_.sizes, kind="columns")
        most = min(_KMEANS_ROWS, budget() // (4 * plain.width), len(rows))
        looked = np.sort(draw.choice(len(rows), most, replace=False))
        count = min(count, most)
        vectors = plain(rows.numbers[looked].cpu(), rows.codes[looked].cpu()).numpy()
        clusters = MiniBatchKMeans(count, n_init=1, random_state=draw).fit(vectors)
        nearest = torch.cdist(torch.as_tensor(clusters.cluster_centers_), torch.as_tensor(vectors)).argmin(1)
        # Where all rows are alike, two of them.
        found = looked[np.unique(nearest.numpy())]
        return found if len(found) > 1 else looked[:2]

    def _folds(self, count: int, strata: np.ndarray | None, draw: np.random.RandomState) -> Iterator[np.ndarray | None]:
        """For each member, the rows held out; members take turns, so that together they learn from all."""
        if not self.validation_fraction or count < _FEWEST_ROWS:
            yield from [None] * self.members
            return
        turns = min(count, max(2, round(1 / self.validation_fraction)))
        # Of a class with fewer rows than there are turns some turns have none.
        fair = strata is not None and np.bincount(strata).max() >= turns
        kind = StratifiedKFold if fair else KFold
        for start in range(0, self.members, turns):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The least populated class", UserWarning)
                parts = kind(turns, shuffle=True, random_state=draw.randint(2**31)).split(np.zeros(count), strata)
                some = [held for (_, held), _ in zip(parts, range(start, self.members), strict=False)]
            # In any order: where not all are asked, the first are.
            yield from [draw.permutation(held) for held in some]

    def _batch(self, count: int) -> int:
        """Some thirty steps a pass, unless rows are few or very many."""
        return min(count, self.batch_size or min(1024, max(128, count // 32)))

    def _passes(self, count: int) -> int:
        return self.epochs or max(_PASSES, math.ceil(_STEPS * self._batch(count) / count))

    # --- answering -----------------------------------------------------------------------------------------

    @torch.no_grad()
    def _answers(self, rows: tuple[Tensor, Tensor], hidden: Sequence[int] = ()) -> np.ndarray:
        """The mean answer of the members, ``(n, t)``, with some columns hidden."""
        with progress("predict", len(self.memories_), show=self.verbose) as bar:
            answers = [memory.answer(memory.embed(*rows, hidden), bar) for memory in self.memories_]
        return torch.stack(answers).mean(0).cpu().double().numpy()

    @torch.no_grad()
    def recall(self, X: Any, k: int = 5) -> Recalled:  # noqa: N803
        """The cases that the answer to each row rests on.

        With ``readout="mlp"`` the weights say how alike row and case are; the answer is not their mean.

        Args:
            X: Rows, ``(n, columns)``.
            k: How many cases for each.
        """
        numbers, codes = self._rows(X)
        if integer(k, "k", 1) > len(self.case_indices_):
            raise ValueError(f"k must be between 1 and {len(self.case_indices_)}, the cases; got {k}")
        found: list[tuple[Tensor, Tensor]] = []
        for part in torch.arange(len(numbers)).split(max(1, budget() // (16 * len(self.case_indices_)))):
            parts = [memory.weights(memory.embed(numbers[part], codes[part])) for memory in self.memories_]
            best = torch.stack(parts).mean(0).topk(k)
            found.append((best.values, best.indices))
        weights, places = (torch.cat(some).cpu().numpy() for some in zip(*found, strict=True))
        indices = self.case_indices_[places]
        return Recalled(indices, weights, self.case_targets_[places])

    def explain(self, X: Any) -> Any:  # noqa: N803
        """How much each column mattered for the answer to each row, ``(n, columns)``; a DataFrame of a DataFrame.

        A column is hidden by giving it what the cases have on average. For a classifier the figure is by how much the
        log-probability of the predicted class is higher with the column than without; for a regressor, by how much
        the prediction is. It takes as long as a prediction for each column.
        """
        rows = self._rows(X)
        owners = self.columns_.owners
        answers = self._answers(rows)
        chosen = answers.argmax(1)
        mattered = np.zeros((len(answers), self.n_features_in_))
        for column in np.unique(owners):
            hidden = self._answers(rows, np.flatnonzero(owners == column).tolist())
            mattered[:, column] = self._difference(answers, hidden, chosen)
        if not hasattr(X, "iloc"):
            return mattered
        require("pandas", extra="tables")
        import pandas

        return pandas.DataFrame(mattered, X.index, X.columns)

    # --- what comes in -------------------------------------------------------------------------------------

    def _table(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """A DataFrame as it is, or a matrix of numbers (of anything where columns are named as categories)."""
        if hasattr(X, "iloc") and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2:
            if not X.columns.is_unique:
                raise ValueError(f"columns of X must have different names, got {list(X.columns)}")
            validate_data(self, X, skip_check_array=True, reset=reset)
            if not len(X) or not X.shape[1]:
                raise ValueError(f"X must have rows and columns, got shape {X.shape}")
            return X
        kind = "numeric" if isinstance(self.categorical_features, str) else None
        if kind is None and not hasattr(X, "dtype"):
            # Left to NumPy, a list with a word in it becomes words altogether, 1 and "1" alike.
            X = np.array(X, dtype=object)  # noqa: N806
        return validate_data(self, X, dtype=kind, ensure_all_finite="allow-nan", reset=reset)

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:  # noqa: N803
        """The table, a target for each row, and the weights if there are some."""
        self._check_settings()
        targets = as_targets(y, type(self).__name__)
        table = self._table(X, reset=True)
        check_consistent_length(table, targets)
        if sample_weight is None:
            return table, targets, None
        return table, targets, _check_sample_weight(sample_weight, table, ensure_non_negative=True)

    @staticmethod
    def _relative(weights: np.ndarray | None) -> np.ndarray | None:
        """Weights with a mean of 1 among those that count; one too small to tell from nothing counts nothing."""
        if weights is None:
            return None
        if not (weights >= 0).all() or not np.isfinite(weights).all():
            raise ValueError("weights of samples and classes must be finite and not negative")
        relative = weights / max(weights.max(), np.finfo(float).tiny)
        relative = relative / relative[relative > 0].mean() if relative.any() else relative
        return relative.astype(np.float32)

    def _rows(self, X: Any) -> tuple[Tensor, Tensor]:  # noqa: N803
        check_is_fitted(self)
        numbers, codes = self.columns_.transform(self._table(X, reset=False))
        return torch.as_tensor(numbers), torch.as_tensor(codes)

    def _check_settings(self) -> None:
        choice(self.readout, "readout", ("labels", "mlp"))
        choice(self.cases, "cases", ("all", "sampled", "kmeans"))
        choice(self.embedding, "embedding", EMBEDDINGS)
        if self.readout == "mlp" and self.cases == "all":
            raise ValueError(
                'cases must be "sampled" or "kmeans" for readout "mlp", which looks at the same ones always'
            )
        least = {"n_cases": 2, "width": 1, "members": 1, "cases_per_step": 1, "patience": 1, "blocks": 0}
        own = {name: 1 for name in ("epochs", "batch_size") if getattr(self, name) is not None}
        for name, bound in {**least, **own}.items():
            integer(getattr(self, name), name, bound)
        for name, low, high in (
            ("validation_fraction", 0, 0.5),
            ("dropout", 0, 0.99),
            ("column_dropout", 0, 0.99),
            ("learning_rate", 1e-12, 1e3),
            ("weight_decay", 0, 1e6),
            ("frequency_scale", 0, 1e6),
        ):
            within(getattr(self, name), name, low, high)

    def __getstate__(self) -> dict[str, Any]:
        # A file that was written beside a GPU can be read where there is none.
        state = super().__getstate__()
        if "memories_" in state:
            state = state | {"memories_": [memory.cpu() for memory in state["memories_"]]}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    _classifies: bool

    @abstractmethod
    def _difference(self, answers: np.ndarray, others: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """By how much answers ``(n, t)`` differ in what was chosen of each."""


def _take(table: Any, rows: np.ndarray) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
