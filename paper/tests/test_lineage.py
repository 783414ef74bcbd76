"""A row belongs to the code of its loader, its model and its measure, and to no other."""

import re
import shutil
from pathlib import Path

import pytest

from ahop_paper import generators, images, lineage, mil, provenance, real, retrieval, tabular, worlds, zoo

ROOT = Path(__file__).parents[2]
ROWS = {
    **{
        f"real {data} {model}": (real, {}, {"data": data, "model": model})
        for data, model in (
            *(("tablets", model) for model in ("b-hop", "b-hop*", "a-hop", "ridge", "whitening", "centred L1")),
            *(("gas", model) for model in ("b-hop", "ridge")),
        )
    },
    **{f"retrieval {model}": (retrieval, {"data": "mnist"}, {"model": model}) for model in ("m-hop", "a-hop", "b-hop")},
    "retrieval drawn ridge": (retrieval, {"data": "synthetic"}, {"model": "ridge"}),
    **{f"worlds {model}": (worlds, {}, {"world": "bias 1", "model": model}) for model in ("oracle", "b-hop")},
    **{f"mil {model}": (mil, {}, {"data": "tiger", "model": model}) for model in ("mean", "a-hop", "b-hop")},
    **{
        f"zoo {world} {model}": (zoo, {}, {"world": world, "model": model})
        for world, model in (("rounded", "b-hop"), ("tablets", "hop"), ("capacity", "distance, softmax"))
    },
    "mil check": (mil, {}, {"check": "standard", "model": "mean"}),
    **{
        f"tabular {model}": (tabular, {}, {"data": "adult", "model": model, "trial": 0})
        for model in ("ours", "xgboost")
    },
    "tabular tested": (tabular, {}, {"data": "adult", "model": "catboost", "auc": 0.9}),
    "images": (images, {"data": "cifar10"}, {"model": "m-hop"}),
    "generators": (generators, {"data": "synthetic"}, {"model": "u-hop"}),
}
# Memories that learn a corruption; bags have its likelihood as a layer, which learns as layers do.
FITTED = {name for name in ROWS if "b-hop" in name and not name.startswith("mil ")}


def forget():
    known = (
        lineage.target,
        lineage._tree,
        lineage._imports,
        lineage._bindings,
        lineage._needs,
        lineage._named_by,
        lineage._written,
    )
    for function in (*known, provenance.fingerprint, provenance.read, provenance.place):
        function.cache_clear()


def codes():
    forget()
    return {name: experiment.code_of(config, one) for name, (experiment, config, one) in ROWS.items()}


@pytest.fixture(scope="module")
def before():
    return codes()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The sources once more, to be changed."""
    for name in ("src", "paper/src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(provenance, "SOURCES", {"ahop": tmp_path / "src", "ahop_paper": tmp_path / "paper/src"})
    yield tmp_path
    forget()


def changed(before):
    """The rows that are not of this code any more."""
    return {name for name, code in codes().items() if code != before[name]}


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))


def add(path, text):
    path.write_text((path.read_text() if path.exists() else "") + text)


SET = """
@register("{name}", about="something new")
def _{name}() -> Measured:
    return None
"""


def test_a_new_data_set_or_baseline_or_world_voids_no_other_row(copy, before):
    source, paper = copy / "src/ahop", copy / "paper/src/ahop_paper"
    head = "from ahop.datasets.base import register\nfrom ahop.datasets.real import Measured\n"
    add(source / "datasets/more.py", head + SET.format(name="novel"))
    add(source / "datasets/real.py", SET.format(name="later"))
    add(paper / "baselines.py", "\n\ndef guess(patterns):\n    return Compared(patterns, ranks, METRICS['L1'])\n")
    guess = '\n\n@model("guess", learns=NOTHING)\ndef _guess(data, seed):\n    return baselines.guess(data.patterns)\n'
    add(paper / "real_models.py", guess)
    add(paper / "real_more.py", "from ahop_paper.real_models import model\n" + guess.replace("guess", "hunch"))
    add(paper / "retrieval.py", '\n\nmodel("e-hop")(_usual("e-hop"))\n')
    add(paper / "worlds.py", '\n\n@world("none")\ndef _none(dim, seed):\n    return Noisy(0.0, seed=seed)\n')
    replace(paper / "table_models.py", "    **TREES,\n", '    **TREES,\n    "again": _default(),\n')
    replace(
        paper / "mil.py",
        '    "max": {"pooling": "max"},\n',
        '    "max": {"pooling": "max"}, "most": {"pooling": "max"},\n',
    )
    assert changed(before) == set()


@pytest.mark.parametrize(
    ("file", "rows"),
    [
        # How a corruption is learned.
        ("src/ahop/similarity/families/moved/learning.py", FITTED),
        # A similarity that nobody imports and one baseline asks for by its name.
        ("src/ahop/similarity/mahalanobis.py", {"real tablets whitening"}),
        # The weights of footprints; tables, bags and images can be compared by them.
        (
            "src/ahop/learning/footprint.py",
            {name for name in ROWS if "a-hop" in name or name.startswith(("mil ", "images", "tabular ours"))},
        ),
        ("src/ahop/estimators/tables.py", {"tabular ours"}),
        # Nobody's figure is drawn, shown or kept on a disk.
        ("src/ahop/memories/storage.py", set()),
        ("src/ahop/playground/draw.py", set()),
        ("paper/src/ahop_paper/report.py", set()),
        ("paper/src/ahop_paper/pages/markdown.py", set()),
        # What every memory is.
        ("src/ahop/memories/base.py", {name for name in ROWS if not name.startswith(("mil", "tabular", "images"))}),
    ],
)
def test_a_change_in_the_library_voids_the_rows_that_use_it(file, rows, copy, before):
    assert (copy / file).exists()
    add(copy / file, "\n\nMORE = 1\n")
    found = changed(before)
    if file.endswith("memories/base.py"):
        # Whatever else may need it.
        assert rows <= found and "tabular xgboost" not in found
    else:
        assert found == rows


def test_a_family_that_joins_by_being_there_voids_the_rows_that_may_choose_it(copy, before):
    add(copy / "src/ahop/similarity/families/novel.py", "MORE = 1\n")
    assert changed(before) == FITTED


@pytest.mark.parametrize(
    ("file", "old", "new", "rows"),
    [
        ("real.py", "data = Measured(*(part.to", "data = Measured(*(1 * part.to", {n for n in ROWS if n[:4] == "real"}),
        (
            "real_models.py",
            "return BayesianHopfield(data.patterns).fit(data.queries[data.learn], seed=seed)",
            "return BayesianHopfield(data.patterns).fit(data.queries[data.learn], seed=seed + 1)",
            {"real tablets b-hop*"},
        ),
        (
            "baselines.py",
            "gram + strength * unit * torch.eye",
            "gram + 2 * strength * unit * torch.eye",
            {name for name in ROWS if "ridge" in name},
        ),
        (
            "baselines.py",
            "RIDGES = list(product((1e-6,",
            "RIDGES = list(product((1e-5,",
            {n for n in ROWS if "ridge" in n},
        ),
        (
            "worlds.py",
            "    return Biased(1.0, seed=seed)",
            "    return Biased(2.0, seed=seed)",
            {"worlds oracle", "worlds b-hop"},
        ),
        ("worlds.py", "    return Rotated(45, 0.8, seed=seed)", "    return Rotated(46, 0.8, seed=seed)", set()),
        ("mil.py", '    "mean": {"pooling": "mean", ', '    "mean": {"pooling": "sum", ', set()),
        # Times on tables are ratios to those of this one.
        (
            "table_trees.py",
            'stop: Settings = {"n_estimators": 2000, "early_stopping_rounds": PATIENCE} if held else {}',
            'stop: Settings = {"n_estimators": 2001, "early_stopping_rounds": PATIENCE} if held else {}',
            {"tabular xgboost", "tabular tested"},
        ),
        ("retrieval.py", '"""A fitted memory or baseline by', '"""A memory, fitted, or baseline by', set()),
    ],
)
def test_a_change_in_an_experiment_voids_the_rows_that_use_it(file, old, new, rows, copy, before):
    replace(copy / "paper/src/ahop_paper" / file, old, new)
    assert changed(before) == rows


def test_what_private_things_are_called_and_what_errors_say_voids_nothing(copy, before):
    learning, checks = (
        copy / "src/ahop" / file for file in ("similarity/families/correlated/learning.py", "_checks.py")
    )
    text = learning.read_text()
    assert "_PATIENCE" in text and "_WAITS" not in text
    learning.write_text(text.replace("_PATIENCE", "_WAITS"))
    said = checks.read_text()
    assert "must be between" in said
    checks.write_text(said.replace("must be between", "has to lie between"))
    assert changed(before) == set()
    learning.write_text(re.sub(r"(?m)^(.*_PATIENCE.*= )", r"\g<1>1 + ", text))
    assert changed(before) == FITTED


def test_a_change_of_a_loader_voids_the_rows_of_its_data(copy, before):
    path = copy / "src/ahop/datasets/real.py"
    text = path.read_text()
    start = text.index("def", text.index('register(\n    "tablets"'))
    path.write_text(text[:start] + text[start:].replace("\n    ", "\n    more = 1\n    ", 1))
    assert changed(before) == {name for name in ROWS if "tablets" in name}


def test_settings_that_a_row_is_made_with_are_part_of_it(monkeypatch, before):
    monkeypatch.setitem(mil.POOLINGS, "mean", {"pooling": "mean"})
    assert changed(before) == {"mil mean", "mil check"}


def test_a_name_of_its_own_hides_one_of_the_module():
    tree = lineage._parsed("def f(check):\n    return [g for g in check] + [h]\n")
    found = {
        one.id for one, local in lineage._scoped(tree) if isinstance(one, lineage.ast.Name) and one.id not in local
    }
    assert found == {"h"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("_A = 1\ndef f(x): return _A * x", "_B = 1\ndef f(x): return _B * x", True),
        ("_A, _B = 1, 2\ndef f(x): return _A * x - _B", "_A, _B = 1, 2\ndef f(x): return _B * x - _A", False),
        ("def f(d): return score(_train(d), _test(d))", "def f(d): return score(_test(d), _train(d))", False),
        ("def f(m): return m._scores()", "def f(m): return m._log_prior()", False),
        ("from a import _one\n_one()", "from a import _two\n_two()", False),
        ("def f(x): raise ValueError(f'{x} is bad')", "def f(x): raise ValueError('bad')", True),
        ("def f(x): raise ValueError('bad')", "def f(x): raise TypeError('bad')", False),
    ],
)
def test_only_private_names_that_a_piece_defines_and_words_of_errors_may_change(one, other, same):
    first, second = (lineage._digest(lineage._parsed(text)) for text in (one, other))
    assert (first == second) is same
