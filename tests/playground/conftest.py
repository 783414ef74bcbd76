import pytest
import torch

from ahop.playground.pictures import Pictures


@pytest.fixture(scope="session")
def few():
    """Twelve pictures of 3 x 4 pixels, so that every memory learns in an instant."""
    patterns = torch.rand(12, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1
    return Pictures(patterns, (3, 4), tuple(f"picture {place}" for place in range(12)))
