import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def versions(file, sign):
    return dict(re.findall(rf"\b([a-z][a-z-]*){sign}([0-9.]+)", (ROOT / file).read_text()))


def test_the_oldest_versions_are_the_lower_bounds():
    bounds = versions("pyproject.toml", ">=")
    assert "torch" in bounds
    assert versions("constraints-oldest.txt", "==") == bounds


def test_a_plain_set_up_takes_no_version_under_the_bounds():
    def number(text):
        return tuple(map(int, text.split(".")))

    bounds = versions("pyproject.toml", ">=")
    pinned = versions("constraints.txt", "==")
    assert all(number(version) >= number(bounds[name]) for name, version in pinned.items())
