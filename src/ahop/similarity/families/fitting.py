"""Learn what happens to queries, whether or not their origins are known: the decisions, in order.

1. Everything is measured in the patterns' own units, so that nothing depends on those of the data.
2. *With labels* (:mod:`.with_labels`) what anyone would try first (:mod:`.nearest`: plain metrics, whitening, ridge
   regression) is screened on rows seen in every way worth a try (:mod:`.views`: other scales, slopes of columns that
   have an order). The best of it and every richer family that applies (:mod:`.family`) are then compared by one
   cross-validation: retrieval of origins that were held out (:mod:`.validation`). The one that is right most often, and
   surest of it, is taken.
3. *Without labels, or with a few* (:mod:`.without_labels`) origins are shared out among the likeliest patterns. A
   floor, or a map to another space that lands, is a fact and not a choice. Of the other families that apply, from the
   simplest to the richest, one is taken if it finds more of the known origins than the best so far, or explains
   held-out queries and their origins better, by more than chance (:mod:`.completed`). Where twenty origins or more are
   known, what these pairs say by themselves (as in 2) counts instead if it finds more of them.
   Where it is known how many queries a pattern can be meant by, that is learned from, too (:mod:`.capacity`).
4. Without labels to tell, nothing counts as found that is not clearly above its null (:mod:`.null`): probabilities are
   then the prior, whatever the model says.
5. The model is made as sure as it is right (:mod:`.calibration`): by a temperature and a doubt from cross-validation,
   or without labels by a bootstrap. What genuine queries look like to a model that has not seen them tells later which
   ones are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._precision import Units
from ahop._progress import progress
from ahop._warnings import warn
from ahop.learning.conformal import behind
from ahop.learning.holdout import halves_by_origin
from ahop.learning.report import FitReport, beats_chance
from ahop.similarity import families
from ahop.similarity.density import Density
from ahop.similarity.families import calibration, familiarity, null, stand_ins, with_labels, without_labels
from ahop.similarity.families.candidate import Candidate
from ahop.similarity.families.capacity import within_room
from ahop.similarity.families.family import Family, evidence
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.views import in_column_units

# A new family is one file in this folder, or a folder with a file of that name: it is known once the file is read.
for _module in iter_modules(families.__path__):
    import_module(f"{families.__name__}.{_module.name}" + (".family" if _module.ispkg else ""))

# Work (queries x patterns x dimensions) up to which every query is learned from. Beyond it, a sample: of ENOUGH queries
# at least, of _ENOUGH_LABELS where all origins are known.
_WORK, ENOUGH, _ENOUGH_LABELS = 2**36, 2**11, 2**14


@dataclass(frozen=True)
class Learned:
    """A model, how the fit went, its log inverse temperature, the share of queries that tell nothing; then of models
    that have not learned from the queries, how familiar these are ``(m,)``, how familiar they were if their pattern
    were not stored ``(m,)``, and how far origins of labelled ones are behind the first choice ``(l,)``."""

    model: Density
    report: FitReport
    log_beta: float = 0.0
    doubt: float = 0.0
    genuine: Tensor = field(default_factory=lambda: torch.empty(0))
    strange: Tensor = field(default_factory=lambda: torch.empty(0))
    behind: Tensor = field(default_factory=lambda: torch.empty(0))


def learn(
    data: TrainingData, families: Sequence[Family], seed: int = 0, show: bool = True, standardise: bool = False
) -> Learned:
    """The likelihood that explains the queries, and how the fit went.

    Args:
        data: What there is to learn from.
        families: Those to choose from, simplest first; see :func:`.known_families`.
        seed: For what is held out.
        show: Whether to show a progress bar.
        standardise: Whether each column has a unit of its own.
    """
    if standardise:
        view = in_column_units(data)
        learned = learn(view.show(data), families, seed, show)
        return replace(learned, model=view.wrap(learned.model))
    if data.scattered:
        families = _for_spread(families)
    if not data.same_width:
        _require_a_map(data, families)
    count, data = len(data.queries), sampled(data, seed)
    units = Units.of(data.means, data.queries)
    measured = data.measured(units)
    with progress("learning a corruption", show=show) as bar:
        choose = with_labels.choose if measured.labelled else without_labels.choose
        outcome, every = choose(measured, families, seed, bar), measured
        halved = _halved(measured, outcome.chosen, seed)
        found = calibration.by_labels(halved, measured)
        measured, (chosen, tried, expected) = without_labels.from_pairs_alone(
            measured, outcome, found, families, seed, bar
        )
        if chosen is not outcome.chosen:
            halved = _halved(measured, chosen, seed)
        chosen = within_room(measured, chosen)
        bar.advance("how sure to be")
        learned = _calibrated(measured, chosen, expected, halved, seed)
        learned = _beside_strangers(every, measured, halved, learned)
        if chosen.found and chosen.held_out is None and not _told_by_labels(measured, learned.report):
            bar.advance("whether that is more than chance")
            if not null.above_chance(measured, chosen, seed):
                chosen = replace(chosen, found=False, warning=null.warning(len(data.queries)))
    # What cannot be told from chance may be as sure of itself as it likes.
    if not chosen.found:
        certain = replace(learned.report, confidence=1 / len(data.patterns))
        model = without_labels.best_guess(measured, learned.model, seed)
        learned = replace(learned, model=model, report=certain, doubt=1.0)
    elif not learned.report.labels and not null.can_tell(measured):
        learned = replace(learned, report=replace(learned.report, confidence=math.nan))
    if chosen.warning:
        warn(chosen.warning)
    # Where no map to another space was found, nobody knows how often answers are right.
    right = learned.report.accuracy if math.isnan(expected) else expected
    report = FitReport(
        "em",
        learned.report.loss + data.log_density_of(units),
        chosen.iterations,
        chosen.converged,
        tuple(tried),
        chosen.name,
        right if chosen.found or learned.report.labels else math.nan,
        learned.report.confidence,
        chosen.found,
        stranger_share=learned.report.stranger_share,
        labels=learned.report.labels,
        witnesses=learned.report.witnesses,
        learned_from=len(measured.queries),
        queries=count,
        pairs_alone=len(measured.queries) < len(data.queries),
    )
    return replace(learned, model=units.leave(learned.model), report=report)


def sampled(data: TrainingData, seed: int = 0) -> TrainingData:
    """The same with a random sample of the queries, where all of them would be more work than they are worth.

    Queries with known origins and those without are drawn apart, as many of either.
    """
    each = len(data.patterns) * data.queries.shape[1]
    if len(data.queries) * each <= _WORK:
        return data
    order = torch.randperm(len(data.queries), generator=torch.Generator().manual_seed(seed)).to(data.rows.device)
    known = data.all_origins[order] >= 0
    most = max(ENOUGH, _WORK // each)
    labels = max(most, _ENOUGH_LABELS) if data.labelled else most
    return data.part(torch.cat([order[known][:labels], order[~known][:most]]).sort().values)


def _told_by_labels(data: TrainingData, report: FitReport) -> bool:
    """Whether more of the known origins were found than by chance."""
    if not report.labels or math.isnan(report.accuracy):
        return False
    return beats_chance(round(report.accuracy * report.labels), report.labels, len(data.patterns))


def _for_spread(families: Sequence[Family]) -> list[Family]:
    """Those that know what to do with patterns that scatter."""
    able = [family for family in families if family.takes_spread]
    if not able:
        asked = ", ".join(family.name for family in families)
        raise ValueError(f"spread must be None to learn {asked}: patterns that scatter are not known there")
    return able


def _require_a_map(data: TrainingData, families: Sequence[Family]) -> None:
    """Refuse queries of another width than patterns where no map between the two can be learned."""
    width, asked = data.means.shape[1], data.queries.shape[1]
    if not any(family.maps for family in families):
        raise ValueError(
            f"queries must have {width} values each, like the patterns: no map is learned here; got {asked}"
        )
    if data.observed is not None:
        raise ValueError(f"observed must be None: queries of {asked} values for patterns of {width} must be complete")
    if data.labelled and len(data.all_origins.unique()) < 2:
        raise ValueError(f"origins must include at least two patterns to learn a map from {width} values to {asked}")


# --- how sure to be --------------------------------------------------------------------------------------------------


def _calibrated(
    data: TrainingData, chosen: Candidate, expected: float, halved: familiarity.Halves, seed: int
) -> Learned:
    """The model with a temperature, and what it expects of itself.

    Args:
        data: What it was learned from.
        chosen: The model.
        expected: How often it should be right, the luck of its choice taken away; NaN where nobody knows.
        halved: As :func:`_halved` gives them.
        seed: Seed of what is drawn.
    """
    model = chosen.model
    log_beta, doubt, right = 0.0, 0.0, math.nan
    found: calibration.HeldOutLabels | None = None
    # Labels count where they have judged: in cross-validation, while a map was learned, or by halves.
    judged = chosen.held_out is not None or not math.isnan(chosen.expected)
    if chosen.held_out is not None:
        log_beta, doubt = calibration.from_held_out(chosen.held_out, expected)
        right = chosen.held_out.accuracy
    elif len(data.queries) >= 8:
        log_beta, right = calibration.log_beta(model, data, seed)
        log_beta = log_beta if chosen.log_beta is None else chosen.log_beta
        if halved:
            (one, _), (other, _) = halved
            share = math.sqrt(calibration.agreement(one, other, data))
            right = share if math.isnan(right) else min(right, share)
            found = calibration.by_labels(halved, data)
            if found is not None:
                # Labels are believed, be it more or less than a bootstrap.
                share, right, log_beta, judged = found.bound(right), found.accuracy, 0.0, True
            log_beta = calibration.no_surer_than(share, model, data, log_beta)
    # What was found while learning it, against all patterns, is the last word.
    right = right if math.isnan(chosen.expected) else chosen.expected
    loss, sure = evidence(data, model), _confidence(data, model, math.exp(log_beta))
    confidence = (1 - doubt) * sure + doubt / len(data.patterns)
    report = FitReport("em", loss, 0, converged=True, accuracy=right, confidence=confidence)
    if chosen.held_out is not None:
        report = replace(report, labels=len(chosen.held_out.right), witnesses=chosen.held_out.witnesses)
    elif judged and len(data.known) >= calibration.MIN_LABELS:
        witnesses = len(data.all_origins[data.known].unique()) if found is None else found.witnesses
        report = replace(report, labels=len(data.known), witnesses=witnesses)
    far = calibration.far_behind(halved, data) if chosen.held_out is None else behind(chosen.held_out.scores)
    genuine, strange = familiarity.genuine_and_strange(data, model, halved, math.exp(log_beta))
    return Learned(model, report, log_beta, doubt, genuine, strange, far)


def _confidence(data: TrainingData, model: Density, beta: float) -> float:
    """The mean confidence in the first choice, of some queries."""
    some, _, counts = stand_ins.of(data.part(data.rows[:: max(1, len(data.queries) // 512)]), model)
    sure = []
    for part in split(len(some.queries), 2 * len(some.patterns) * some.queries.element_size()):
        few = some.part(part)
        scores = beta * model(few.patterns, few.queries, few.observed)
        sure.append((torch.softmax(scores + few.log_priors, -1) / counts).amax(-1))
    return float(torch.cat(sure).mean())


def _beside_strangers(every: TrainingData, data: TrainingData, halved: familiarity.Halves, learned: Learned) -> Learned:
    """The same, no surer than queries that seem to come from no stored pattern allow.

    Of all genuine queries, it should be as sure as of those whose origin is known. What it is less sure of strangers
    by itself counts as doubt that it has.

    Args:
        every: All queries.
        data: Those that were learned from.
        halved: As :func:`_halved` gives them.
        learned: What was learned of genuine queries.
    """
    share = familiarity.share_of_strangers(every, data, halved, math.exp(learned.log_beta))
    if not share:
        return learned
    known = every.all_origins >= 0
    genuine, others = (
        _confidence(every.part(rows.nonzero().squeeze(1)), learned.model, math.exp(learned.log_beta))
        for rows in (known, ~known)
    )
    labelled = float(known.double().mean())
    kept = min(1.0, (1 - share) * genuine / (labelled * genuine + (1 - labelled) * others))
    report = replace(learned.report, confidence=kept * learned.report.confidence, stranger_share=share)
    return replace(learned, doubt=1 - (1 - learned.doubt) * kept, report=report)


def _halved(data: TrainingData, chosen: Candidate, seed: int) -> familiarity.Halves:
    """A model of each half of the queries, and the rows of the other half; halves share no known origin, unless most
    queries have the same one.

    Nothing where the model cannot be fitted again, or there is too little.
    """
    if chosen.refit is None or len(data.queries) < familiarity.MIN_QUERIES:
        return []
    one, other = halves_by_origin(data.all_origins, seed)
    return [(chosen.refit(one), other), (chosen.refit(other), one)]


# --- a stream --------------------------------------------------------------------------------------------------------


def follow(family: Family, model: Density, data: TrainingData) -> tuple[Density, FitReport] | None:
    """A few steps from what is known to what the last queries of a stream say; None where it has to be learned anew.

    Args:
        family: The family of the model.
        model: What is known so far.
        data: The last queries of the stream.

    Returns:
        The model and a report of the fit; None where it has to be learned anew.
    """
    units = Units.of(data.means, data.queries)
    measured = data.measured(units)
    found = family.follow(units.enter(model), measured)
    if found is None:
        return None
    loss = evidence(measured, found) + data.log_density_of(units)
    return units.leave(found), FitReport("em", loss, 0, converged=True)
