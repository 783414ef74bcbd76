"""The files of publishers, made from what the loaders read: the way back, for small sets in tests."""

import tarfile
import zipfile

import numpy as np


def adult(text, folder):
    """As UCI has them: a blank after each comma, a first line and full stops in the test part."""
    rows = [line.replace(",", ", ").rsplit(", ", 1) for line in text.splitlines()[1:]]
    train, test = ([row for row, part in rows if part == wanted] for wanted in ("train", "test"))
    with zipfile.ZipFile(folder / "adult.zip", "w") as archive:
        archive.writestr("adult.data", "".join(f"{row}\n" for row in train) + "\n")
        archive.writestr("adult.test", "|1x3 Cross validator\n" + "".join(f"{row}.\n" for row in test) + "\n")
        archive.writestr("adult.names", "about")
    return [folder / "adult.zip"]


def bank(text, folder):
    """An archive in an archive."""
    with zipfile.ZipFile(folder / "bank-additional.zip", "w") as inner:
        inner.writestr("bank-additional/bank-additional-full.csv", text)
    with zipfile.ZipFile(folder / "bank+marketing.zip", "w") as outer:
        outer.write(folder / "bank-additional.zip", "bank-additional.zip")
    return [folder / "bank+marketing.zip"]


def vaccine(text, folder):
    """Features in one file, the two labels in another, and the respondent in both."""
    rows = [line.rsplit(",", 2) for line in text.splitlines()]
    features, labels = folder / "training_set_features.csv", folder / "training_set_labels.csv"
    features.write_text("".join(f"{row[0]}\n" for row in rows))
    labels.write_text("".join(f"{row[0].split(',')[0]},{row[1]},{row[2]}\n" for row in rows))
    return [features, labels]


def purchase(text, folder):
    (folder / "online_shoppers_intention.csv").write_bytes("\r\n".join(text.splitlines()).encode())
    return [folder]


def heart(text, folder):
    # A file that was given alone may be called anything.
    (folder / "my-copy.csv").write_text(text)
    return [folder / "my-copy.csv"]


def corel(animal):
    def write(arrays, folder):
        lines = ["# instance:bag:label feature:value"]
        for place, (row, owner) in enumerate(zip(arrays["X"], arrays["bag"], strict=True)):
            pairs = " ".join(f"{index + 1}:{value!r}" for index, value in enumerate(map(float, row)))
            lines.append(f"{place}:{owner}:{1 if arrays['y'][owner] else -1} {pairs}")
        path = folder / "data_100x100.svm"
        path.write_text("\n".join(lines))
        with tarfile.open(folder / "MIL-Data.tgz", "w:gz") as archive:
            archive.add(path, f"MilData/{animal}/data_100x100.svm")
        return [folder / "MIL-Data.tgz"]

    return write


def musk(file):
    def write(arrays, folder):
        rows = zip(arrays["X"].tolist(), arrays["bag"].tolist(), strict=True)
        lines = [
            f"MUSK-{owner},{owner}_{place},{','.join(map(str, row))},{arrays['y'][owner]}."
            for place, (row, owner) in enumerate(rows)
        ]
        (folder / file).write_text("\n".join(lines) + "\n")
        return [folder]

    return write


def ucsb(arrays, folder):
    from scipy.io import savemat

    made = {
        "data": arrays["X"].astype(float),
        "nlab": arrays["y"][arrays["bag"]][:, None] + 1.0,
        "ident": {"ident": np.arange(len(arrays["bag"])), "milbag": arrays["bag"][:, None] + 1.0},
    }
    savemat(folder / "ucsb_breast.mat", {"x": made})
    return [folder / "ucsb_breast.mat"]


def tablets(arrays, folder):
    from scipy.io import savemat

    parts = {"calibrate": "Train", "validate": "Validate", "test": "Test"}
    spectra = {
        f"{part}_{key}": {"data": arrays[f"instrument{key}"][arrays["part"] == name].astype(float)}
        for part, name in parts.items()
        for key in ("1", "2")
    }
    savemat(folder / "nir_shootout_2002.mat", spectra)
    return [folder / "nir_shootout_2002.mat"]


def gas(arrays, folder):
    for number in range(1, 11):
        lines = [
            f"{arrays['gas'][row]};{arrays['conc_ppmv'][row]:f} "
            + " ".join(f"{place + 1}:{value!r}" for place, value in enumerate(map(float, arrays["x"][row])))
            for row in np.flatnonzero(arrays["batch"] == number)
        ]
        # The batches that are left out are there, too.
        lines += ["1;10.000000 1:1.0 2:2.0"] * (number in (7, 10))
        (folder / f"batch{number}.dat").write_text("\n".join(lines) + "\n")
    return [folder]


def wifi(arrays, folder):
    stations = [f"WAP{place + 1:03}" for place in range(arrays["rss"].shape[1])]
    # The publisher's order; what no loader reads is zero here.
    columns = ["LONGITUDE", "FLOOR", "BUILDINGID", "SPACEID", "RELATIVEPOSITION", "USERID", "PHONEID"]
    own = {"FLOOR": "floor", "BUILDINGID": "building", "SPACEID": "space", "RELATIVEPOSITION": "relpos"}
    own["PHONEID"] = "phone"
    cells = [arrays[own[name]] if name in own else np.zeros(len(arrays["rss"]), int) for name in columns]
    rows = np.column_stack([arrays["rss"], *cells])
    for file, chosen in (("trainingData", ~arrays["is_validation"]), ("validationData", arrays["is_validation"])):
        lines = [",".join(f'"{name}"' for name in (*stations, *columns))]
        lines += [",".join(map(str, row)) for row in rows[chosen].tolist()]
        (folder / f"{file}.csv").write_text("\n".join(lines))
    return [folder / "trainingData.csv", folder / "validationData.csv"]


RECORD = """ACCESSION: {accession}
LICENSE: {licence}
CH$LINK: CAS 1-2-3
CH$LINK: INCHIKEY {compound}-UHFFFAOYSA-N
AC$INSTRUMENT_TYPE: LC-ESI-QTOF
AC$MASS_SPECTROMETRY: MS_TYPE {level}
MS$FOCUSED_ION: PRECURSOR_TYPE {ion}
PK$ANNOTATION: m/z tentative_formula
  58.0284 C2H4NO+
PK$NUM_PEAK: {count}
PK$PEAK: m/z int. rel.int.
{peaks}
//
"""


def record(folder, laboratory, accession, compound, peaks, licence="CC BY", level="MS2", ion="[M+H]+"):
    """One file of MassBank."""
    lines = "\n".join(f"  {mass} {strength} 999" for mass, strength in peaks)
    told = {"compound": compound, "licence": licence, "level": level, "ion": ion, "count": len(peaks)}
    path = folder / laboratory / f"MSBNK-{accession}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(RECORD.format(accession=f"MSBNK-{accession}", peaks=lines, **told))


WRITERS = {
    "adult": adult,
    "bank": bank,
    "vaccine": vaccine,
    "purchase": purchase,
    "heart": heart,
    "tiger": corel("Tiger"),
    "fox": corel("Fox"),
    "elephant": corel("Elephant"),
    "ucsb": ucsb,
    "musk1": musk("clean1.data"),
    "musk2": musk("clean2.data"),
    "tablets": tablets,
    "gas": gas,
    "wifi": wifi,
}
