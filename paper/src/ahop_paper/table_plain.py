"""What everyone tries first on a table: the nearest rows, and a line between the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahop_paper.table_base import Draw, Model, Settings, log, one_of, threads


def _neighbours() -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"n_neighbors": 15, "weights": "uniform", "scaling": "standard"}
        return {
            "n_neighbors": int(log(draw, 5, 200)),
            "weights": one_of(draw, "uniform", "distance"),
            "scaling": one_of(draw, "standard", "quantile"),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        # A small table has fewer rows than the largest draw.
        count = min(settings["n_neighbors"], len(labels))
        model = KNeighborsClassifier(count, weights=settings["weights"], n_jobs=threads())
        return _in_numbers(settings["scaling"], model).fit(frame, labels)

    return Model("nearest neighbours", settings, fit)


def _regression() -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"C": 1.0, "scaling": "standard"}
        return {"C": log(draw, 1e-3, 1e2), "scaling": one_of(draw, "standard", "quantile")}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=settings["C"], max_iter=1000)
        return _in_numbers(settings["scaling"], model).fit(frame, labels)

    return Model("logistic regression", settings, fit)


def _in_numbers(scaling: str, model: Any) -> Any:
    """A column for each category, missing values filled in, numbers on one scale."""
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

    scaler = StandardScaler() if scaling == "standard" else QuantileTransformer(n_quantiles=100)
    numbers = make_pipeline(SimpleImputer(), scaler)
    kinds = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    columns = [
        ("kinds", kinds, make_column_selector(dtype_include="category")),
        ("numbers", numbers, make_column_selector(dtype_exclude="category")),
    ]
    return make_pipeline(ColumnTransformer(columns), model)


PLAIN = {"nearest neighbours": _neighbours(), "logistic regression": _regression()}
