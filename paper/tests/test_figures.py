import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from ahop_paper import figures
from ahop_paper.commands import app


def test_the_distance_fails_on_the_example_and_the_footprint_does_not():
    patterns, query, memory = figures.example()
    assert patterns.shape == (2, 256)
    assert (patterns - query).square().sum(1).argmin() == 1
    assert memory.recall(query[None]).indices.item() == 0


def test_clouds_are_where_variants_fall():
    pattern = torch.zeros(1, 2)
    for name, variant in figures.clouds():
        drawn = variant.sample(pattern, 500).queries
        elsewhere = torch.rand(500, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1
        typical, strange = (variant.log_likelihood(pattern, some).median() for some in (drawn, elsewhere))
        assert typical > strange, name


@pytest.mark.slow
def test_figures_are_drawn(tmp_path):
    result = CliRunner().invoke(app, ["figures", "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for name in ("clouds.png", "example.png"):
        with Image.open(tmp_path / name) as image:
            assert image.width > 1000
