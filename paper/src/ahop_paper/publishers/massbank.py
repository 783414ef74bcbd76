"""Spectra of compounds that several laboratories measured, from the records of MassBank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ahop_paper.publishers.given import Given
from ahop_paper.publishers.registry import CONVERTERS

LICENCES = ("CC BY", "CC0", "dl-de/by-2-0")
# Nominal masses, and the least number of them that a spectrum has peaks at.
MASSES, MIN_PEAKS = 700, 3
FULL = 9999


class _Record(NamedTuple):
    compound: str
    accession: str
    laboratory: str
    strengths: np.ndarray


@CONVERTERS.register("ms2")
def ms2(given: Given) -> dict[str, np.ndarray]:
    """Fragments of protonated molecules, by compound and record; each compound's reference is one laboratory.

    Peaks are summed at nominal masses and are relative to the highest. A compound must be known to two laboratories.
    Of those, its reference is the one that knows most compounds.
    """
    records = []
    for path, content in given.walk():
        if path.name.startswith("MSBNK-") and path.suffix == ".txt":
            # A laboratory's records lie in its folder.
            record = _read(content.decode("utf-8", errors="replace"), path.parent.name)
            if record is not None:
                records.append(record)
    known: dict[str, set[str]] = {}
    for record in records:
        known.setdefault(record.compound, set()).add(record.laboratory)
    known = {compound: by for compound, by in sorted(known.items()) if len(by) > 1}
    if not known:
        raise ValueError("no compound has spectra of two laboratories: give the records of all, MSBNK-*.txt")
    covers: dict[str, int] = {}
    for laboratory in (one for by in known.values() for one in by):
        covers[laboratory] = covers.get(laboratory, 0) + 1
    first = {compound: max(sorted(by), key=covers.__getitem__) for compound, by in known.items()}
    place = {compound: index for index, compound in enumerate(known)}
    kept = sorted((one for one in records if one.compound in known), key=lambda one: one[:2])
    row, col = np.nonzero(np.array([one.strengths for one in kept]))
    return {
        "row": row.astype(np.uint16),
        "col": col.astype(np.uint16),
        "val": np.concatenate([one.strengths[one.strengths > 0] for one in kept]),
        "shape": np.array([len(kept), MASSES]),
        "compound": np.array([place[one.compound] for one in kept], dtype=np.uint16),
        "reference": np.array([one.laboratory == first[one.compound] for one in kept]),
    }


def _read(text: str, laboratory: str) -> _Record | None:
    """A record, if it is of the kind that is wanted."""
    fields: dict[str, str] = {}
    peaks: list[tuple[float, float]] = []
    for line in text.splitlines():
        if line.startswith("  ") and "PK$PEAK" in fields:
            at, height = line.split()[:2]
            peaks.append((float(at), float(height)))
        elif ": " in line:
            key, value = line.split(": ", 1)
            if key in ("CH$LINK", "AC$MASS_SPECTROMETRY", "MS$FOCUSED_ION"):
                key, _, value = value.partition(" ")
            fields.setdefault(key, value.strip())
    wanted = (
        fields.get("LICENSE") in LICENCES
        and fields.get("MS_TYPE") == "MS2"
        and "ESI" in fields.get("AC$INSTRUMENT_TYPE", "")
        and fields.get("PRECURSOR_TYPE") == "[M+H]+"
        and "INCHIKEY" in fields
    )
    if not wanted:
        return None
    strengths = np.zeros(MASSES)
    for mass, strength in peaks:
        if 1 <= round(mass) <= MASSES:
            strengths[round(mass) - 1] += strength
    if not strengths.any():
        return None
    relative = np.rint(strengths / strengths.max() * FULL).astype(np.uint16)
    if np.count_nonzero(relative) < MIN_PEAKS:
        return None
    return _Record(fields["INCHIKEY"][:14], fields["ACCESSION"], laboratory, relative)
