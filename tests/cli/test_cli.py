import re

import pytest
from typer.testing import CliRunner

import ahop
from ahop import datasets
from ahop.cli import app
from ahop.cli.moved import MOVED
from ahop.memories.names import known_names


def said(*arguments):
    """What a command ends with, and its words."""
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_the_table_of_networks_has_each_in_one_line_of_eighty_columns():
    lines = CliRunner().invoke(app, ["models"]).output.splitlines()
    assert max(map(len, lines)) <= 80
    cells = [re.findall(r"[^│]+", line) for line in lines if "Hopfield " in line and "│" in line]
    assert sorted(row[0].strip() for row in cells) == known_names()
    assert all(row[1].strip() in dir(ahop) for row in cells) and "…" not in str(cells)


def test_it_says_its_version():
    assert said("--version") == (0, f"ahop {ahop.__version__}\n")


def test_help_lists_what_a_user_needs_and_nothing_that_has_moved():
    code, text = said("--help")
    listed = re.findall(r"^│ (\w+) ", text, re.M)
    assert code == 0 and listed[:4] == ["match", "adapt", "playground", "datasets"] and "models" in listed
    assert not set(listed) & set(MOVED)


@pytest.mark.parametrize("name", MOVED)
def test_a_command_that_has_moved_says_in_one_line_where_it_is(name):
    for more in ((), ("--help",), ("--quick", "--models", "a-hop", "more"), ("--out", "/nowhere/x.json")):
        assert said(name, *more) == (2, f"error: ahop {name} is now ahop-paper {name}: pip install ahop-paper\n")


def test_data_are_prepared_elsewhere():
    for more in ((), ("adult",), ("adult", "some.zip", "others")):
        code, text = said("datasets", "prepare", *more)
        assert (code, text) == (2, "error: ahop datasets prepare is now ahop-paper prepare: pip install ahop-paper\n")


@pytest.mark.parametrize("name", [name for name, entry in datasets.ENTRIES.items() if entry.files])
def test_the_command_says_where_the_original_is_and_on_what_terms(name):
    origin = datasets.ENTRIES[name].origin
    code, text = said("datasets", name)
    assert code == 0
    for part in (origin.page, origin.licence, origin.size, *origin.files):
        assert part in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["adult", "bank"], "one data set can be described at a time, got adult bank"),
        (["nope"], "unknown data set 'nope'; known: "),
    ],
)
def test_what_cannot_be_told_of_says_why(words, told):
    code, text = said("datasets", *words)
    assert code == 2 and told in text


def test_the_list_of_data_sets_fits_eighty_columns():
    _, text = said("datasets")
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"│ {name} " in text for name in datasets.ENTRIES)
