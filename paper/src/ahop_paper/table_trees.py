"""Forests and boosted trees of the comparison on tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ahop_paper.table_base import MEMBERS, VOTES, Draw, Model, Settings, log, one_of, threads

# Boosted trees stop after so many that did not help on the validation rows.
PATIENCE = 50


def _forest(title: str, kind: str) -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"n_estimators": 300}
        return {
            "n_estimators": 300,
            "max_features": float(draw.uniform(0.1, 1.0)),
            "min_samples_leaf": int(log(draw, 1, 30)),
            "max_depth": one_of(draw, None, 10, 20),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn import ensemble

        forest = getattr(ensemble, kind)(**settings, random_state=seed, n_jobs=threads())
        return _with_codes(frame, forest).fit(frame, labels)

    return Model(title, settings, fit)


def _adaboost() -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"n_estimators": 50, "learning_rate": 1.0, "max_depth": 1}
        return {
            "n_estimators": int(log(draw, 50, 500)),
            "learning_rate": log(draw, 0.05, 2.0),
            "max_depth": one_of(draw, 1, 2, 3),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        weak = DecisionTreeClassifier(max_depth=settings["max_depth"])
        rest = {name: value for name, value in settings.items() if name != "max_depth"}
        return _with_codes(frame, AdaBoostClassifier(weak, **rest, random_state=seed)).fit(frame, labels)

    return Model("AdaBoost", settings, fit)


def _with_codes(frame: Any, model: Any) -> Any:
    """Categories as numbers and missing values filled in, for those who know neither."""
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    kinds = make_column_selector(dtype_include="category")
    others = make_column_selector(dtype_exclude="category")
    return make_pipeline(ColumnTransformer([("kinds", encoder, kinds), ("numbers", SimpleImputer(), others)]), model)


def _trees(draw: Draw, **names: str) -> Settings:
    """What all boosted trees share, by the names that a library has for it."""
    drawn = {
        "rate": log(draw, 0.02, 0.3),
        "rows": float(draw.uniform(0.5, 1.0)),
        "columns": float(draw.uniform(0.4, 1.0)),
        "shrink": log(draw, 0.1, 30.0),
    }
    return {name: drawn[what] for what, name in names.items()}


def _xgboost() -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"learning_rate": 0.1}
        shared = _trees(draw, rate="learning_rate", rows="subsample", columns="colsample_bytree", shrink="reg_lambda")
        return {**shared, "max_depth": one_of(draw, 3, 4, 5, 6, 8, 10), "min_child_weight": log(draw, 1, 30)}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from xgboost import XGBClassifier

        stop: Settings = {"n_estimators": 2000, "early_stopping_rounds": PATIENCE} if held else {}
        model = XGBClassifier(**stop, **settings, enable_categorical=True, random_state=seed, n_jobs=threads())
        return _Coded(model).fit(frame, labels, held, lambda held: {"eval_set": [held], "verbose": False})

    return Model(
        "XGBoost", settings, fit, lambda model: {"n_estimators": model.model.best_iteration + 1}, library="xgboost"
    )


def _lightgbm() -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {}
        shared = _trees(draw, rate="learning_rate", rows="subsample", columns="colsample_bytree", shrink="reg_lambda")
        leaves = {"num_leaves": int(log(draw, 7, 128)), "min_child_samples": int(log(draw, 5, 100))}
        return {**shared, **leaves, "subsample_freq": 1}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from lightgbm import LGBMClassifier, early_stopping

        stop: Settings = {"n_estimators": 2000} if held else {}
        model = LGBMClassifier(**stop, **settings, random_state=seed, n_jobs=threads(), verbose=-1)
        until = [early_stopping(PATIENCE, verbose=False)]
        return _Coded(model).fit(
            frame, labels, held, lambda held: {"eval_X": held[0], "eval_y": held[1], "callbacks": until}
        )

    return Model(
        "LightGBM", settings, fit, lambda model: {"n_estimators": model.model.best_iteration_}, library="lightgbm"
    )


def _catboost() -> Model:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"learning_rate": 0.1}
        shared = _trees(draw, rate="learning_rate", rows="subsample", shrink="l2_leaf_reg")
        return {**shared, "depth": one_of(draw, 3, 4, 5, 6, 7, 8), "bootstrap_type": "Bernoulli"}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from catboost import CatBoostClassifier

        stop: Settings = {"n_estimators": 1000} if held else {}
        kinds = list(frame.select_dtypes("category").columns)
        quiet: Settings = {"verbose": False, "allow_writing_files": False, "thread_count": threads()}
        model = CatBoostClassifier(**stop, **settings, cat_features=kinds, random_seed=seed, **quiet)
        until = {"early_stopping_rounds": PATIENCE}
        return _Coded(model).fit(frame, labels, held, lambda held: {"eval_set": [held], **until})

    return Model("CatBoost", settings, fit, lambda model: {"n_estimators": model.model.tree_count_}, library="catboost")


class _Coded:
    """A model whose categories are codes, kept as categories: libraries differ in what else they take for one."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, frame: Any, labels: np.ndarray, held: Any, options: Callable[[Any], Settings]) -> _Coded:
        self.kinds = {name: frame[name].cat.categories for name in frame.select_dtypes("category").columns}
        more = options((self._codes(held[0]), held[1])) if held else {}
        self.model.fit(self._codes(frame), labels, **more)
        return self

    def predict_proba(self, frame: Any) -> np.ndarray:
        return self.model.predict_proba(self._codes(frame))

    def _codes(self, frame: Any) -> Any:
        import pandas as pd

        codes = {
            name: pd.Categorical(frame[name].cat.set_categories(kinds).cat.codes, categories=range(-1, len(kinds)))
            for name, kinds in self.kinds.items()
        }
        return frame.assign(**codes)


class _Vote:
    """The mean of what several models say."""

    def __init__(self, models: list[Any]) -> None:
        self.models = models

    def predict_proba(self, frame: Any) -> np.ndarray:
        return np.mean([model.predict_proba(frame) for model in self.models], 0)


def _vote_of(name: str, single: Model) -> Model:
    """Trees with the vote that memories have: the best settings of the same trials, several seeds each."""

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        seeds = range(MEMBERS["trees"] * seed, MEMBERS["trees"] * (seed + 1))
        return _Vote([single.fit(some, frame, labels, one, device) for some in settings["vote"] for one in seeds])

    return replace(single, title=f"a vote of {single.title}", fit=fit, votes=VOTES, search=name)


_SINGLE = {
    "xgboost": _xgboost(),
    "lightgbm": _lightgbm(),
    "catboost": _catboost(),
    "adaboost": _adaboost(),
    "extra trees": _forest("extra trees", "ExtraTreesClassifier"),
    "random forest": _forest("random forest", "RandomForestClassifier"),
}
TREES = {
    **_SINGLE,
    # Gradient boosting, the strongest of them; a forest is a vote of 300 trees already.
    **{f"vote of {name}": _vote_of(name, _SINGLE[name]) for name in ("xgboost", "lightgbm", "catboost")},
}
