"""What to say of a linkage: a few lines that a terminal, a log and a report can all show."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from ahop._checks import UNKNOWN, within
from ahop.learning.report import REJECT, VERIFIED, beats_chance, of_strangers
from ahop.linkage.alternatives import Alternative
from ahop.linkage.linking import NOTHING, Linkage
from ahop.linkage.rows import briefly, in_rows
from ahop.memories.checking import FIRST, MATCHES, Certificate, Decision
from ahop.tables.table import counted

# How often a confidence interval may miss the truth on one side.
_MISS_RATE = 0.05


class Verdict(NamedTuple):
    """Whether what is asked for was reached, and a sentence on it."""

    passed: bool
    text: str


def verdict(linkage: Linkage, wanted: float) -> Verdict:
    """Whether matches are as often right as is wanted, by the lower end of the confidence interval."""
    within(wanted, "require", 0.0, 1.0)
    if linkage.evidence is None:
        few = "no number of answers can prove it" if wanted == 1 else f"{needed(wanted)} answers, all right, would do"
        these = " of these rows" if linkage.earlier else ""
        return Verdict(
            False, f"not checked: {100 * wanted:g} % is wanted, and nobody has checked an answer{these}; {few}"
        )
    found = replace(linkage.evidence, wanted=wanted)
    return Verdict(found.verdict is Decision.PASS, "; next: ".join(filter(None, (found.outcome, found.advice))))


def needed(wanted: float) -> int:
    """How many answers, all of them right, prove an accuracy.

    Example:
        >>> needed(0.95)
        59
        >>> print(*(ahop.Certificate(count, count, wanted=0.95).verdict for count in (58, 59)))
        WARN PASS
    """
    return max(1, math.ceil(math.log(_MISS_RATE) / math.log(wanted))) if 0 < wanted < 1 else 1


def lines(linkage: Linkage, checks: str | None = None) -> list[tuple[str, str]]:
    """What was read, what happened, how right it is and what else there is: a word and a sentence each.

    Args:
        linkage: What was matched.
        checks: The file that rows to check were written to (:func:`ahop.linkage.asked`), or None.
    """
    report = linkage.memory.report
    told = [("note", note) for note in linkage.notes]
    if report is not None:
        told.append(("what happened", _happened(linkage) if report.found else NOTHING))
        if report.sample:
            told.append(("learned from", in_rows(report.sample)))
    told += [("how right", right(linkage)), ("rests on", _basis(linkage, checks))]
    told += [("beside it", text) for text in _beside(linkage)]
    told.append(("strangers", _strangers(linkage, linkage.reject)))
    if linkage.one_to_one and linkage.found:
        told.append(("one to one", _together(linkage)))
    elif linkage.found:
        told.append(("repeats", f"{counted(linkage.repeats, 'stored row')} matched by more than one row"))
    return [*told, ("time", f"{linkage.seconds:.1f} s")]


def to_check(checks: str | None) -> str:
    """How to have answers checked.

    Args:
        checks: As in :func:`lines`.
    """
    if checks is None:
        return f"--ask {VERIFIED} writes the rows to check, --answers takes them back"
    return f"fill in the column 'answer' of {checks}, and give it to --answers"


def _happened(linkage: Linkage) -> str:
    assert linkage.memory.report is not None
    described = briefly(linkage.memory.similarity, linkage.incoming.columns)
    return f"{linkage.memory.report.chosen}. {described}"


def _together(linkage: Linkage) -> str:
    matched, rows = int((linkage.indices >= 0).sum()), counted(len(linkage.incoming), "row")
    if linkage.repeats:
        shared = counted(linkage.repeats, "stored row")
        return f"not true of these data: known rows have {shared} in common; leave --one-to-one out"
    told = f"{matched:,} of {rows} have a stored row of their own"
    if not linkage.changed and not linkage.strained:
        return f"{told}; that changed no match"
    many = len(linkage.strained)
    return (
        f"{told}; that changed the match of {counted(linkage.changed, 'row')}, and {counted(many, 'stored row')} "
        f"{'was' if many == 1 else 'were'} asked for more often than there is room"
    )


def _strangers(linkage: Linkage, reject: float | None) -> str:
    if reject is None:
        usual = f"--reject {REJECT:g} refuses rows that are less familiar than {100 * (1 - REJECT):g} % of genuine ones"
        checked = linkage.certificate
        if checked is not None and checked.strangers:
            return f"{checked.strangers} of {checked.labels} checked rows are none of the stored ones; {usual}"
        return f"not looked for: {usual}"
    if not linkage.found:
        return f"unknown: {NOTHING}, so that no row has a match"
    if linkage.memory.similarity.least_familiar(reject) == -math.inf:
        return f"none can be told: too few rows were learned from to refuse {100 * reject:g} % of genuine ones"
    rows, refusal = counted(len(linkage.incoming), "row"), linkage.memory.similarity.refusal(reject)
    low, high = (f"{100 * end:.0f}" for end in refusal.kept)
    told = f"{int(linkage.strangers.sum()):,} of {rows}; of genuine rows, {low} to {high} % are kept (90 % confidence "
    told += "interval)"
    return f"{told}; {of_strangers(refusal.refused, refusal.known, reject)}" if refusal.known else told


def right(linkage: Linkage) -> str:
    """How right the matches are, by what has judged them."""
    found, report = linkage.evidence, linkage.memory.report
    if found is not None:
        return found.outcome
    if linkage.earlier is not None and linkage.found:
        before = linkage.earlier.certificate
        how = ", one to one" if before.of == MATCHES and not linkage.one_to_one else ""
        return f"unknown: none of these rows has been checked; of the batch learned from, {before.outcome}{how}"
    if report is None or not report.found or math.isnan(report.confidence):
        return "unknown: no answer has been checked"
    if not linkage.one_to_one:
        return report.unchecked
    matched = linkage.probabilities[(linkage.origins == UNKNOWN) & (linkage.indices >= 0)]
    return replace(report, confidence=float(matched.mean())).unchecked.replace(FIRST, MATCHES)


def _basis(linkage: Linkage, checks: str | None) -> str:
    if linkage.certificate is not None:
        return f"{counted(linkage.certificate.labels, 'checked answer')}"
    if linkage.evidence is not None:
        return f"{counted(linkage.evidence.labels, 'known pair')}, held out while learning"
    if linkage.earlier is not None:
        kind, how = ("checked answer", "") if linkage.earlier.checked else ("known pair", ", held out while learning")
        told = f"{counted(linkage.earlier.certificate.labels, kind)} of an earlier batch{how}"
        return f"{told}; they hold for this one if it is alike; {to_check(checks)}"
    return f"no labels: {to_check(checks)}"


def _beside(linkage: Linkage) -> list[str]:
    """The plain alternatives, and whether one of them should be used instead."""
    if not linkage.alternatives:
        told = "no plain alternative: columns differ, and there are too few known pairs for a regression"
        return [] if linkage.model.shared else [told]
    judged = [one for one in linkage.alternatives if one.labels]
    if not judged:
        return [
            f"{one.name} gives the same match for {100 * one.agreement:.0f} % of rows; without known pairs or checked "
            "answers nobody can say which is right more often"
            for one in linkage.alternatives
        ]
    told = ", ".join(f"{one.name} {100 * one.accuracy:.0f} %" for one in judged)
    kind = "known pair" if judged[0].behind is None else "checked answer"
    found = linkage.judged if judged[0].behind is None else linkage.certificate
    assert found is not None
    return [f"{told} of {counted(judged[0].labels, kind)}", _advice(linkage, judged, found, kind)]


def _advice(linkage: Linkage, judged: list[Alternative], found: Certificate, kind: str) -> str:
    """Whether to use one of them, by labels of this kind."""
    if found.labels < VERIFIED:
        return f"too few {kind}s to compare: {VERIFIED} or more would tell"
    compared = [
        (one, _behind(one, found)) for one in judged if beats_chance(one.right, one.labels, len(linkage.stored))
    ]
    if not compared:
        return "none of them is right more often than by chance"
    # The simplest that is as good.
    for one, behind in compared:
        if behind < 0:
            return f"{one.name} is better here, by more than chance: use it"
        if behind == 0 and one.accuracy >= found.accuracy:
            return f"{one.name} is as good here: use it"
    if close := " or ".join(one.name for one, behind in compared if behind == 0):
        return f"{close} may be as good: {counted(found.labels, kind)} cannot tell"
    return "none of them is as good: they are right less often, by more than chance"


def _behind(one: Alternative, found: Certificate) -> int:
    """As ``one.behind``; where pairs were not judged side by side, by the interval of what matches were found to be."""
    low, high = found.interval
    return (one.accuracy < low) - (one.accuracy > high) if one.behind is None else one.behind
