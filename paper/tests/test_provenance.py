import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from ahop_paper import provenance, report

ROOT = Path(__file__).parents[2]
FILES = {
    "ahop/__init__.py": "from ahop import far, near",
    "ahop/far.py": "far = 1",
    "ahop/near.py": "import math\nfrom ahop.parts.one import name\nnear = math.pi",
    "ahop/parts/__init__.py": "for module in __path__: print(module)",
    "ahop/parts/one.py": "name = 'one'",
    "ahop/parts/two.py": "two = 2",
    "ahop/parts/text/three.cu": "three",
    "ahop/late.py": "late = 1",
    "ahop/work.py": "def work():\n    from ahop import near\n    import_module('ahop.late')\n    return near.near",
}


def forget():
    for function in (provenance.fingerprint, provenance.read, provenance.place):
        function.cache_clear()


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A small package in a checkout, whose work needs all but one of its modules."""
    folder = tmp_path / "checkout" / "src"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(provenance, "ROOT", folder.parent)
    monkeypatch.setattr(provenance, "SOURCES", {"ahop": folder, "ahop_paper": folder})
    monkeypatch.delenv("AHOP_COMMIT", raising=False)
    forget()
    yield folder
    forget()


def git(folder, *arguments):
    asked = ["git", "-c", "user.name=some", "-c", "user.email=some@one", *arguments]
    return subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def fingerprint(source):
    forget()
    return provenance.fingerprint(source / "ahop/work.py")


def stamped(source):
    forget()
    return report.stamp("some", {"size": 3}, str(source / "ahop/work.py"))


def test_a_sitting_in_a_checkout_knows_its_commit_and_whether_sources_have_changed(source, monkeypatch):
    root = source.parent
    git(root, "init")
    git(root, "add", ".")
    git(root, "commit", "-m", "first")
    first = git(root, "rev-parse", "HEAD")
    (root / "results").mkdir()
    (root / "results/some.json").write_text("{}")
    assert provenance.commit() == {"commit": first, "clean": True}
    (sitting,) = stamped(source)["sittings"]
    assert (sitting["commit"], sitting["clean"]) == (first, True)
    assert provenance.at(sitting) == first[:7]
    (source / "ahop/far.py").write_text("far = 2")
    (sitting,) = stamped(source)["sittings"]
    assert (sitting["commit"], sitting["clean"]) == (first, False)
    assert provenance.at(sitting) == f"{first[:7]} + changes"
    # A copy of other sources, laid over a checkout.
    monkeypatch.setenv("AHOP_COMMIT", "b" * 40)
    assert provenance.commit() == {"commit": "b" * 40, "clean": True}


def test_a_sitting_outside_a_checkout_knows_what_it_is_told(source, monkeypatch):
    (sitting,) = stamped(source)["sittings"]
    assert (sitting["commit"], sitting["clean"]) == (None, None)
    assert provenance.at(sitting) == "not recorded" and sitting["code"] == fingerprint(source)
    for told, clean in (("a" * 40, True), ("a" * 40 + "-dirty", False)):
        monkeypatch.setenv("AHOP_COMMIT", told)
        assert provenance.commit() == {"commit": "a" * 40, "clean": clean}
    for told in ("main", "a" * 7):
        monkeypatch.setenv("AHOP_COMMIT", told)
        with pytest.raises(ValueError, match=rf"AHOP_COMMIT must be the whole hash of a commit .* got '{told}'"):
            provenance.commit()


def test_code_is_what_the_work_imports_however_it_does(source):
    assert provenance.needed(source / "ahop/work.py").keys() == {
        *("ahop.near", "ahop.late", "ahop.parts", "ahop.parts.one", "ahop.parts.two")
    }
    before = fingerprint(source)
    for name, text in FILES.items():
        (source / name).write_text(f"{text}\nmore = 1")
        needed = name not in ("ahop/__init__.py", "ahop/far.py")
        assert (fingerprint(source) != before) == needed, name
        (source / name).write_text(text)
    assert fingerprint(source) == before


def test_words_about_code_are_not_code(source):
    before = fingerprint(source)
    (source / "ahop/late.py").write_text('"""What it is."""\n\n# Why.\nlate = (\n    1\n)\n"""And this."""\n')
    assert fingerprint(source) == before
    (source / "ahop/late.py").write_text("late = 1.0")
    assert fingerprint(source) != before


def test_the_code_of_real_variants_is_their_memories_and_no_page():
    needed = provenance.needed(ROOT / "paper/src/ahop_paper/real.py")
    assert {"ahop_paper.real_models", "ahop.memories.bayesian", "ahop.similarity.families.moved.model"} <= needed.keys()
    assert {f"ahop.datasets.{path.stem}" for path in (ROOT / "src/ahop/datasets").glob("[a-z]*.py")} <= needed.keys()
    assert not [name for name in needed if name.startswith(("ahop_paper.pages", "ahop_paper.commands", "ahop.nn"))]


def kept(source, out, *parts):
    journal = report.Journal(out, stamped(source), (), lambda head, done: {**head, "done": done})
    journal.add(parts)


def test_a_run_goes_on_by_the_same_code_and_says_which_sitting_did_what(source, tmp_path):
    out = tmp_path / "some.json"
    kept(source, out, {"model": "a", "seed": 0})
    (source / "ahop/far.py").write_text("far = 'nobody needs it'")
    kept(source, out, {"model": "a", "seed": 1})
    found = json.loads(out.read_text())
    assert [one["sitting"] for one in found["done"]] == [0, 1]
    assert len({sitting["code"] for sitting in found["sittings"]}) == 1


def test_what_other_code_made_is_refused_and_left_as_it_is(source, tmp_path, monkeypatch):
    out = tmp_path / "some.json"
    monkeypatch.setenv("AHOP_COMMIT", "a" * 40)
    kept(source, out, *({"model": "m", "seed": seed} for seed in range(5)))
    before = out.read_bytes()
    (source / "ahop/near.py").write_text("near = 3")
    monkeypatch.setenv("AHOP_COMMIT", "b" * 40)
    with pytest.raises(ValueError, match="has 5 parts that other code made") as error:
        kept(source, out, {"model": "m", "seed": 5})
    ways = ("--join", "delete this one")
    for told in (str(out), "commit aaaaaaa: m 0, m 1, m 2 and 2 more", "now that of commit bbbbbbb", *ways):
        assert told in str(error.value)
    assert out.read_bytes() == before


def test_a_report_of_old_can_be_read_and_not_gone_on_with(source, tmp_path):
    out = tmp_path / "old.json"
    old = {"experiment": "some", "config": {"size": 3}, "sittings": [{"machine": "m"}], "done": [{"seed": 1}]}
    out.write_text(json.dumps(old))
    assert provenance.commits(old) == "commit not recorded"
    with pytest.raises(ValueError, match=r"has 1 parts that other code made, commit not recorded: 1; the code is now"):
        report.resume(out, stamped(source), free=())


def test_a_report_tells_the_commits_of_its_parts_alone():
    sittings = [{"commit": letter * 40, "clean": letter != "b"} for letter in "abc"]
    done = [{"sitting": 1}, {"sitting": 0}, {"sitting": 1}]
    assert provenance.commits({"sittings": sittings, "done": done}) == "commits aaaaaaa, bbbbbbb + changes"
    assert provenance.commits({"sittings": sittings[2:]}) == "commit ccccccc"


# Commits that are not in the history, and the one that they were joined into; docs/results/index.md says so.
JOINED = {"d0a488f": "75110a7"}


@pytest.fixture
def history():
    """All commits that led here."""
    try:
        known = set(git(ROOT, "rev-list", "HEAD").split())
    except (OSError, subprocess.CalledProcessError):
        known = set()
    if not set(JOINED.values()) <= {commit[:7] for commit in known}:
        pytest.skip("there is no history here, or not the whole of it")
    return known


def reports():
    return {path: json.loads(path.read_text()) for path in sorted((ROOT / "results").glob("*.json"))}


def test_every_report_says_by_which_commit_it_was_made():
    for path, made in reports().items():
        told = provenance.commits(made)
        assert re.fullmatch(r"commits? [0-9a-f]{7}(, [0-9a-f]{7})*", told), f"{path.name}: {told}"
        short = {sitting["commit"] for sitting in made["sittings"] if len(sitting["commit"]) != 40}
        assert not short, f"{path.name} names commits by less than their whole hash: {short}"


@pytest.mark.slow
def test_what_a_report_was_made_by_can_be_found_again(history, tmp_path, monkeypatch):
    made_by = defaultdict(set)
    for path, made in reports().items():
        for sitting in made["sittings"]:
            commit = sitting["commit"]
            known = commit if commit in history else JOINED.get(commit[:7])
            assert known, f"{path.name} names a commit that nobody can find: {commit}"
            # What checks bags is made by the code of bags.
            made_by[known].add((path.name, made["experiment"].removesuffix("-checks"), sitting["code"]))
    for commit, found in made_by.items():
        copy = tmp_path / commit
        git(ROOT, "archive", "--output", str(tmp_path / "code.zip"), commit)
        shutil.unpack_archive(tmp_path / "code.zip", copy)
        monkeypatch.setattr(provenance, "SOURCES", {"ahop": copy / "src", "ahop_paper": copy / "paper/src"})
        forget()
        for name, experiment, code in found:
            places = [copy / "paper/src/ahop_paper", copy / "src/ahop/paper", copy / "benchmarks"]
            # A benchmark may have the name of the module that it measures by.
            files = [file for place in places if (file := place / f"{experiment}.py").exists()]
            assert code in [provenance.fingerprint(file) for file in files], name
    forget()


def test_pages_say_which_commits_were_joined():
    said = " ".join((ROOT / "docs/results/index.md").read_text().split())
    for commit, joined in JOINED.items():
        assert commit in said and f"joined into one, {joined}" in said
    named = {sitting["commit"] for made in reports().values() for sitting in made["sittings"]}
    assert set(JOINED) <= {commit[:7] for commit in named}, "what no report names needs no word"


def rows_of(source, out, code, *parts):
    """A run whose rows say by which code each was made."""
    journal = report.Journal(out, stamped(source), (), lambda head, done: {**head, "done": done}, code)
    journal.add(parts)
    return json.loads(out.read_text())["done"]


def test_a_row_goes_on_by_its_own_code_whatever_else_has_changed(source, tmp_path):
    out = tmp_path / "some.json"
    codes = {"a": "code of a", "b": "code of b"}
    rows_of(source, out, lambda one: codes[one["model"]], {"model": "a", "seed": 0})
    # The experiment has changed, but nothing that this row needs.
    (source / "ahop/near.py").write_text("near = 3")
    done = rows_of(source, out, lambda one: codes[one["model"]], {"model": "b", "seed": 0}, {"model": "a", "seed": 1})
    assert [(one["model"], one["code"], one["sitting"]) for one in done] == [
        ("a", "code of a", 0),
        ("b", "code of b", 1),
        ("a", "code of a", 1),
    ]


def test_rows_whose_code_has_changed_or_is_gone_are_refused_by_name(source, tmp_path):
    out = tmp_path / "some.json"
    codes = {"a": "code of a", "b": "code of b", "c": "code of c"}
    rows_of(source, out, lambda one: codes[one["model"]], *({"model": name, "seed": 0} for name in codes))
    codes["b"] = "other code of b"
    del codes["c"]
    with pytest.raises(ValueError, match="has 2 parts that other code made, commit not recorded: b 0, c 0; the code"):
        rows_of(source, out, lambda one: codes[one["model"]], {"model": "a", "seed": 1})


def test_a_row_without_a_code_of_its_own_counts_by_that_of_its_sitting(source, tmp_path):
    out = tmp_path / "some.json"
    kept(source, out, {"model": "a", "seed": 0})
    done = rows_of(source, out, lambda one: "code", {"model": "a", "seed": 1})
    assert ["code" in one for one in done] == [False, True]
    (source / "ahop/near.py").write_text("near = 3")
    with pytest.raises(
        ValueError, match=r"has 1 parts .*: a 0, of which 1 were made before rows had fingerprints; the"
    ):
        rows_of(source, out, lambda one: "code", {"model": "a", "seed": 2})


def joinable(source, out, *rows):
    """A report of these rows, each with its model, seed and, if it has one, code."""
    head = stamped(source)
    done = [
        {"model": model, "seed": seed, "sitting": 0, **({"code": code} if code else {})} for model, seed, code in rows
    ]
    report.write({**head, "done": done}, out)
    return out


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        ((("a", 0, "x"),), (("a", 1, "x"), ("b", 0, "y")), True),
        ((("a", 0, "x"),), (("a", 1, "z"),), False),
        ((("a", 0, None),), (("b", 0, "y"),), True),
        ((("a", 0, None),), (("a", 1, None),), True),
    ],
)
def test_files_are_joined_if_repetitions_of_a_row_are_of_one_code(first, second, fits, source, tmp_path):
    paths = [joinable(source, tmp_path / f"{place}.json", *rows) for place, rows in enumerate((first, second))]
    if fits:
        _, done = report.join(paths, "some", {"size": 3}, ())
        assert len(done) == len(first) + len(second)
    else:
        with pytest.raises(ValueError, match="files to join must come from the same code"):
            report.join(paths, "some", {"size": 3}, ())


def test_rows_of_old_are_joined_if_their_sittings_are_of_one_code(source, tmp_path):
    first = joinable(source, tmp_path / "first.json", ("a", 0, None))
    (source / "ahop/near.py").write_text("near = 3")
    second = joinable(source, tmp_path / "second.json", ("a", 1, None))
    with pytest.raises(ValueError, match="files to join must come from the same code"):
        report.join([first, second], "some", {"size": 3}, ())
