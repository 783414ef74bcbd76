"""Who takes part in the comparison on tables, and from what each is tuned: every one by the same number of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ahop_paper.lineage import picks
from ahop_paper.table_base import MEMBERS, VOTES, Draw, Model, Settings, log, one_of
from ahop_paper.table_plain import PLAIN
from ahop_paper.table_trees import TREES

# What fits import when they begin: scikit-learn would double the time that the command line takes to start.
LEARNERS = ("ahop.estimators", "sklearn.compose", "sklearn.ensemble", "sklearn.impute")


@picks
def named(model: str) -> Model:
    """A model of the comparison by its name."""
    return MODELS[model]


def chances(model: Any, frame: Any) -> np.ndarray:
    """The probability of the second class."""
    return np.asarray(model.predict_proba(frame))[:, 1]


def tune(
    model: str, frame: Any, labels: np.ndarray, learn: np.ndarray, check: np.ndarray, trial: int, device: str
) -> dict[str, Any]:
    """One trial: its settings and how likely the validation rows are under it.

    Args:
        model: Its name.
        frame: The table.
        labels: One a row.
        learn, check: Indices of the rows to learn from, and of those to validate on.
        trial: The number of the trial; the first takes the default settings.
        device: Where to train.
    """
    from sklearn.metrics import log_loss

    entry = named(model)
    settings = entry.settings(None if trial == 0 else Draw(trial))
    parts = frame.iloc[learn], labels[learn]
    held = frame.iloc[check], labels[check]
    fitted = entry.fit(settings, *parts, 0, device, held)
    likely = chances(fitted, held[0])
    found = {"loss": float(log_loss(held[1], likely)), "accuracy": float(((likely > 0.5) == held[1]).mean())}
    return {"settings": settings | entry.grown(fitted), **found}


def final(model: str, settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str) -> Any:
    """Fit a model with the chosen settings to all training rows.

    Args:
        model: Its name.
        settings: What was chosen.
        frame: The training rows.
        labels: One a row.
        seed: Seed of the training.
        device: Where to train.
    """
    return named(model).fit(settings, frame, labels, seed, device)


# --- Hopfield networks ----------------------------------------------------------------------------------------


def _published(title: str, similarity: str) -> Model:
    """The paper's classifier: columns as they are, prototypes, similarity, LayerNorm, perceptron."""

    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return {"cases": "sampled", "n_cases": 128, "learning_rate": 4e-3, "batch_size": 256, "scaling": "quantile"}
        return {
            "cases": one_of(draw, "sampled", "kmeans"),
            "n_cases": one_of(draw, 64, 128, 256),
            "learning_rate": log(draw, 1e-3, 2e-2),
            "batch_size": one_of(draw, 128, 256, 1024),
            "scaling": one_of(draw, "quantile", "standard"),
        }

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from ahop.estimators import HopfieldClassifier

        plain: Settings = {"similarity": similarity, "readout": "mlp", "embedding": "columns", "epochs": 20}
        return HopfieldClassifier(**plain, **settings, random_state=seed, device=device).fit(frame, labels)

    return Model(title, settings, fit, ours=True)


def _default() -> Model:
    """All training rows as cases, and what the estimator does if nobody says anything."""

    def fit(settings: Settings, frame: Any, labels: np.ndarray, seed: int, device: str, held: Any = None) -> Any:
        from ahop.estimators import HopfieldClassifier

        return HopfieldClassifier(random_state=seed, device=device).fit(frame, labels)

    return Model("`HopfieldClassifier()`", lambda draw: {}, fit, tuned=False, ours=True)


# What a trial may draw. Adaptive networks are narrow, since each pair of a query and a case is sorted.
WIDTHS = {"adaptive": (16, 32), "euclidean": (64, 128, 256)}


def _voting(title: str, usual: Settings, similarities: Sequence[str], members: int) -> Model:
    """All training rows as cases; a vote of the best settings, several networks each, which learn from all rows."""

    def settings(draw: Draw | None) -> Settings:
        if draw is None:
            return usual
        similarity = one_of(draw, *similarities)
        blocks = one_of(draw, 0, 0, 1, 2)
        return {
            "similarity": similarity,
            "width": one_of(draw, *WIDTHS[similarity]),
            "frequency_scale": log(draw, 0.03, 1.0),
            "blocks": blocks,
            "dropout": float(draw.uniform(0.1, 0.5)) if blocks else 0.0,
            "column_dropout": one_of(draw, 0.0, 0.1, 0.2),
            "learning_rate": log(draw, 5e-3, 3e-2) / (3 if blocks else 1),
            "weight_decay": log(draw, 1e-5, 1e-1),
            "epochs": one_of(draw, 8, 12, 16, 24),
            "cases_per_step": one_of(draw, 2048, 4096),
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

    return Model(title, settings, fit, votes=VOTES, ours=True)


# In the order of the tables.
MODELS = {
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
    **PLAIN,
    **TREES,
}
