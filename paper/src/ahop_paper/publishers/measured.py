"""Items that were measured twice: spectra of tablets, gas sensors, access points."""

from __future__ import annotations

import io

import numpy as np

from ahop.datasets.origins import GAS
from ahop_paper.publishers.given import Given
from ahop_paper.publishers.registry import CONVERTERS

Arrays = dict[str, np.ndarray]


@CONVERTERS.register("tablets")
def tablets(given: Given) -> Arrays:
    """MATLAB structures with the spectra of three parts by two instruments."""
    # Here, because it takes long to import.
    from scipy.io import loadmat

    archive = loadmat(io.BytesIO(given.data("nir_shootout_2002.mat")))
    names = {"calibrate": "Train", "validate": "Validate", "test": "Test"}
    spectra = {key: [archive[f"{part}_{key}"]["data"][0, 0] for part in names] for key in ("1", "2")}
    counts = [len(part) for part in spectra["1"]]
    return {
        **{f"instrument{key}": np.concatenate(parts).astype(np.float32) for key, parts in spectra.items()},
        "part": np.repeat(np.array(list(names.values())), counts),
    }


@CONVERTERS.register("gas")
def gas(given: Given) -> Arrays:
    """Lines ``gas;concentration 1:value 2:value ...``, a file for each batch."""
    kinds, concentrations, batches, rows = [], [], [], []
    for file in GAS.files:
        for line in given.text(file).splitlines():
            if line.strip():
                head, *pairs = line.split()
                kind, concentration = head.split(";")
                kinds.append(int(kind))
                concentrations.append(float(concentration))
                batches.append(int(file.removeprefix("batch").removesuffix(".dat")))
                rows.append([float(pair.partition(":")[2]) for pair in pairs])
    return {
        "x": np.array(rows, dtype=np.float32),
        "gas": np.array(kinds, dtype=np.uint8),
        "conc_ppmv": np.array(concentrations, dtype=np.float32),
        "batch": np.array(batches, dtype=np.uint8),
    }


@CONVERTERS.register("wifi")
def wifi(given: Given) -> Arrays:
    """A row for each scan: 520 strengths, where it was, and the phone."""
    tables = [given.text(file).splitlines() for file in ("trainingData.csv", "validationData.csv")]
    head = tables[0][0].replace('"', "").split(",")
    if tables[1][0].replace('"', "").split(",") != head:
        raise ValueError("trainingData.csv and validationData.csv must have the same columns")
    cells = np.array([line.split(",") for lines in tables for line in lines[1:] if line.strip()], dtype=float)
    places = {"floor": "FLOOR", "building": "BUILDINGID", "relpos": "RELATIVEPOSITION", "phone": "PHONEID"}
    first = sum(1 for line in tables[0][1:] if line.strip())
    return {
        "rss": cells[:, [place for place, name in enumerate(head) if name.startswith("WAP")]].astype(np.int8),
        **{key: cells[:, head.index(name)].astype(np.int8) for key, name in places.items()},
        "space": cells[:, head.index("SPACEID")].astype(np.int16),
        "is_validation": np.arange(len(cells)) >= first,
    }
