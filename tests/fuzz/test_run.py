"""The runner of fuzzers finds every one, counts its cases, and hands over the case that failed."""

from pathlib import Path
from types import SimpleNamespace

from hypothesis import strategies as st
from tests.fuzz import run


def fuzzer(name, check):
    return SimpleNamespace(__name__=f"tests.fuzz.{name}", cases=lambda: st.integers(0, 10**6), check=check)


def test_every_file_with_cases_and_a_check_takes_part():
    found = {module.__name__.rpartition(".")[2] for module in run.fuzzers()}
    written = {path.stem for path in Path(run.__file__).parent.glob("test_*.py") if "\ndef check(" in path.read_text()}
    assert {"test_memories", "test_layers", "test_estimators"} <= found == written


def test_cases_are_counted_and_another_seed_draws_others(capsys):
    drawn = []
    for seed in (1, 1, 2):
        seen = []
        assert run.run([fuzzer("test_one", seen.append), fuzzer("test_two", lambda case: None)], 0, seed) == 0
        assert f"one {len(seen)}, two " in capsys.readouterr().out
        drawn.append(seen)
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_smallest_case_that_fails_is_printed_as_code(capsys):
    def check(case):
        assert case < 1000

    assert run.run([fuzzer("test_one", lambda case: None), fuzzer("test_two", check)], 10, 1) == 1
    said = capsys.readouterr().out
    assert "from tests.fuzz.test_two import check\n\ncheck(1000)\n" in said
    assert "one 25" in said
