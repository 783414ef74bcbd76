import pytest
import torch
from tests.linkage.data import tables

from ahop import linkage


@pytest.fixture(scope="session")
def taught():
    """What a fit finds that knows all pairs."""
    stored, incoming, origins = tables()
    return linkage.link(stored, incoming, torch.from_numpy(origins), verbose=False)


@pytest.fixture
def found(taught):
    """What its model finds in the same rows, of which nothing is known."""
    return linkage.link(taught.model, tables()[1])
