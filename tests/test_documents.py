"""The code in the documents runs, block after block in one session each."""

import re
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parent.parent


DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/from-hflayers.md", "docs/many-patterns.md"]


# In small: with 64 patterns and samples in place of 512.
@pytest.mark.parametrize("size", ["64", pytest.param("512", marks=pytest.mark.slow)])
@pytest.mark.parametrize("document", DOCUMENTS)
def test_code_blocks_run(document, size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block.replace("512", size), document, "exec"), names)


def test_the_documents_name_no_machine():
    folder = "/".join(["", "work", ""])
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / "src").rglob("*.py")]:
        assert folder not in path.read_text(), path
