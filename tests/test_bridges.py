"""What users of other libraries had is the same here: both sides of the guide, where the other library is installed."""

import re
from pathlib import Path

import pytest
import torch

GUIDE = Path(__file__).parent.parent / "docs/guides/from-other-libraries.md"
BLOCKS = dict(re.findall(r"^## (\w+)\n+```py\n(.*?)```", GUIDE.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("library", BLOCKS)
# Theirs are theirs.
@pytest.mark.filterwarnings("default")
def test_both_sides_of_the_guide_are_equal(library):
    pytest.importorskip(library.lower())
    torch.manual_seed(0)
    exec(compile(BLOCKS[library], f"{GUIDE.name}, {library}", "exec"), {})


def test_every_library_of_the_title_has_a_block_or_a_guide():
    title, *_ = GUIDE.read_text().splitlines()
    named = re.findall(r"hflayers|torchhd|HAMUX", title)
    assert named == ["hflayers", *BLOCKS]
