"""Bags of instances with one label each: the data sets of multiple-instance learning, and two that test a model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop.datasets import origins
from ahop.datasets.base import register
from ahop.datasets.files import DataFile, fetch

_COREL = "Andrews, Tsochantaridis & Hofmann 2002, repacked"
_MUSK = "Dietterich, Lathrop & Lozano-Perez 1997 (UCI), repacked"


def _file(name: str, sha256: str, source: str) -> DataFile:
    return DataFile(path=f"mil/{name}.npz", sha256=(sha256,), source=source)


FILES = {
    "tiger": _file("tiger", "2294ab2ee106d68aeda20aa51be01ede80fb3f2c173ba45c12f79c79b7a7869a", _COREL),
    "fox": _file("fox", "11ae623d15a046506e022dd3f9e7aa2761abb54caefa5b0cf22ff869d4414f17", _COREL),
    "elephant": _file("elephant", "5f680b10bfcd4ae927588c0b52feb6398a2ccce1902ee173b672c0a7dd27c036", _COREL),
    "ucsb": _file(
        "ucsb_breast_cancer",
        "64b3f95a3a48fce0087e5fdfe36d57cf3dd79e92dfc996125ad17ac33afd2d79",
        "Kandemir, Zhang & Hamprecht 2014, features of the UCSB Bio-Segmentation images, repacked",
    ),
    "musk1": _file("musk1", "302e2f5f8603caf99d1b7777e7c608a2f00b3068e190856de321774c9e077005", _MUSK),
    "musk2": _file("musk2", "7d4265b0ebcceb2909e5bba20e9f97bef001fcb9915f7a16a02103f680d85781", _MUSK),
}


class Bags(NamedTuple):
    """Bags ``(n_i, d)``, as they were published, and a label 0 or 1 for each, ``(B,)``."""

    bags: list[Tensor]
    labels: Tensor


def _load(name: str) -> Bags:
    with np.load(fetch(FILES[name]), allow_pickle=False) as archive:
        instances = torch.from_numpy(archive["X"].astype(np.float32))
        owner, labels = archive["bag"], torch.from_numpy(archive["y"].astype(np.int64))
    # All instances of a bag are adjacent.
    sizes = np.bincount(owner, minlength=len(labels)).tolist()
    return Bags(list(instances.split(sizes)), labels)


@register(
    "tiger",
    title="Tiger",
    about="200 images as bags of segments: is there a tiger? (Corel)",
    files=[FILES["tiger"]],
    origin=origins.TIGER,
)
def tiger() -> Bags:
    """230 features of colour, texture and shape; 1 to 13 segments."""
    return _load("tiger")


@register(
    "fox",
    title="Fox",
    about="200 images as bags of segments: is there a fox? (Corel)",
    files=[FILES["fox"]],
    origin=origins.FOX,
)
def fox() -> Bags:
    """As :func:`tiger`."""
    return _load("fox")


@register(
    "elephant",
    title="Elephant",
    about="200 images as bags of segments: is there an elephant? (Corel)",
    files=[FILES["elephant"]],
    origin=origins.ELEPHANT,
)
def elephant() -> Bags:
    """As :func:`tiger`."""
    return _load("elephant")


@register(
    "ucsb",
    title="UCSB",
    about="58 breast tissues as bags of patches: is it malignant? (UCSB)",
    files=[FILES["ucsb"]],
    origin=origins.UCSB,
)
def ucsb() -> Bags:
    """708 features on scales of their own; 21 to 40 patches."""
    return _load("ucsb")


@register(
    "musk1",
    title="Musk 1",
    about="92 molecules as bags of shapes: does it smell of musk?",
    files=[FILES["musk1"]],
    origin=origins.MUSK1,
)
def musk1() -> Bags:
    """166 features; 2 to 40 shapes."""
    return _load("musk1")


@register(
    "musk2",
    title="Musk 2",
    about="102 molecules as bags of up to 1,044 shapes: musk?",
    files=[FILES["musk2"]],
    origin=origins.MUSK2,
)
def musk2() -> Bags:
    """As :func:`musk1`, with more shapes."""
    return _load("musk2")


def standard_check(count: int, *, train: bool, seed: int = 0, dim: int = 16, background: int = 10) -> Bags:
    r"""Does a model keep to the standard assumption? A bag is positive because of something in it.

    Positive bags hold one to three instances of a concept, :math:`N(0, 3^2)` or :math:`N(1, 1)`. In training, each
    negative bag is marked by an instance near -10: easy to learn, and no reason to be negative. In the test that
    mark is in the positive bags instead. Who learned the mark is right less often than a coin (Raff & Holt 2023).

    Args:
        count: How many bags, half of them positive.
        train: Whether these are for training or for the test.
        seed: Of the draw.
        dim: Width of an instance.
        background: Instances :math:`N(0, 1)` in every bag.
    """
    generator = torch.Generator().manual_seed(seed)
    bags, labels = [], torch.arange(count) % 2
    for label in labels.tolist():
        parts = [torch.randn(background, dim, generator=generator)]
        if label:
            concepts = torch.randn(_draw(1, 4, generator), dim, generator=generator)
            wide = torch.rand(len(concepts), 1, generator=generator) < 0.5
            parts.append(torch.where(wide, 3 * concepts, 1 + concepts))
        if train != bool(label):
            parts.append(0.1 * torch.randn(1, dim, generator=generator) - 10)
        bags.append(torch.cat(parts))
    return Bags(bags, labels)


def frequency_check(count: int, *, train: bool, seed: int = 0, dim: int = 16) -> Bags:
    r"""Does a model tell two concepts from one that comes often?

    Positive bags hold an instance near 2 and one near 3; negative bags hold one of the two kinds alone: once in
    training, 35 to 44 times in the test (Raff & Holt 2023). Arguments as in :func:`standard_check`.

    Args:
        count: The number of bags, every other one positive.
        train: Draw bags to learn from, or else to test with.
        seed: Seed of the random numbers.
        dim: The number of values of an instance.
    """
    generator = torch.Generator().manual_seed(seed)
    bags, labels = [], torch.arange(count) % 2
    for label in labels.tolist():
        parts = [torch.randn(_draw(1, 10, generator), dim, generator=generator)]
        for concept in (2, 3) if label else (_draw(2, 4, generator),):
            often = 1 if train or label else _draw(35, 45, generator)
            parts.append(concept + 0.1 * torch.randn(often, dim, generator=generator))
        bags.append(torch.cat(parts))
    return Bags(bags, labels)


def _draw(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high, (1,), generator=generator))
