"""Photographs with a class each: CIFAR-10, CIFAR-100 and Tiny ImageNet.

Where a compact copy lies in a data folder, that is read (of the last two it holds a part, see ``about``); else the
published archive is, from the cache or a download.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop._extras import require
from ahop._progress import progress
from ahop.datasets import origins
from ahop.datasets.base import register
from ahop.datasets.files import DataFile, fetch, find

_KRIZHEVSKY = "https://www.cs.toronto.edu/~kriz"
CIFAR10 = DataFile(
    path="cifar-10-binary.tar.gz",
    sha256=("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",),
    url=f"{_KRIZHEVSKY}/cifar-10-binary.tar.gz",
)
CIFAR100 = DataFile(
    path="cifar-100-binary.tar.gz",
    sha256=("58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",),
    url=f"{_KRIZHEVSKY}/cifar-100-binary.tar.gz",
)
TINY = DataFile(
    path="tiny-imagenet-200.zip",
    sha256=("6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",),
    url="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
)
COMPACT_CIFAR10 = DataFile(
    path="cifar10/labels.npz", sha256=("b7817019a95f42df948eef86e70b736fb1fe56fea4c40a011acb9ed0abd9ffa3",)
)
COMPACT_CIFAR100 = DataFile(
    path="cifar100/labels.npz", sha256=("dfe04bd9cd19053a4db48f0111a967ade57d9c778fd80a0fe88bbdcef0612b28",)
)
COMPACT_TINY = DataFile(
    path="tiny_imagenet_subset.npz", sha256=("74f8526fa82e733b94d95bc759a7bf1a31faeeed40671ab887263b0c27a414dd",)
)
# Of the pixels of the training and the test images, one image after another.
_PIXELS = {
    "cifar10": (
        "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
    ),
    "cifar100": (
        "7960dde6360c314c5709828c293e8d545755a0c58cd85cce1a810a550f8c976a",
        "94a0aac5b40d9d28779a4ec4e5cd63aab833736aa10c400b2e1d2055271d8761",
    ),
}


class Photos(NamedTuple):
    """Images ``(n, height, width, 3)`` of bytes and their classes ``(n,)``, to train and to test with; class names."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
    names: list[str]


@register(
    "cifar10",
    title="CIFAR-10",
    about="60,000 photographs, 32 x 32, of 10 kinds of thing (Krizhevsky 2009)",
    files=[CIFAR10],
    origin=origins.CIFAR,
    copy=COMPACT_CIFAR10,
)
def cifar10() -> Photos:
    """The official 50,000 to train with and 10,000 to test."""
    if find(COMPACT_CIFAR10):
        return _compact_cifar("cifar10", COMPACT_CIFAR10)
    batches = [f"data_batch_{number}.bin" for number in range(1, 6)]
    return _cifar(CIFAR10, batches, "test_batch.bin", "batches.meta.txt", labels=1)


@register(
    "cifar100",
    title="CIFAR-100",
    about="60,000 photographs, 32 x 32, of 100 kinds; the compact copy has 200 of 500 a kind to train with",
    files=[CIFAR100],
    origin=origins.CIFAR,
    copy=COMPACT_CIFAR100,
)
def cifar100() -> Photos:
    """The official test images, and all official training images or the first 200 of each class."""
    if find(COMPACT_CIFAR100):
        return _compact_cifar("cifar100", COMPACT_CIFAR100)
    return _cifar(CIFAR100, ["train.bin"], "test.bin", "fine_label_names.txt", labels=2)


@register(
    "tiny-imagenet",
    title="Tiny ImageNet",
    about="120,000 photographs, 64 x 64, of 200 kinds; the compact copy has 30 of 500 a kind to train with",
    files=[TINY],
    origin=origins.TINY,
    copy=COMPACT_TINY,
)
def tiny_imagenet() -> Photos:
    """Training images and, to test with, the validation images (the test images have no public labels)."""
    return _compact_tiny() if find(COMPACT_TINY) else _tiny(fetch(TINY))


def _compact_cifar(name: str, labels: DataFile) -> Photos:
    """Lossless sheets of 1,000 images: 25 rows of 40."""
    require("PIL", extra="images")
    from PIL import Image

    path = fetch(labels)
    with np.load(path, allow_pickle=False) as archive:
        given = {key: archive[key] for key in ("train", "test", "names")}
    parts = []
    for part, digest in zip(("train", "test"), _PIXELS[name], strict=True):
        sheets = sorted(path.parent.glob(f"{part}_*.webp"))
        if len(sheets) != len(given[part]) // 1000:
            raise ValueError(f"{path.parent} is damaged: {len(sheets)} sheets of {part} images, fewer than expected")
        tiles = [
            np.asarray(Image.open(sheet).convert("RGB")).reshape(25, 32, 40, 32, 3).swapaxes(1, 2) for sheet in sheets
        ]
        pixels = np.concatenate(tiles).reshape(-1, 32, 32, 3)
        if hashlib.sha256(pixels.tobytes()).hexdigest() != digest:
            raise ValueError(f"{path.parent} is damaged: the {part} images are not the ones expected")
        parts.append(pixels)
    return _photos([parts[0], given["train"], parts[1], given["test"]], given["names"].tolist())


def _cifar(archive: DataFile, train: list[str], test: str, names: str, labels: int) -> Photos:
    """Records of one label or two, the last being the one that counts, and 3 planes of 32 x 32."""
    with tarfile.open(fetch(archive)) as tar:
        members = {Path(member.name).name: member for member in tar.getmembers() if member.isfile()}

        def read(name: str) -> bytes:
            file = tar.extractfile(members[name])
            assert file is not None
            return file.read()

        def records(files: Iterable[str]) -> np.ndarray:
            return np.concatenate([np.frombuffer(read(file), np.uint8).reshape(-1, labels + 3072) for file in files])

        parts: list[Any] = []
        for table in (records(train), records([test])):
            planes = table[:, labels:].reshape(-1, 3, 32, 32)
            parts += [np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), table[:, labels - 1]]
        return _photos(parts, read(names).decode().split())


def _compact_tiny() -> Photos:
    """JPEG files end to end, with the place where each ends."""
    with np.load(fetch(COMPACT_TINY), allow_pickle=False) as archive:
        parts: list[Any] = []
        for part in ("train", "val"):
            files = np.split(archive[f"{part}_jpeg"], archive[f"{part}_end"][:-1])
            parts += [_decode([file.tobytes() for file in files], lambda file: file), archive[f"{part}_y"]]
        return _photos(parts, archive["names"].tolist())


def _tiny(path: Path) -> Photos:
    with zipfile.ZipFile(path) as archive:
        root = "tiny-imagenet-200"
        kinds = sorted(archive.read(f"{root}/wnids.txt").decode().split())
        words = dict(
            line.split("\t", 1) for line in archive.read(f"{root}/words.txt").decode().splitlines() if "\t" in line
        )
        place = {kind: index for index, kind in enumerate(kinds)}
        train = sorted(name for name in archive.namelist() if "/train/" in name and name.endswith(".JPEG"))
        lines = archive.read(f"{root}/val/val_annotations.txt").decode().splitlines()
        val = [line.split("\t")[:2] for line in lines]
        parts = [
            _decode(train, archive.read),
            np.array([place[name.split("/")[2]] for name in train]),
            _decode([f"{root}/val/images/{file}" for file, _ in val], archive.read),
            np.array([place[kind] for _, kind in val]),
        ]
        return _photos(parts, [words[kind] for kind in kinds])


def _decode(files: list[Any], read: Callable[[Any], bytes]) -> np.ndarray:
    require("PIL", extra="images")
    from PIL import Image

    images = np.empty((len(files), 64, 64, 3), np.uint8)
    with progress("decoding", len(files)) as bar:
        for index, file in enumerate(files):
            images[index] = np.asarray(Image.open(io.BytesIO(read(file))).convert("RGB"))
            bar.advance()
    return images


def _photos(parts: list[Any], names: list[str]) -> Photos:
    """From images and labels to train with, and images and labels to test with."""
    train, train_labels, test, test_labels = parts
    return Photos(
        torch.from_numpy(train),
        torch.from_numpy(train_labels.astype(np.int64)),
        torch.from_numpy(test),
        torch.from_numpy(test_labels.astype(np.int64)),
        names,
    )
