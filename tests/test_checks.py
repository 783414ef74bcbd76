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
