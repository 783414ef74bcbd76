import pytest

from ahop.similarity import Likelihood
from ahop_paper import plots, report, retrieval


@pytest.mark.parametrize("ending", [".png", *(pytest.param(one, marks=pytest.mark.slow) for one in (".svg", ".pdf"))])
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_picture_goes_where_a_path_or_a_word_says(tmp_path, kind, ending):
    path = tmp_path / f"x{ending}"
    plots.corruption(Likelihood(3), kind(path))
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)
    assert list(path.parent.iterdir()) == [path]


def test_a_kind_of_picture_that_cannot_be_drawn_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="xyz"):
        plots.corruption(Likelihood(3), str(tmp_path / "x.xyz"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("intensities", "drawn"),
    [
        ([[0.4] * 3, [0.5] * 3], ["m-hop", "centred L1", "z-scored cosine", "oracle"]),
        ([[0.4, 0.0, 0.0], [0.0, 0.5, 0.0]], ["m-hop", "oracle"]),
    ],
)
def test_few_baselines_are_drawn_where_difficulty_grows_and_none_elsewhere(monkeypatch, tmp_path, intensities, drawn):
    seen = []
    for name in ("_ladder", "_lanes"):
        monkeypatch.setattr(plots, name, lambda found, *others: seen.append(found))
    models = ["m-hop", *retrieval.BASELINES, "oracle"]
    rows = [
        {"model": model, "setting": str(some), "intensities": some, "first_choice": {"mean": 0.5, "std": 0.1}}
        for some in intensities
        for model in models
    ]
    plots.accuracy({"rows": rows, "config": {"patterns": 8}}, tmp_path / "x.png")
    assert sorted({model for model, _ in seen[0]}) == sorted(drawn)


def test_a_report_goes_where_a_word_says(tmp_path):
    head = report.stamp("some", {}, __file__)
    report.write({**head, "done": []}, str(tmp_path / "x.json"))
    assert report.resume(str(tmp_path / "x.json"), head, free=())[1] == []
