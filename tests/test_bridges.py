"""What users of other libraries had is the same here: both sides of the guide, where the other library is installed."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent / "docs/guides/from-other-libraries.md"
BLOCKS = dict(re.findall(r"^## (\w+)\n+```py\n(.*?)```", GUIDE.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("library", BLOCKS)
def test_both_sides_of_the_guide_are_equal(library):
    if find_spec(library.lower()) is None:
        pytest.skip(f"{library} is not installed: {GUIDE.name} says how")
    # In a process of its own: JAX, once imported, warns of every fork.
    code = f"import torch\ntorch.manual_seed(0)\n{BLOCKS[library]}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_library_of_the_title_has_a_block():
    title, *_ = GUIDE.read_text().splitlines()
    assert re.findall(r"hflayers|torchhd|HAMUX", title) == [*BLOCKS]
