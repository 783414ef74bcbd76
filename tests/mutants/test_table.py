"""The table of mutants keeps up with the code; ``make test-mutants`` says whether they are killed."""

import ast
from pathlib import Path

import pytest
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{Path(mutant.file).stem}: {mutant.does}")
def test_every_mutant_has_its_place_and_its_tests(mutant):
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.find) == 1
    changed = text.replace(mutant.find, mutant.put)
    # Other code, and not only other words.
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    assert mutant.killers
    for killer in mutant.killers:
        file, test = killer.split("::")
        assert f"\ndef {test}(" in (ROOT / file).read_text()


def test_no_two_mutants_are_the_same():
    assert len({(one.file, one.find, one.put) for one in MUTANTS}) == len(MUTANTS)
    assert len({(one.file, one.does) for one in MUTANTS}) == len(MUTANTS)
