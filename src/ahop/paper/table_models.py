"""Who takes part in the comparison on tables, and from what each is tuned: every one by the same number of trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Settings = dict[str, Any]
Draw = np.random.RandomState
# Boosted trees stop after so many that did not help on the validation rows.
PATIENCE = 50
# What fits import when they begin: scikit-learn would double the time that the command line takes to start.
LEARNERS = ("ahop.estimators", "sklearn.compose", "sklearn.ensemble", "sklearn.impute")


@dataclass(frozen=True)
class Contestant:
    """A model of the comparison.

    Attributes:
        title: What tables call it.
        settings: A trial's settings; the first trial, with None for the draw, has usual ones.
        fit: A model from settings, rows to train with and, while tuning, rows to stop by.
        grown: What a tuned model tells about itself that the final one needs, which has no rows to stop by.
        votes: How many of the best settings the final model is made of, as ``{"vote": [settings, ...]}``; with one it
            is made of those alone.
        library: What it comes from, where that is an extra.
        search: Whose trials it takes its settings from, where these are not its own.
        ours: Whether it is a memory, to be compared with the best of the others.
    """

    title: str
    settings: Callable[[Draw | None], Settings]
    fit: Callable[..., Any]
    grown: Callable[[Any], Settings] = lambda model: {}
    votes: int = 1
    library: str | None = None
    search: str | None = None
    ours: bool = False

    def chosen(self, ranked: list[Settings]) -> Settings:
        """What the final model is made of, from the settings of all trials, best first."""
        return {"vote": ranked[: self.votes]} if self.votes > 1 else ranked[0]


def chances(model: Any, frame: Any) -> np.ndarray:
    """The probability of the second class."""
    return np.asarray(model.predict_proba(frame))[:, 1]


def tune(
    model: str, frame: Any, labels: np.ndarray, learn: np.ndarray, check: np.ndarray, trial: int, device: str
) -> dict[str, Any]:
    """One trial: its settings and how likely the validation rows are under it."""
    from sklearn.metrics import log_loss

    contestant = CONTESTANTS[model]
    settings = contestant.settings(None if trial == 0 else Draw(trial))
    parts = frame.iloc[learn], labels[learn]
    held = frame.iloc[check], labels[check]
    fitted = contestant.fit(settings, *parts, 0, device, held)
    likely = chances(fitted, held[0])
    found = {"loss": float(log_loss(held[1], likely)), "accuracy": float(((likely > 0.5) == held[1]).mean())}
    return {"settings": settings | contestant.grown(fitted), **found}


def final(model: str, settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str) -> Any:
    """The model with the settings that were chosen, from all training rows."""
    return CONTESTANTS[model].fit(settings, frame, labels, seed, device)


# --- drawing settings -----------------------------------------------------------------------------------------


def _log(draw: Draw, low: float, high: float) -> float:
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


def _of(draw: Draw, *choices: Any) -> Any:
    return choices[draw.randint(len(choices))]


# --- Hopfield networks ----------------------------------------------------------------------------------------


def _published(title: str, similarity: str) -> Contestant:
    """The paper's classifier: columns as they are, prototypes, similarity, LayerNorm, perceptron."""

    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"cases": "sampled", "n_cases": 128, "learning_rate": 4e-3, "batch_size": 256, "scaling": "quantile"}
        return {
            "cases": _of(draw, "sampled", "kmeans"),
            "n_cases": _of(draw, 64, 128, 256),
            "learning_rate": _log(draw, 1e-3, 2e-2),
            "batch_size": _of(draw, 128, 256, 1024),
            "scaling": _of(draw, "quantile", "standard"),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from ahop.estimators import HopfieldClassifier

        plain: Settings = {"similarity": similarity, "readout": "mlp", "embedding": "columns", "epochs": 20}
        return HopfieldClassifier(**plain, **settings, random_state=seed, device=device).fit(frame, labels)

    return Contestant(title, settings, fit, ours=True)


def _default() -> Contestant:
    """All training rows as cases, and what the estimator does if nobody says anything."""

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from ahop.estimators import HopfieldClassifier

        return HopfieldClassifier(random_state=seed, device=device).fit(frame, labels)

    return Contestant("`HopfieldClassifier()`", lambda draw: {}, fit, ours=True)


# Of models that vote: how many settings, and networks with the same ones. Settled on validation rows, settings ranked
# by one half and measured on the other: mean log-loss over five tables is .3536 with three settings, .3533 with six,
# .3538 with eight; accuracy .8395, .8404, .8409 with one, two, four networks each. a-hop has two, for time.
VOTES = 6
MEMBERS = {"a-hop-cases": 2, "ours": 4, "trees": 4}


def _voting(title: str, usual: Settings, similarities: Sequence[str], members: int) -> Contestant:
    """All training rows as cases; a vote of the best settings, several networks each, which learn from all rows.

    Adaptive networks are narrow, since each pair of a query and a case is sorted.
    """

    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return usual
        similarity = _of(draw, *similarities)
        blocks = _of(draw, 0, 0, 1, 2)
        return {
            "similarity": similarity,
            "width": _of(draw, 16, 32) if similarity == "adaptive" else _of(draw, 64, 128, 256),
            "frequency_scale": _log(draw, 0.03, 1.0),
            "blocks": blocks,
            "dropout": float(draw.uniform(0.1, 0.5)) if blocks else 0.0,
            "column_dropout": _of(draw, 0.0, 0.1, 0.2),
            "learning_rate": _log(draw, 5e-3, 3e-2) / (3 if blocks else 1),
            "weight_decay": _log(draw, 1e-5, 1e-1),
            "epochs": _of(draw, 8, 12, 16, 24),
            "cases_per_step": _of(draw, 2048, 4096),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn.ensemble import VotingClassifier

        from ahop.estimators import HopfieldClassifier

        if "vote" not in settings:
            return HopfieldClassifier(**settings, random_state=seed, device=device).fit(frame, labels)
        # While tuning, a network holds rows out to choose a pass and a temperature by. In the end it learns from them
        # too, as many passes as its settings have, and a vote of several needs no temperature.
        whole: Settings = {"validation_fraction": 0.0, "members": members, "random_state": seed, "device": device}
        several = [(str(place), HopfieldClassifier(**some, **whole)) for place, some in enumerate(settings["vote"])]
        return VotingClassifier(several, voting="soft").fit(frame, labels)

    return Contestant(title, settings, fit, votes=VOTES, ours=True)


# --- trees ----------------------------------------------------------------------------------------------------


def _forest(title: str, kind: str) -> Contestant:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"n_estimators": 300}
        return {
            "n_estimators": 300,
            "max_features": float(draw.uniform(0.1, 1.0)),
            "min_samples_leaf": int(_log(draw, 1, 30)),
            "max_depth": _of(draw, None, 10, 20),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn import ensemble

        forest = getattr(ensemble, kind)(**settings, random_state=seed, n_jobs=_threads())
        return _with_codes(frame, forest).fit(frame, labels)

    return Contestant(title, settings, fit)


def _adaboost() -> Contestant:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"n_estimators": 50, "learning_rate": 1.0, "max_depth": 1}
        return {
            "n_estimators": int(_log(draw, 50, 500)),
            "learning_rate": _log(draw, 0.05, 2.0),
            "max_depth": _of(draw, 1, 2, 3),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        weak = DecisionTreeClassifier(max_depth=settings["max_depth"])
        rest = {name: value for name, value in settings.items() if name != "max_depth"}
        return _with_codes(frame, AdaBoostClassifier(weak, **rest, random_state=seed)).fit(frame, labels)

    return Contestant("AdaBoost", settings, fit)


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
        "rate": _log(draw, 0.02, 0.3),
        "rows": float(draw.uniform(0.5, 1.0)),
        "columns": float(draw.uniform(0.4, 1.0)),
        "shrink": _log(draw, 0.1, 30.0),
    }
    return {name: drawn[what] for what, name in names.items()}


def _xgboost() -> Contestant:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"learning_rate": 0.1}
        shared = _trees(draw, rate="learning_rate", rows="subsample", columns="colsample_bytree", shrink="reg_lambda")
        return {**shared, "max_depth": _of(draw, 3, 4, 5, 6, 8, 10), "min_child_weight": _log(draw, 1, 30)}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from xgboost import XGBClassifier

        stop: Settings = {"n_estimators": 2000, "early_stopping_rounds": PATIENCE} if held else {}
        model = XGBClassifier(**stop, **settings, enable_categorical=True, random_state=seed, n_jobs=_threads())
        return _Coded(model).fit(frame, labels, held, lambda held: {"eval_set": [held], "verbose": False})

    return Contestant(
        "XGBoost", settings, fit, lambda model: {"n_estimators": model.model.best_iteration + 1}, library="xgboost"
    )


def _lightgbm() -> Contestant:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {}
        shared = _trees(draw, rate="learning_rate", rows="subsample", columns="colsample_bytree", shrink="reg_lambda")
        leaves = {"num_leaves": int(_log(draw, 7, 128)), "min_child_samples": int(_log(draw, 5, 100))}
        return {**shared, **leaves, "subsample_freq": 1}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from lightgbm import LGBMClassifier, early_stopping

        stop: Settings = {"n_estimators": 2000} if held else {}
        model = LGBMClassifier(**stop, **settings, random_state=seed, n_jobs=_threads(), verbose=-1)
        until = [early_stopping(PATIENCE, verbose=False)]
        return _Coded(model).fit(
            frame, labels, held, lambda held: {"eval_X": held[0], "eval_y": held[1], "callbacks": until}
        )

    return Contestant(
        "LightGBM", settings, fit, lambda model: {"n_estimators": model.model.best_iteration_}, library="lightgbm"
    )


def _catboost() -> Contestant:
    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"learning_rate": 0.1}
        shared = _trees(draw, rate="learning_rate", rows="subsample", shrink="l2_leaf_reg")
        return {**shared, "depth": _of(draw, 3, 4, 5, 6, 7, 8), "bootstrap_type": "Bernoulli"}

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from catboost import CatBoostClassifier

        stop: Settings = {"n_estimators": 1000} if held else {}
        kinds = list(frame.select_dtypes("category").columns)
        quiet: Settings = {"verbose": False, "allow_writing_files": False, "thread_count": _threads()}
        model = CatBoostClassifier(**stop, **settings, cat_features=kinds, random_seed=seed, **quiet)
        until = {"early_stopping_rounds": PATIENCE}
        return _Coded(model).fit(frame, labels, held, lambda held: {"eval_set": [held], **until})

    return Contestant(
        "CatBoost", settings, fit, lambda model: {"n_estimators": model.model.tree_count_}, library="catboost"
    )


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


def _threads() -> int:
    import torch

    return torch.get_num_threads()


class _Vote:
    """The mean of what several models say."""

    def __init__(self, models: list[Any]) -> None:
        self.models = models

    def predict_proba(self, frame: Any) -> np.ndarray:
        return np.mean([model.predict_proba(frame) for model in self.models], 0)


def _vote_of(name: str, single: Contestant) -> Contestant:
    """Trees with the vote that memories have: the best settings of the same trials, several seeds each."""

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        seeds = range(MEMBERS["trees"] * seed, MEMBERS["trees"] * (seed + 1))
        return _Vote([single.fit(some, frame, labels, one, device) for some in settings["vote"] for one in seeds])

    return replace(single, title=f"a vote of {single.title}", fit=fit, votes=VOTES, search=name)


_TREES = {
    "xgboost": _xgboost(),
    "lightgbm": _lightgbm(),
    "catboost": _catboost(),
    "adaboost": _adaboost(),
    "extra trees": _forest("extra trees", "ExtraTreesClassifier"),
    "random forest": _forest("random forest", "RandomForestClassifier"),
}
# In the order of the tables.
CONTESTANTS = {
    "default": _default(),
    "a-hop-cases": _voting(
        "a vote of a-hop, all rows as cases",
        {"similarity": "adaptive", "width": 16},
        ["adaptive"],
        MEMBERS["a-hop-cases"],
    ),
    "ours": _voting("**a vote of memories**", {}, ["euclidean", "euclidean", "adaptive"], MEMBERS["ours"]),
    "m-hop": _published("m-hop, prototypes as in the paper", "dot"),
    "k2-hop": _published("k2-hop, likewise", "kernel"),
    "a-hop": _published("a-hop, likewise", "adaptive"),
    **_TREES,
    # Gradient boosting, the strongest of them; a forest is a vote of 300 trees already.
    **{f"vote of {name}": _vote_of(name, _TREES[name]) for name in ("xgboost", "lightgbm", "catboost")},
}
