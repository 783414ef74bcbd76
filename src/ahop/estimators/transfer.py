"""Calibration transfer: what a second instrument measures, as the first would have measured it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ahop._checks import integer
from ahop._progress import progress
from ahop.estimators.atomic import atomic_fit
from ahop.memories import BayesianHopfield
from ahop.similarity import Correlated, Moved

# Strengths of ridge regression that are tried, in units of the largest variance.
_STRENGTHS = np.logspace(-8, 1, 10)
# Hidden causes that are tried, and folds that judge.
_RANKS, _FOLDS = (1, 4, 16), 5
_TINY = 1e-9


class _Transfer(TransformerMixin, BaseEstimator):
    """Rows of the second instrument in, rows as the first would have measured them out."""

    def _pairs(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
        """Rows of the same samples by the second and by the first instrument."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        rows, wanted = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        return rows, wanted.astype(np.float64).reshape(len(rows), -1)

    def _rows(self, X: Any) -> np.ndarray:  # noqa: N803
        check_is_fitted(self)
        rows: np.ndarray = validate_data(self, X, dtype=np.float64, reset=False)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


class DirectStandardization(_Transfer):
    r"""Direct standardisation: every channel of the first instrument from all channels of the second.

    .. math:: \hat y = \bar y + (x - \bar x) F, \qquad F = (X^\top X + \alpha I)^{-1} X^\top Y

    (Wang, Veltkamp and Kowalski, 1991), by ridge regression, of which leave-one-out errors choose the strength.

    Attributes:
        coef_: F, ``(q, d)``.
        mean_, target_mean_: Of either instrument, ``(q,)`` and ``(d,)``.

    Shape:
        X: :math:`(n, q)` of the second instrument; y: :math:`(n, d)` of the first; ``transform``: :math:`(n, d)`.

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import DirectStandardization
        >>> first = np.random.default_rng(0).normal(size=(40, 5))
        >>> second = first @ np.triu(np.ones((5, 5))) + 3
        >>> transfer = DirectStandardization().fit(second[:20], first[:20])
        >>> bool(np.abs(transfer.transform(second[20:]) - first[20:]).max() < 1e-3)
        True
    """

    @atomic_fit
    def fit(self, X: Any, y: Any) -> DirectStandardization:  # noqa: N803
        """Learn from samples that both instruments measured: X by the second, y by the first."""
        rows, wanted = self._pairs(X, y)
        self.mean_, self.target_mean_ = rows.mean(0), wanted.mean(0)
        self.coef_ = _ridge((rows - self.mean_)[None], (wanted - self.target_mean_)[None])[0]
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Rows as the first instrument would have measured them."""
        return self.target_mean_ + (self._rows(X) - self.mean_) @ self.coef_


class PiecewiseDirectStandardization(_Transfer):
    r"""Piecewise direct standardisation: every channel from the same one of the second instrument and its neighbours.

    .. math:: \hat y_j = \bar y_j + (x_{W_j} - \bar x_{W_j})\, f_j

    (Wang, Veltkamp and Kowalski, 1991), with a ridge regression for each channel j on the window :math:`W_j` around it.
    A window of one channel is slope and bias correction. Channels must be in order, and both instruments cover the
    same range; where one has more of them, channels go by their place in it.

    Args:
        window: How many channels, an odd number.

    Attributes:
        coef_: f, ``(d, window)``.
        mean_, target_mean_: Of either instrument, ``(q,)`` and ``(d,)``.

    Shape:
        X: :math:`(n, q)` of the second instrument; y: :math:`(n, d)` of the first; ``transform``: :math:`(n, d)`.

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import PiecewiseDirectStandardization
        >>> first = np.random.default_rng(0).normal(size=(40, 5))
        >>> second = first * [1.0, 2.0, 3.0, 4.0, 5.0] + 3
        >>> transfer = PiecewiseDirectStandardization(window=1).fit(second[:20], first[:20])
        >>> bool(np.abs(transfer.transform(second[20:]) - first[20:]).max() < 1e-3)
        True
    """

    def __init__(self, window: int = 7) -> None:
        self.window = window

    @atomic_fit
    def fit(self, X: Any, y: Any) -> PiecewiseDirectStandardization:  # noqa: N803
        """Learn from samples that both instruments measured: X by the second, y by the first."""
        if integer(self.window, "window", 1) % 2 == 0:
            raise ValueError(f"window must be an odd number of channels, got {self.window}")
        rows, wanted = self._pairs(X, y)
        self.mean_, self.target_mean_ = rows.mean(0), wanted.mean(0)
        windows = self._windows(rows - self.mean_)
        self.coef_ = _ridge(windows, (wanted - self.target_mean_).T[..., None])[..., 0]
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Rows as the first instrument would have measured them."""
        windows = self._windows(self._rows(X) - self.mean_)
        return self.target_mean_ + np.einsum("dnw,dw->nd", windows, self.coef_)

    def _windows(self, rows: np.ndarray) -> np.ndarray:
        """What each channel of the first instrument looks at, ``(d, n, window)``; nought beyond the ends."""
        reach = self.window // 2
        wide = np.pad(rows, ((0, 0), (reach, reach)))
        places = np.linspace(0, rows.shape[1] - 1, len(self.target_mean_)).round().astype(int)
        return wide[:, places[:, None] + np.arange(self.window)].transpose(1, 0, 2)


class CalibrationTransfer(_Transfer):
    r"""The transfer between two instruments that errs least on samples that were held out.

    Tried are: nothing, slope and bias of each channel, piecewise direct standardisation, direct standardisation, and
    what a memory that has learned the second instrument as hidden causes restores
    (:meth:`ahop.BayesianHopfield.restore`), with one such cause or several. Each is cross-validated on the pairs,
    and the one of the least root mean square error,

    .. math:: \mathrm{RMSECV} = \sqrt{\operatorname{mean}_{i,j} (\hat y_{ij} - y_{ij})^2},

    is learned again from all of them. Folds share no sample of the first instrument. Where one instrument has more
    channels, nothing is no choice, and the memory learns a map between the two.

    Args:
        window: Of piecewise direct standardisation.
        random_state: For the folds, a whole number.
        verbose: Whether to show progress when it takes long.

    Attributes:
        rmsecv_: The error of each transfer that was tried, in the units of y.
        chosen_: The name of the one that was chosen.
        transfer_: That transfer, as it was learned from all pairs.

    Shape:
        X: :math:`(n, q)` of the second instrument; y: :math:`(n, d)` of the first; ``transform``: :math:`(n, d)`.

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import CalibrationTransfer
        >>> first = np.random.default_rng(0).normal(size=(40, 3)).cumsum(1)
        >>> second = 1.2 * first + 3
        >>> transfer = CalibrationTransfer().fit(second[:3], first[:3])
        >>> list(transfer.rmsecv_)[:4], transfer.rmsecv_["none"] > 2
        (['none', 'slope and bias', 'PDS', 'DS'], True)
        >>> bool(np.abs(transfer.transform(second[3:]) - first[3:]).max() < 0.01)
        True
    """

    def __init__(self, *, window: int = 7, random_state: int = 0, verbose: bool = False) -> None:
        self.window = window
        self.random_state = random_state
        self.verbose = verbose

    @atomic_fit
    def fit(self, X: Any, y: Any, library: Any = None) -> CalibrationTransfer:  # noqa: N803
        """Choose among all transfers, and learn the best from all pairs.

        Args:
            X: Samples that both instruments measured, by the second.
            y: The same by the first.
            library: Other samples by the first alone, ``(N, d)``: they tell a memory what samples are like. Rows that
                are in y are left out: a pair that judges must be new to what it judges.
        """
        rows, wanted = self._pairs(X, y)
        others = wanted[:0] if library is None else check_array(library, dtype=np.float64, input_name="library")
        if others.shape[1] != wanted.shape[1]:
            raise ValueError(f"library must have {wanted.shape[1]} columns, as y has; got {others.shape[1]}")
        paired = {row.tobytes() for row in wanted}
        others = others[[row.tobytes() not in paired for row in others]]
        samples = np.unique(wanted, axis=0, return_inverse=True)[1].ravel()
        count = int(samples.max()) + 1
        if count < 2:
            raise ValueError("y must have at least two different rows, for one to be held out; got 1 sample")
        folds = GroupKFold(min(_FOLDS, count), shuffle=True, random_state=self.random_state)
        splits = list(folds.split(rows, groups=samples))
        # As many hidden causes as the fewest samples that are learned from can tell.
        most = min(rows.shape[1], *(len(np.unique(samples[learn])) - 1 for learn, _ in splits))
        tried = self._transfers(rows.shape[1] == wanted.shape[1], most, others)
        self.rmsecv_: dict[str, float] = {}
        with progress("calibration transfer", len(tried), show=self.verbose) as bar:
            for name, transfer in tried.items():
                bar.advance(name, by=0)
                self.rmsecv_[name] = _cross_validated(transfer, rows, wanted, splits)
                bar.advance(name)
        self.chosen_ = min(self.rmsecv_, key=lambda name: self.rmsecv_[name])
        self.transfer_ = clone(tried[self.chosen_]).fit(rows, wanted)
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Rows as the first instrument would have measured them, by the transfer that was chosen."""
        found: np.ndarray = self.transfer_.transform(self._rows(X))
        return found

    def _transfers(self, same_width: bool, most: int, library: np.ndarray) -> dict[str, Any]:
        """What is tried, simplest first."""
        found: dict[str, Any] = {"none": FunctionTransformer()} if same_width else {}
        found["slope and bias"] = PiecewiseDirectStandardization(window=1)
        found["PDS"] = PiecewiseDirectStandardization(window=self.window)
        found["DS"] = DirectStandardization()
        if not same_width:
            return {**found, "b-hop, a map": _Restored(0, library)}
        for causes in sorted({min(causes, most) for causes in _RANKS} - {0}):
            found[f"b-hop, {causes} hidden cause{'s' * (causes > 1)}"] = _Restored(causes, library)
        return found


class _Restored(TransformerMixin, BaseEstimator):
    """What a memory restores that knows the pairs, with so many hidden causes or, for none, a map."""

    def __init__(self, hidden_causes: int, library: np.ndarray) -> None:
        self.hidden_causes = hidden_causes
        self.library = library

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Restored:  # noqa: N803
        patterns, origins = np.unique(y, axis=0, return_inverse=True)
        stored, queries = torch.tensor(np.concatenate([patterns, self.library])), torch.tensor(X)
        width, causes = X.shape[1], self.hidden_causes
        likelihood = Correlated(width, causes) if causes else Moved(y.shape[1], width)
        likelihood.double().fit(stored, queries, torch.from_numpy(origins.ravel()))
        self.memory_ = BayesianHopfield(stored, similarity=likelihood)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return self.memory_.restore(torch.tensor(X)).numpy()


def _cross_validated(transfer: Any, rows: np.ndarray, wanted: np.ndarray, splits: list[Any]) -> float:
    """The root mean square error of rows that a transfer has not learned from."""
    squares = 0.0
    for learn, judge in splits:
        found = clone(transfer).fit(rows[learn], wanted[learn]).transform(rows[judge])
        squares += float(np.square(found - wanted[judge]).sum())
    return (squares / wanted.size) ** 0.5


def _ridge(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Many ridge regressions at once, each of the strength with the least leave-one-out error.

    Args:
        rows: Centred, ``(B, n, p)``.
        wanted: Centred, ``(B, n, t)``.

    Returns:
        Coefficients, ``(B, p, t)``.
    """
    left, values, right = np.linalg.svd(rows, full_matrices=False)
    squares = np.square(values)
    # Rows that do not vary have no coefficients.
    largest = np.where(squares[:, :1] > 0, squares[:, :1], 1.0)
    turned = left.transpose(0, 2, 1) @ wanted
    errors = []
    for strength in _STRENGTHS:
        share = squares / (squares + strength * largest)
        known = (np.square(left) @ share[..., None]) + 1 / rows.shape[1]
        gaps = wanted - left @ (share[..., None] * turned)
        errors.append(np.square(gaps / np.maximum(1 - known, _TINY)).mean((1, 2)))
    best = _STRENGTHS[np.argmin(errors, 0)][:, None] * largest
    found: np.ndarray = right.transpose(0, 2, 1) @ ((values / (squares + best))[..., None] * turned)
    return found
