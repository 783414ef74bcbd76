"""Small images as patterns: scikit-learn's digits and MNIST."""

from __future__ import annotations

import numpy as np
import torch

from ahop.datasets import origins
from ahop.datasets.base import Dataset, register
from ahop.datasets.files import DataFile, fetch

MNIST = DataFile(
    path="mnist.npz",
    sha256=(
        "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
        "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    ),
    url="https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
)


@register("digits", about="1,797 handwritten digits, 8 x 8; comes with scikit-learn")
def digits() -> Dataset:
    """Scikit-learn's digits, with pixels scaled from 0..16 to [-1, 1]."""
    # Here, because scikit-learn doubles the time that importing this library takes.
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Dataset(torch.tensor(bunch.data / 8 - 1, dtype=torch.float32), torch.tensor(bunch.target), (8, 8))


@register(
    "mnist",
    title="MNIST",
    about="60,000 handwritten digits, 28 x 28 (LeCun, Cortes & Burges 1998; CC BY-SA 3.0)",
    files=[MNIST],
    origin=origins.MNIST,
)
def mnist() -> Dataset:
    """MNIST's training images, with pixels scaled from 0..255 to [-1, 1]."""
    with np.load(fetch(MNIST), allow_pickle=False) as archive:
        images, labels = archive["x_train"], archive["y_train"]
    patterns = torch.from_numpy(images.reshape(len(images), -1)).float().div_(127.5).sub_(1)
    return Dataset(patterns, torch.from_numpy(labels.astype(np.int64)), (28, 28))
