"""Choose a family where origins are not known, or a few: what the queries themselves can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch

from ahop._progress import Bar
from ahop.learning.chance import larger_share
from ahop.learning.holdout import halves
from ahop.learning.report import Trial
from ahop.similarity.density import Density
from ahop.similarity.families import calibration, completed, null, with_labels
from ahop.similarity.families.candidate import Candidate, Outcome, Refit
from ahop.similarity.families.family import Family, with_simplest
from ahop.similarity.families.nearest.family import PlainMetrics, plain_distance
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation

# Fewer queries have no halves to compare models on; and beside so few, the simplest family always stands for choice.
_MIN_QUERIES, _FEW_QUERIES = 8, 64
# Rows of so few values tell a plain metric at most, unless they tell more than chance.
_FEW_VALUES = 4
# Fewer pairs tell nothing by themselves.
_MIN_PAIRS = 20
# Known origins decide if one family finds so much more of them than another.
_MIN_LABEL_LEAD = 0.03


def choose(data: TrainingData, families: Sequence[Family], seed: int, bar: Bar) -> Outcome:
    """The family that the queries ask for, as far as they can tell; the simpler one where they cannot.

    Args:
        data: Queries, of which some origins may be known.
        families: The families to choose from.
        seed: Seed of what is drawn.
        bar: Shows what is being learned.
    """
    if data.same_width and data.complete_count < _MIN_QUERIES:
        one = nearest(data)
        return Outcome(one, [one.trial])
    few = data.same_width and len(data.queries) < _FEW_QUERIES
    if few and not data.scattered:
        families = with_simplest(families)
    if data.same_width and not null.can_tell(data):
        # What cannot be told from chance improves on no plain metric, unless somebody asks for it.
        families = [family for family in families if family.plain] or families
    blurry = completed.blurred(data, seed)
    best: Candidate | None = None
    tried: dict[Family, Trial] = {}
    # What would be a fact, and no choice, is looked for first; what takes long, last.
    for family in sorted(families, key=lambda family: (not family.settles, family.slow)):
        if not (data.same_width or family.maps):
            continue
        if data.observed is not None and not (family.takes_missing or (few and family.plain)):
            continue
        if not family.applies(data, seed):
            continue
        bar.advance(family.name)
        learned = family.without_labels(data, seed, bar.advance, None if best is None else best.completed)
        if learned is None:
            continue
        learned = replace(learned, anew=partial(_anew, family, seed))
        tried[family] = learned.trial
        if learned.settles or not data.same_width:
            best = learned
            break
        if learned.found and (data.observed is None or few):
            learned = _explained(blurry, learned, seed)
        if learned.found and (best is None or _tells_more(data, learned, best, seed)):
            best = learned
    for family in families if data.observed is None else ():
        by_pairs = family.from_known_pairs(data, seed)
        if by_pairs is not None and (best is None or _retrieves_more(data, by_pairs, best, seed)):
            best = replace(by_pairs, held_out=by_pairs.beside_all or by_pairs.held_out)
            # What it made of all queries has been replaced.
            tried.pop(family, None)
            tried[family] = best.trial
    if best is None:
        names = ", ".join(repr(family.name) for family in families)
        raise ValueError(f"queries must suit one of the families {names}; none of them applies")
    return Outcome(best, list(tried.values()), best.expected)


def from_pairs_alone(
    data: TrainingData,
    outcome: Outcome,
    found: calibration.HeldOutLabels | None,
    families: Sequence[Family],
    seed: int,
    bar: Bar,
) -> tuple[TrainingData, Outcome]:
    """What the known pairs say by themselves, where that finds more of them than what was learned with all queries.

    A family that fits queries in general need not tell their origins, and pairs are the better judge. But the best of
    many models on a few pairs is also the luckiest, so it has to be better by more than chance than what is itself
    better than chance. What is a fact of the data is no choice.

    Args:
        data: Queries, of which some origins are known.
        outcome: What was learned from all of them.
        found: How many of the known origins that finds, without having learned from them; None where it cannot tell.
        families, seed, bar: As in :func:`choose`.

    Returns:
        What was learned from, and what came of it.
    """
    if data.labelled or len(data.known) < _MIN_PAIRS or not data.same_width or outcome.chosen.settles:
        return data, outcome
    pairs = data.part(data.known)
    if len(pairs.all_origins.unique()) < 2:
        return data, outcome
    alone = with_labels.choose(pairs, families, seed, bar)
    if found is None:
        better = _retrieves_more(data, alone.chosen, outcome.chosen, seed)
    else:
        held_out = alone.chosen.held_out
        assert held_out is not None
        errors = 1.0 if found.beats_chance(len(data.patterns)) else 0.0
        better = larger_share(alone.expected, held_out.witnesses, found.accuracy, found.witnesses, errors)
    return (pairs, alone) if better else (data, outcome)


def _anew(family: Family, seed: int, data: TrainingData) -> Density:
    """What a family that was chosen learns from further data."""
    return (family.without_labels(data, seed, lambda _: None) or family.unvalidated(data, seed)).model


def best_guess(data: TrainingData, model: Density, seed: int) -> Density:
    """What first choices go by where nothing was found that is better than chance.

    A model that was compared with chance stays, for checked answers may yet prove it; but where rows have a few values,
    a plain metric finds more than a richer model. What was too little to compare is as good as nothing learned.

    Args:
        data: What the model was learned from.
        model: The model.
        seed: Seed of what is drawn.
    """
    if not data.same_width:
        return model
    if not null.can_tell(data):
        return nearest(data).model
    if data.queries.shape[1] > _FEW_VALUES:
        return model
    means = replace(data, patterns=data.means, scattered=False)
    return PlainMetrics().without_labels(means, seed, lambda _: None).model


def nearest(data: TrainingData) -> Candidate:
    """The nearest pattern by plain distance, which fewer queries than have halves cannot improve on."""
    nearest = Nearest(data.means.shape[1]).to(data.patterns)(data.patterns, data.queries, data.observed).argmax(1)
    origins = torch.where(data.all_origins < 0, nearest, data.all_origins)
    return replace(plain_distance(replace(data, origins=origins)), data=data, again=None)


def _explained(blurry: TrainingData, one: Candidate, seed: int) -> Candidate:
    """The same with how well it explains held-out queries and their origins, where it can be learned again."""
    if one.completed is not None or one.again is None:
        return one
    return replace(one, completed=completed.completed(blurry, one.again(blurry), seed))


def _tells_more(data: TrainingData, one: Candidate, other: Candidate, seed: int) -> bool:
    """Whether one finds more of the known origins than the other, if enough are known; or else explains held-out
    queries and their origins better, by more than chance."""
    if one.completed is None or other.completed is None:
        # What cannot be compared does not replace what is simpler.
        return False
    own, rival = (_by_labels(data, candidate.refit, seed) for candidate in (one, other))
    if own is not None and rival is not None and abs(own.bound(0.5) - rival.bound(0.5)) > _MIN_LABEL_LEAD:
        return own.right > rival.right
    return one.completed.beats(other.completed)


def _by_labels(data: TrainingData, refit: Refit | None, seed: int) -> calibration.HeldOutLabels | None:
    """What known origins say of a model that was learned from the other half; None where few are known."""
    if data.origins is None or refit is None:
        return None
    one, other = halves(len(data.queries), seed, data.queries.device)
    return calibration.by_labels([(refit(one), other), (refit(other), one)], data)


def _retrieves_more(data: TrainingData, by_pairs: Candidate, best: Candidate, seed: int) -> bool:
    """Whether a model of the known pairs alone finds them better when they are held out than the best so far does,
    which has learned from them."""
    known = data.part(data.known)
    assert by_pairs.held_out is not None
    validation = CrossValidation(known, seed)
    theirs = validation.result([validation.score(best.model, rows) for _, rows in validation.parts])
    return by_pairs.held_out.utility > theirs.utility
