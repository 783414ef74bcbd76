"""Bags: an array of instances, the bag of each, and a label for each bag."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial

import numpy as np

from ahop_paper.publishers.given import Given
from ahop_paper.publishers.registry import CONVERTERS

Arrays = dict[str, np.ndarray]


def _corel(animal: str, given: Given) -> Arrays:
    """Lines ``instance:bag:label feature:value feature:value ...``, features counted from 1."""
    owners, labels, rows = [], [], []
    for line in given.text(f"{animal}/data_100x100.svm").splitlines():
        head, _, rest = line.strip().partition(" ")
        if not head or head.startswith("#"):
            continue
        try:
            _, owner, label = head.split(":")
            rows.append({int(place): float(value) for place, value in (pair.split(":") for pair in rest.split())})
        except ValueError:
            raise ValueError(f"a line must read instance:bag:label feature:value ..., got {line[:60]!r}") from None
        owners.append(owner)
        labels.append(float(label) > 0)
    instances = np.zeros((len(rows), max(max(row) for row in rows)), dtype=np.float32)
    for target, row in zip(instances, rows, strict=True):
        target[[place - 1 for place in row]] = list(row.values())
    return _bags(instances, owners, labels)


for _animal in ("Tiger", "Fox", "Elephant"):
    CONVERTERS.add(_animal.lower(), partial(_corel, _animal))


def _musk(file: str, given: Given) -> Arrays:
    """Lines of a molecule, a conformation, 166 whole numbers and the class."""
    rows = [line.split(",") for line in given.text(file).splitlines() if line.strip()]
    instances = np.array([[int(cell) for cell in row[2:-1]] for row in rows], dtype=np.int16)
    return _bags(instances, [row[0] for row in rows], [float(row[-1]) > 0 for row in rows])


CONVERTERS.add("musk1", partial(_musk, "clean1.data"))
CONVERTERS.add("musk2", partial(_musk, "clean2.data"))


@CONVERTERS.register("ucsb")
def ucsb(given: Given) -> Arrays:
    """A MATLAB structure of instances, the class of each (1 or 2) and its bag."""
    # Here, because it takes long to import.
    from scipy.io import loadmat

    made = loadmat(io.BytesIO(given.data("ucsb_breast.mat")))["x"][0, 0]
    owners = made["ident"][0, 0]["milbag"].ravel().tolist()
    return _bags(made["data"].astype(np.float32), owners, (made["nlab"].ravel() > 1).tolist())


def _bags(instances: np.ndarray, owners: Sequence[object], labels: Sequence[bool]) -> Arrays:
    """Instances of a bag made adjacent, bags in the order in which they come; positive if one instance is."""
    order = {owner: place for place, owner in enumerate(dict.fromkeys(owners))}
    bag = np.array([order[owner] for owner in owners], dtype=np.int32)
    positive = np.zeros(len(order), dtype=np.int8)
    np.maximum.at(positive, bag, np.array(labels, dtype=np.int8))
    sorted_ = np.argsort(bag, kind="stable")
    return {"X": instances[sorted_], "bag": bag[sorted_], "y": positive}
