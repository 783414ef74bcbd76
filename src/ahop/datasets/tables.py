"""Tables of people and their choices: the five of the paper's Table 3, each with two sets of features.

``"sound"`` is what one would build a model on. ``"benchmark"`` is what earlier benchmarks fed their models, oddities
included, for comparison with published figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ahop._checks import choice
from ahop._extras import require
from ahop.datasets import origins
from ahop.datasets.base import register
from ahop.datasets.files import DataFile, fetch

if TYPE_CHECKING:
    import pandas

FEATURES = ("sound", "benchmark")


class Table(NamedTuple):
    """Features with a row each, numbers as numbers and categories as such; labels 0 or 1; which rows to train with."""

    frame: pandas.DataFrame
    labels: np.ndarray
    train: np.ndarray


@dataclass(frozen=True)
class _Source:
    """How a file becomes a table.

    Attributes:
        label: The column to predict, and the value in it that counts as 1.
        categories: Columns whose values have no order; text is taken for categories without being named.
        unsound: Columns that only the benchmarks keep.
        unused: Columns that only the benchmarks leave out.
        dropped: Columns that are not used.
        all_categories: The benchmarks take every column for categories.
    """

    file: DataFile
    label: str
    positive: object
    separator: str = ","
    missing: str | None = None
    categories: tuple[str, ...] = ()
    unsound: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    all_categories: bool = False
    split: str | None = None


def _file(name: str, sha256: str, source: str) -> DataFile:
    return DataFile(path=f"{name}.csv.gz", sha256=(sha256,), source=source)


SOURCES = {
    "adult": _Source(
        _file(
            "adult",
            "fbfd5774d1c107366c5fcb3f0317586726c37cc93abf13dff629000f0bc2d666",
            "Becker & Kohavi 1996 (UCI), both parts in one file",
        ),
        label="income",
        positive=">50K",
        missing="?",
        unused=("education_num",),
        split="split",
    ),
    "bank": _Source(
        _file(
            "bank-additional-full",
            "19d160205359e3f748931d09c670c755e4e66be9bf59e2f894f4f274ece9ce00",
            "Moro, Cortez & Rita 2014 (UCI)",
        ),
        label="y",
        positive="yes",
        separator=";",
        # How long the call took is known when its outcome is.
        unsound=("duration",),
    ),
    "vaccine": _Source(
        _file(
            "vaccine",
            "70e37a915d051ebf76c117f25cccfcc9224575981285836982a642a389721f97",
            "DrivenData competition 66, features and labels joined",
        ),
        label="seasonal_vaccine",
        positive=1,
        # The other vaccine's answer was asked for together with this one's.
        unsound=("h1n1_vaccine",),
        dropped=("respondent_id",),
        all_categories=True,
    ),
    "purchase": _Source(
        _file(
            "online_shoppers_intention",
            "bc5e9f307cef7dcdeff7d15c0fd8bb695d12dba8913b41ee7de7bcc1816df061",
            "Sakar, Polat, Katircioglu & Kastro 2019 (UCI)",
        ),
        label="Revenue",
        positive=True,
        categories=("OperatingSystems", "Browser", "Region", "TrafficType", "Weekend"),
    ),
    "heart": _Source(
        _file(
            "cardio_train",
            "c5f66da4b9a8927f154f37da605aa1d8cf69b2aa6e66eec2bc1d6cda3d17c456",
            "S. Ulianova 2019 (Kaggle, Cardiovascular Disease dataset)",
        ),
        label="cardio",
        positive=1,
        separator=";",
        unsound=("id",),
    ),
}


def table(name: str, features: str = "sound") -> Table:
    """A table by name.

    Args:
        name: ``"adult"``, ``"bank"``, ``"vaccine"``, ``"purchase"`` or ``"heart"``.
        features: ``"sound"``, or ``"benchmark"`` for what earlier benchmarks used: Bank keeps the length of the call,
            Heart the number of the patient, Vaccine the other vaccine's answer and takes every column for categories,
            and Adult leaves the years of education out.
    """
    source = SOURCES[choice(name, "name", tuple(SOURCES))]
    choice(features, "features", FEATURES)
    require("pandas", extra="tables")
    import pandas

    path = fetch(source.file)
    frame = pandas.read_csv(path, sep=source.separator, na_values=source.missing, skipinitialspace=True)
    labels = (frame.pop(source.label) == source.positive).to_numpy().astype(np.int64)
    train = _split(len(frame)) if source.split is None else (frame.pop(source.split) == "train").to_numpy()
    frame = frame.drop(columns=[*source.dropped, *(source.unsound if features == "sound" else source.unused)])
    text = [column for column in frame if not pandas.api.types.is_numeric_dtype(frame[column])]
    kinds = list(frame) if source.all_categories and features == "benchmark" else {*text, *source.categories}
    frame = frame.astype({column: "category" if column in kinds else "float64" for column in frame})
    return Table(frame, labels, train)


def _split(rows: int) -> np.ndarray:
    """The 80 % of rows that earlier benchmarks train with, by their generator and seed."""
    chosen = np.random.RandomState(1).choice(rows, size=int(rows * 0.8), replace=False)
    train = np.zeros(rows, dtype=bool)
    train[chosen] = True
    return train


@register(
    "adult",
    title="Adult",
    about="48,842 people of a census: more than $50,000 a year?",
    files=[SOURCES["adult"].file],
    origin=origins.ADULT,
)
def adult() -> Table:
    """6 numbers and 8 categories, with missing values."""
    return table("adult")


@register(
    "bank",
    title="Bank",
    about="41,188 calls of a bank: will the client sign?",
    files=[SOURCES["bank"].file],
    origin=origins.BANK,
)
def bank() -> Table:
    """9 numbers, economic indicators among them, and 10 categories."""
    return table("bank")


@register(
    "vaccine",
    title="Vaccine",
    about="26,707 people of a survey: vaccinated against the flu?",
    files=[SOURCES["vaccine"].file],
    origin=origins.VACCINE,
)
def vaccine() -> Table:
    """23 ordered answers and 12 categories, with many missing values."""
    return table("vaccine")


@register(
    "purchase",
    title="Purchase",
    about="12,330 visits of a shop: does the visitor buy?",
    files=[SOURCES["purchase"].file],
    origin=origins.PURCHASE,
)
def purchase() -> Table:
    """10 numbers and 7 categories."""
    return table("purchase")


@register(
    "heart", title="Heart", about="70,000 patients: heart disease?", files=[SOURCES["heart"].file], origin=origins.HEART
)
def heart() -> Table:
    """11 numbers, some of them impossible."""
    return table("heart")
