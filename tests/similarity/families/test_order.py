import pytest
import torch

import ahop
from ahop import BayesianHopfield
from ahop.similarity import Likelihood, Transformed
from ahop.similarity.families.order import as_order, order_of


def blurred(seed, count, *shape, width=2):
    """Noise that was smoothed along every axis."""
    found = torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))
    for axis in range(1, found.ndim):
        for _ in range(width):
            found = (found + found.roll(1, axis) + found.roll(-1, axis)) / 3
    return found.flatten(1)


def test_curves_and_images_are_told_from_columns_without_an_order():
    assert order_of(blurred(0, 20, 200)) == (200,)
    assert order_of(blurred(0, 20, 16, 24)) == (16, 24)
    assert order_of(torch.randn(20, 200, generator=torch.Generator().manual_seed(0))) == ()
    assert order_of(blurred(0, 20, 200)[:, torch.randperm(200, generator=torch.Generator().manual_seed(0))]) == ()


def test_a_level_that_all_columns_share_is_no_order():
    generator = torch.Generator().manual_seed(0)
    level = 3 * torch.randn(50, 1, generator=generator)
    assert order_of(level + torch.randn(50, 100, generator=generator)) == ()
    assert order_of(level + blurred(1, 50, 100)) == (100,)


@pytest.mark.parametrize("order", ["row", 2, (3, 4), (1, 12), (2, 3, 2), (2.0, 6.0), True])
def test_an_order_that_columns_cannot_have_is_refused(order):
    if order is True:
        assert as_order(order, 12) == (12,)
        return
    with pytest.raises(ValueError, match="order must be"):
        BayesianHopfield(torch.randn(5, 13)).fit(torch.randn(9, 13), order=order)


def test_slopes_of_a_parabola_are_a_line_and_its_curvature_is_constant():
    line = torch.linspace(-1, 1, 40, dtype=torch.float64)
    rows = torch.stack([line**2, 3 * line**2 + line])
    step = float(line[1] - line[0])
    slopes, curvature = (
        Transformed(Likelihood(40), shape=(40,), derivative=order, window=7).view(rows)[:, 3:-3] for order in (1, 2)
    )
    torch.testing.assert_close(slopes[0] / step, 2 * line[3:-3])
    torch.testing.assert_close(curvature / step**2, torch.tensor([[2.0], [6.0]], dtype=torch.float64).expand(2, 34))


def test_slopes_of_an_image_go_both_ways_and_know_no_level():
    image = torch.arange(12.0).reshape(1, 12)
    seen = Transformed(Likelihood(24), shape=(3, 4), derivative=1)
    assert seen.dim == 12
    across, down = seen.view(image).reshape(2, 3, 4)
    assert across[:, :-1].eq(1).all() and across[:, -1].eq(0).all()
    assert down[:-1].eq(4).all() and down[-1].eq(0).all()
    torch.testing.assert_close(seen.view(image + 5), seen.view(image))


@pytest.mark.parametrize("options", [{"derivative": 1}, {"derivative": 2, "shape": (3, 4)}, {"derivative": 3}])
def test_derivatives_of_columns_without_an_order_are_refused(options):
    with pytest.raises(ValueError, match="derivative must be"):
        Transformed(Likelihood(12), **options)


def spectra(seed, learn=30):
    """Spectra that differ in small peaks, on a baseline of each measurement's own; and which to learn from."""
    generator = torch.Generator().manual_seed(seed)
    peaks, line = 0.3 * blurred(seed, 60, 150, width=3), torch.linspace(-1, 1, 150)

    def baseline():
        bend = 3 * torch.randn(60, 3, generator=generator)
        return bend[:, :1] + bend[:, 1:2] * line + bend[:, 2:] * line**2

    first, second = (peaks + baseline() + 0.02 * torch.randn(60, 150, generator=generator) for _ in range(2))
    order = torch.randperm(60, generator=generator)
    return first, second, order[:learn], order[learn:]


def faces(seed, learn=60):
    """Images in the light of each query's own, and which of the queries to learn from: of other images."""
    generator = torch.Generator().manual_seed(seed)
    images = (0.7 * blurred(seed, 30, 16, 16, width=2)).exp()
    origins = torch.randint(30, (300,), generator=generator)
    down, across = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    tilt = torch.randn(300, 2, 1, 1, generator=generator)
    light = (tilt[:, 0] * down + tilt[:, 1] * across).exp().flatten(1)
    queries = images[origins] * light * (1 + 0.1 * torch.randn(300, 256, generator=generator))
    known = (origins < 15).nonzero().squeeze(1)[:learn]
    return images, queries, origins, known, (origins >= 15).nonzero().squeeze(1)


def share(memory, queries, origins):
    return float((memory.recall(queries).indices[:, 0] == origins).double().mean())


@pytest.mark.slow
def test_the_order_of_spectra_is_found_and_shows_with_labels():
    first, second, learn, score = spectra(0)
    memory = BayesianHopfield(first).fit(second[learn], learn)
    without = BayesianHopfield(first).fit(second[learn], learn, order=0, hidden_causes=0)
    assert share(memory, second[score], score) > 0.9 > 0.6 > share(without, second[score], score)
    said = BayesianHopfield(first).fit(second[learn], learn, order=1)
    assert said.report.tried == memory.report.tried


@pytest.mark.slow
def test_slopes_of_logarithms_find_faces_in_other_light():
    images, queries, origins, learn, score = faces(0)
    memory = BayesianHopfield(images).fit(queries[learn], origins[learn], order=(16, 16))
    nearest = ahop.UniversalHopfield(images, similarity="distance")
    found = share(memory, queries[score], origins[score])
    assert found > 0.9 > 0.6 > share(nearest, queries[score], origins[score])
