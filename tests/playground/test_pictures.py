import pytest
import torch

from ahop.playground import pictures
from ahop.playground.faces import SIDE, faces


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No folder of data, and none to keep any in."""
    monkeypatch.setenv("AHOP_DATA", str(tmp_path))
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("a download has begun"))


@pytest.mark.parametrize("name", pictures.SETS)
def test_a_set_needs_no_download_and_its_pictures_differ(name):
    found = pictures.SETS[name]()
    assert found.patterns.shape == (len(found.names), found.shape[0] * found.shape[1])
    assert len(found.patterns.unique(dim=0)) == len(found) >= 40
    assert -1 <= float(found.patterns.min()) < -0.9 and 0.9 < float(found.patterns.max()) <= 1


def test_faces_that_differ_in_the_mouth_alone_are_the_same_when_it_is_hidden():
    patterns, names = faces()
    glad, amazed = (patterns[names.index(f"hat, awake, {mouth}")].reshape(SIDE, SIDE) for mouth in ("glad", "amazed"))
    assert not torch.equal(glad, amazed)
    assert torch.equal(glad[:8], amazed[:8]) and torch.equal(glad[10:], amazed[10:])
