from decimal import Decimal

import numpy as np
import pandas
import pytest
import torch

from ahop import BayesianHopfield
from ahop._checks import as_tensor

VALUES = np.random.default_rng(0).random((20, 3))


def test_a_memory_stores_and_recalls_the_rows_of_a_frame():
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "c"])
    memory = BayesianHopfield(frame)
    assert memory.patterns.equal(torch.from_numpy(VALUES))
    assert memory.recall(frame).indices[:, 0].tolist() == list(range(20))


def test_columns_of_numbers_of_any_type_become_one_tensor():
    frame = pandas.DataFrame({"whole": [1, 2], "yes": [True, False], "half": np.float32([0.5, 1.5])})
    assert as_tensor(frame, "queries").tolist() == [[1, 1, 0.5], [2, 0, 1.5]]


def test_columns_that_are_not_numbers_are_named():
    frame = pandas.DataFrame({"x": [1.0], "colour": ["red"], "day": pandas.to_datetime(["2020-01-01"])})
    with pytest.raises(ValueError, match=r"^patterns must be numbers, and these columns are not: 'colour', 'day'$"):
        BayesianHopfield(frame)


@pytest.mark.slow
def test_frames_of_polars_are_patterns_and_queries_whatever_their_numbers_are():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(VALUES, schema=["a", "b", "c"])
    exact = frame.with_columns(polars.col("a").cast(polars.Decimal(12, 6)), polars.col("b").cast(polars.Float32))
    memory = BayesianHopfield(frame)
    assert memory.patterns.equal(torch.from_numpy(VALUES))
    assert memory.recall(exact).indices[:, 0].tolist() == list(range(20))
    lost = exact.with_columns(polars.when(polars.col("c") > 0.5).then(None).otherwise(polars.col("c")).alias("c"))
    assert int(as_tensor(lost, "queries").isnan().sum()) == int((VALUES[:, 2] > 0.5).sum())
    with pytest.raises(ValueError, match="got LazyFrame"):
        BayesianHopfield(frame.lazy())


def test_decimals_are_numbers():
    frame = pandas.DataFrame({"price": [Decimal("1.5"), None], "count": [1, 2]})
    assert as_tensor(frame, "queries").nan_to_num(-1).tolist() == [[1.5, 1], [-1, 2]]
