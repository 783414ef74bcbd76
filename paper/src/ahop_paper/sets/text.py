"""Definitions that one text model stored and another asks for, and what is tried for embeddings of images."""

from __future__ import annotations

from ahop.datasets import Measured, register
from ahop.datasets.origins import Origin
from ahop_paper import text_models
from ahop_paper.real_models import also_for, of

_TITLES = {"glove": "GloVe", "llama": "WordLlama"}
_ORIGIN = Origin(
    "made for this project from the definitions of WordNet 3",
    "as WordNet, GloVe and WordLlama",
    "7 MB",
    note="Not published elsewhere: it has to come with a copy of this project's data folder.",
)


def _register_texts(asking: str, stored: str) -> None:
    @register(
        f"text-{asking}",
        about=f"10,000 definitions as {_TITLES[stored]} embeds them, and by {_TITLES[asking]}",
        files=[text_models.TEXT],
        origin=_ORIGIN,
    )
    def texts() -> Measured:
        return text_models.load(asking, 0)


for _asking, _stored in text_models.OTHER.items():
    _register_texts(_asking, _stored)

also_for(
    of("text"),
    *("self-learned rotation", "VecMap"),
    *(f"{name}{count}" for name in ("Procrustes", "residual MLP") for count in (" 500", " 2000", "")),
)
