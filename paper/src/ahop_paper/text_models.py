"""10,000 definitions of WordNet as two public text models embed them, in spaces of unlike width."""

from __future__ import annotations

import numpy as np
import torch

from ahop.datasets import Measured
from ahop.datasets.files import DataFile, fetch

TEXT = DataFile(
    path="real/text_models.npz",
    sha256=("4b3b1ba3ab27361478b55139e8bec66567cfc3fe9b91b21abd9547c269e17d95",),
    source="10,000 definitions of WordNet 3 as two public text models embed them",
)
OTHER = {"glove": "llama", "llama": "glove"}


def load(asking: str, number: int) -> Measured:
    """Asked by one model, ``"glove"`` or ``"llama"``, and stored by the other; learned from a half that is drawn."""
    with np.load(fetch(TEXT), allow_pickle=False) as archive:
        stored, asked = (torch.from_numpy(archive[side]).float() for side in (OTHER[asking], asking))
    every, learn = torch.arange(len(stored)), torch.zeros(len(stored), dtype=torch.bool)
    learn[torch.from_numpy(np.random.default_rng(number).permutation(len(stored))[: len(stored) // 2])] = True
    return Measured(stored, asked, every, learn)
