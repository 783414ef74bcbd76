"""Items that were measured twice: the variants here were made by instruments, weather and wear, not by software."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop.datasets import origins
from ahop.datasets.base import register
from ahop.datasets.files import DataFile, fetch
from ahop.datasets.images import digits

TABLETS = DataFile(
    path="real/nir_tablets2002.npz",
    sha256=("aa643ae79cd69f99703be5c5bef9262da2f1b19c5d41b604446a0b2bcbd1e936",),
    source="IDRC 2002 Shootout tablets (Eigenvector Research), repacked",
)
GAS = DataFile(
    path="real/gas_drift.npz",
    sha256=("9f3f86c166da68f6d9d557bfbc446f47efba72ded5fd0cbc384a0e053d23463a",),
    source="Gas Sensor Array Drift at Different Concentrations (UCI), repacked without batches 7 and 10",
)
WIFI = DataFile(
    path="real/wifi_ujiindoorloc.npz",
    sha256=("5bc75c31ca0356e406909b339a3cc3b3f894c0a2e90e0226ef0a77bf11c77f08",),
    source="UJIIndoorLoc (UCI), repacked",
)
MS2 = DataFile(
    path="real/ms2_crosslab.npz",
    sha256=("c95bd2576f0f49014659a0e8da32259b391fdd1cc2563b599396382b738f8fe4",),
    source="MassBank-data (2025-05), [M+H]+ spectra of compounds seen by two laboratories or more, repacked",
)
EMBEDDINGS = DataFile(
    path="real/embeddings.npz",
    sha256=("a5b1cc6b2be1376a8347b22811a38f7b6f2b23e924316f6c1343d936fe4738d1",),
    source="the CIFAR-10 test images as small networks embed them that were trained by contrast",
)
# A version of the embeddings, and who made it.
VERSIONS = {
    "tuned": "by the old model, trained on",
    "old_photo": "of another photo, by the old model",
    "new": "by a new model",
    "new_photo": "of another photo, by a new model",
    "wide": "by a third model, in 192 dimensions",
}


class Measured(NamedTuple):
    """Stored patterns ``(N, d)``, queries ``(n, e)``, their origins ``(n,)``, and which of them may be learned from.

    No item is on both sides: the corruption is learned on some items and scored on others. Where queries come from
    another space, they may have another number of dimensions.
    """

    patterns: Tensor
    queries: Tensor
    origins: Tensor
    learn: Tensor


class Drawn(Measured):
    """Items whose second measurement was drawn: to try what is meant for real ones where there are none."""


@register(
    "tablets",
    about="655 tablets by one near-infrared spectrometer, and again by another",
    files=[TABLETS],
    origin=origins.TABLETS,
)
def tablets() -> Measured:
    """Spectra of 650 channels; bias, gain, and noise that differs and is correlated between channels."""
    with np.load(fetch(TABLETS), allow_pickle=False) as archive:
        first, second = archive["instrument1"].astype(float), archive["instrument2"].astype(float)
        learn = archive["part"] == "Train"
    middle, half = (first.max() + first.min()) / 2, 0.75 * (first.max() - first.min())
    return _measured((first - middle) / half, (second - middle) / half, np.arange(len(first)), learn)


@register(
    "gas",
    about="87 gases and concentrations in a sensor array's first month, and up to 3 years on",
    files=[GAS],
    origin=origins.GAS,
)
def gas() -> Measured:
    """Responses of 128 features that drift; a stored pattern is the mean of the first batch."""
    with np.load(fetch(GAS), allow_pickle=False) as archive:
        batch, raw = archive["batch"], archive["x"].astype(float)
        kinds = list(zip(archive["gas"].tolist(), archive["conc_ppmv"].tolist(), strict=True))
    logs = np.sign(raw) * np.log1p(np.abs(raw))
    first = batch == 1
    features = np.clip((logs - logs[first].mean(0)) / logs[first].std(0) / 3, -1, 1)
    stored = sorted({kind for kind, early in zip(kinds, first, strict=True) if early})
    place = {kind: index for index, kind in enumerate(stored)}
    origins = np.array([place.get(kind, -1) for kind in kinds])
    memory = np.array([features[first & (origins == index)].mean(0) for index in range(len(stored))])
    later = ~first & (origins >= 0)
    return _measured(memory, features[later], origins[later], origins[later] % 2 == 0)


@register(
    "wifi",
    title="Wi-Fi",
    about="905 places as one phone hears 520 access points there, and as other phones do",
    files=[WIFI],
    origin=origins.WIFI,
)
def wifi() -> Measured:
    """Signal strengths, -1 where an access point was not heard; scans that heard nothing are left out."""
    with np.load(fetch(WIFI), allow_pickle=False) as archive:
        known = ~archive["is_validation"]
        strength, phones = archive["rss"][known].astype(float), archive["phone"][known]
        spot = np.stack([archive[key][known] for key in ("building", "floor", "space", "relpos")], 1)
    scans = np.where(strength == 100, -1, 2 * (strength + 105) / 105 - 1)
    places = np.unique(spot, axis=0, return_inverse=True)[1].ravel()
    memory, asked = [], np.zeros(len(scans), dtype=bool)
    for place in range(places.max() + 1):
        here = np.flatnonzero(places == place)
        owners, counts = np.unique(phones[here], return_counts=True)
        own = phones[here] == owners[counts.argmax()]
        memory.append(scans[here[own]].mean(0))
        asked[here[~own]] = True
    asked &= (scans > -1).any(1)
    return _measured(np.array(memory), scans[asked], places[asked], places[asked] % 2 == 0)


@register(
    "ms2",
    title="MS2",
    about="1,092 compounds by the mass spectrometer of one laboratory, and by those of others",
    files=[MS2],
    origin=origins.MS2,
)
def ms2() -> Measured:
    """Square roots of intensities at 700 nominal masses; peaks are missing, added, stronger and weaker."""
    with np.load(fetch(MS2), allow_pickle=False) as archive:
        spectra = np.zeros(archive["shape"])
        spectra[archive["row"], archive["col"]] = np.sqrt(archive["val"] / 9999)
        compounds, reference = archive["compound"].astype(int), archive["reference"]
    stored = [spectra[reference & (compounds == compound)].mean(0) for compound in range(compounds.max() + 1)]
    memory = np.array([spectrum / spectrum.max() for spectrum in stored])
    origins = compounds[~reference]
    return _measured(memory, spectra[~reference], origins, origins % 2 == 0)


def _register_embeddings(version: str, about: str) -> None:
    name = "embeddings-" + version.replace("_", "-")
    title = "embeddings, " + version.replace("_", " ")

    @register(
        name,
        title=title,
        about=f"10,000 images as one model embeds them, and {about}",
        files=[EMBEDDINGS],
        origin=origins.EMBEDDINGS,
    )
    def embeddings() -> Measured:
        with np.load(fetch(EMBEDDINGS), allow_pickle=False) as archive:
            memory, queries = archive["old"], archive[version]
        images = np.arange(len(memory))
        order = np.random.default_rng(0).permutation(len(memory))
        return _measured(memory, queries, images, np.isin(images, order[: len(order) // 2]))


for _version, _about in VERSIONS.items():
    _register_embeddings(_version, _about)


@register(
    "digits-again",
    title="digits, drawn again",
    about="1,797 digits, and again as by a worse scanner: drawn",
)
def digits_again() -> Drawn:
    """Every pixel has a gain, a shift and a noise of its own; half of the digits may be learned from."""
    random, patterns = torch.Generator().manual_seed(0), digits().patterns
    gain, shift, noise = (torch.rand(patterns.shape[1], generator=random) for _ in range(3))
    queries = (0.5 + gain) * patterns + shift + noise * torch.randn(patterns.shape, generator=random)
    items = torch.arange(len(patterns))
    return Drawn(patterns, queries, items, items % 2 == 0)


def _measured(patterns: Any, queries: Any, origins: Any, learn: Any) -> Measured:
    return Measured(
        torch.tensor(patterns, dtype=torch.float32),
        torch.tensor(queries, dtype=torch.float32),
        torch.tensor(origins),
        torch.tensor(learn),
    )
