import pytest
from PIL import Image

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


@pytest.mark.slow
def test_a_report_goes_where_a_word_says(tmp_path):
    head = report.stamp("some", {}, __file__)
    report.write({**head, "done": []}, str(tmp_path / "x.json"))
    assert report.resume(str(tmp_path / "x.json"), head, free=())[1] == []


def brightness(colour):
    """Relative luminance, as WCAG defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", plots.COLOURS)
def test_colours_can_be_read_on_white_and_on_black(name):
    here = brightness(plots.COLOURS[name])
    assert 1.05 / (here + 0.05) >= 3 and (here + 0.05) / 0.05 >= 3


def test_a_picture_has_no_ground_of_its_own(tmp_path):
    plots.corruption(Likelihood(3), tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as image:
        assert image.getpixel((0, 0))[3] == 0 and image.getextrema()[3] == (0, 255)
