"""Tables as text: lines of the publisher's files, joined where a set comes in parts."""

from __future__ import annotations

from ahop_paper.publishers.given import Given
from ahop_paper.publishers.registry import CONVERTERS

ADULT = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,"
    "capital_loss,hours_per_week,native_country,income"
)
PURCHASE = (
    "Administrative,Administrative_Duration,Informational,Informational_Duration,ProductRelated,"
    "ProductRelated_Duration,BounceRates,ExitRates,PageValues,SpecialDay,Month,OperatingSystems,Browser,Region,"
    "TrafficType,VisitorType,Weekend,Revenue"
)


@CONVERTERS.register("adult")
def adult(given: Given) -> str:
    """Both parts, marked; without the blanks after commas, the test part's first line and its full stops."""
    lines = [f"{ADULT},split"]
    for file, part in (("adult.data", "train"), ("adult.test", "test")):
        for line in given.text(file).splitlines():
            if line.strip() and not line.startswith("|"):
                row = ",".join(cell.strip() for cell in line.split(","))
                lines.append(f"{row.removesuffix('.')},{part}")
    return _text(lines, ADULT.count(",") + 2)


@CONVERTERS.register("bank")
def bank(given: Given) -> str:
    """As it is."""
    return given.data("bank-additional-full.csv").decode()


@CONVERTERS.register("vaccine")
def vaccine(given: Given) -> str:
    """Features, and the two labels of the same respondent after them."""
    features, labels = (given.text(f"training_set_{part}.csv").splitlines() for part in ("features", "labels"))
    if [line.split(",")[0] for line in features] != [line.split(",")[0] for line in labels]:
        raise ValueError("features and labels must belong to the same respondents, in the same order")
    rows = zip(features, labels, strict=True)
    return _text([f"{line},{label.split(',', 1)[1]}" for line, label in rows])


@CONVERTERS.register("purchase")
def purchase(given: Given) -> str:
    """As it is, with the published names above the columns if a copy lacks them."""
    lines = given.text("online_shoppers_intention.csv").splitlines()
    return _text(lines if lines[0].startswith("Administrative") else [PURCHASE, *lines], PURCHASE.count(",") + 1)


@CONVERTERS.register("heart")
def heart(given: Given) -> str:
    """As it is."""
    return _text(given.text("cardio_train.csv").splitlines(), 13, ";")


def _text(lines: list[str], columns: int | None = None, separator: str = ",") -> str:
    for number, line in enumerate(lines):
        if columns is not None and line.count(separator) != columns - 1:
            raise ValueError(f"row {number} must have {columns} columns, got {line.count(separator) + 1}: {line[:60]}")
    return "\n".join(lines) + "\n"
