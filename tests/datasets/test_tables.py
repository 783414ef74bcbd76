import gzip
import hashlib
import sys
from dataclasses import replace

import numpy as np
import pandas
import pytest

from ahop import datasets
from ahop.datasets import tables
from ahop.datasets.files import DataFile

ADULT = """age,workclass,education,education_num,income,split
39,State-gov,Bachelors,13,<=50K,train
50,?,HS-grad,9,>50K,train
28,Private,Masters,14,>50K,test
"""
BANK = "age;job;duration;y\n" + "".join(f"{30 + row};maid;{row};{'yes' if row % 3 else 'no'}\n" for row in range(10))
VACCINE = """respondent_id,h1n1_concern,age_group,h1n1_vaccine,seasonal_vaccine
0,1,55 - 64 Years,0,0
1,,18 - 34 Years,1,1
"""
PURCHASE = """PageValues,Month,OperatingSystems,Browser,Region,TrafficType,Weekend,Revenue
0.5,Feb,1,2,3,4,FALSE,FALSE
1.5,Mar,2,2,3,4,TRUE,TRUE
"""
HEART = "id;age;cardio\n7;18393;0\n8;20228;1\n"
TEXTS = {"adult": ADULT, "bank": BANK, "vaccine": VACCINE, "purchase": PURCHASE, "heart": HEART}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with small tables of the same form."""
    monkeypatch.setenv("AHOP_DATA", str(tmp_path))
    for name, text in TEXTS.items():
        path = tmp_path / tables.SOURCES[name].file.path
        path.write_bytes(gzip.compress(text.encode()))
        file = DataFile(path.name, (hashlib.sha256(path.read_bytes()).hexdigest(),))
        monkeypatch.setitem(tables.SOURCES, name, replace(tables.SOURCES[name], file=file))
    return tmp_path


def kinds(frame):
    return {column: "category" if frame[column].dtype == "category" else "number" for column in frame}


def test_the_official_split_and_missing_values(folder):
    frame, labels, train = datasets.load("adult")
    assert kinds(frame) == {
        "age": "number",
        "workclass": "category",
        "education": "category",
        "education_num": "number",
    }
    assert labels.tolist() == [0, 1, 1]
    assert train.tolist() == [True, True, False]
    assert frame["workclass"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("name", "sound", "benchmark"),
    [
        ("adult", ["age", "workclass", "education", "education_num"], ["age", "workclass", "education"]),
        ("bank", ["age", "job"], ["age", "job", "duration"]),
        ("vaccine", ["h1n1_concern", "age_group"], ["h1n1_concern", "age_group", "h1n1_vaccine"]),
        ("heart", ["age"], ["id", "age"]),
    ],
)
def test_two_sets_of_features(folder, name, sound, benchmark):
    assert list(datasets.table(name).frame) == sound
    assert list(datasets.table(name, "benchmark").frame) == benchmark


def test_a_benchmark_took_every_answer_for_a_category(folder):
    assert kinds(datasets.table("vaccine").frame) == {"h1n1_concern": "number", "age_group": "category"}
    assert set(kinds(datasets.table("vaccine", "benchmark").frame).values()) == {"category"}


def test_numbers_that_are_names_are_categories(folder):
    frame, labels, _ = datasets.load("purchase")
    assert [column for column, kind in kinds(frame).items() if kind == "number"] == ["PageValues"]
    assert labels.tolist() == [0, 1]


def test_the_split_of_earlier_benchmarks(folder):
    train = datasets.load("bank").train
    np.random.seed(1)  # noqa: NPY002
    chosen = np.random.choice(10, size=8, replace=False)  # noqa: NPY002
    assert sorted(np.flatnonzero(train)) == sorted(chosen)


def test_names_that_cannot_be(folder):
    with pytest.raises(ValueError, match="name must be one of 'adult'"):
        datasets.table("iris")
    with pytest.raises(ValueError, match="features must be one of 'sound', 'benchmark', got 'all'"):
        datasets.table("adult", "all")


def test_pandas_is_asked_for(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is not installed: pip install 'ahop\[tables\]'"):
        datasets.load("heart")


def test_frames_are_frames(folder):
    assert isinstance(datasets.load("heart").frame, pandas.DataFrame)
