"""What doctests and tests share."""

import gc
import time
from uuid import uuid4

import pytest
import torch
from hypothesis import settings

import ahop
from ahop import energy, memories, separation, similarity, variants

# How long an example takes says nothing about the code on a shared machine, and the same examples every time
# make a red run repeatable.
settings.register_profile("ahop", deadline=None, derandomize=True, max_examples=15)
settings.load_profile("ahop")

# Thousands of tests and what they import stay until the end: looking through them for garbage, again and again, takes a
# fifth of the time.
gc.disable()


def pytest_collection_finish():
    """From now on garbage is what tests leave behind."""
    gc.enable()
    gc.freeze()


_BEGUN = time.monotonic()


def pytest_addoption(parser):
    """How long a run may begin tests."""
    parser.addoption("--minutes", type=float, help="skip tests that have not begun after so many minutes")


def pytest_runtest_setup(item):
    """A machine that is several times slower than usual runs what it can, and says how many tests it left out."""
    minutes = item.config.getoption("minutes")
    if minutes is not None and time.monotonic() > _BEGUN + 60 * minutes:
        pytest.skip(f"not begun within {minutes:g} minutes")


@pytest.fixture(autouse=True, scope="session")
def doctest_names(doctest_namespace, tmp_path_factory):
    """The names that docstring examples take for granted."""
    for module in (separation, variants, similarity, memories, energy):
        doctest_namespace.update({name: value for name, value in vars(module).items() if not name.startswith("_")})
    doctest_namespace.update(torch=torch, ahop=ahop, folder=tmp_path_factory.mktemp("doctest") / "memory")


@pytest.fixture
def threads():
    """Sets how many threads PyTorch has, as machines differ in it; after the test it is what it was."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def no_cache_of_the_user(monkeypatch, tmp_path_factory):
    """Tests neither read nor fill the cache of the person who runs them, nor that of each other."""
    monkeypatch.setenv("AHOP_CACHE", str(tmp_path_factory.getbasetemp() / f"cache-{uuid4()}"))
