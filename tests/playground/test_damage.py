import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop.memories import Oracle
from ahop.playground.damage import Damage, Paint, Sliders, blurred, paint_of

SHAPE = (6, 5)
PATTERNS = torch.rand(9, 30, generator=torch.Generator().manual_seed(1)) * 2 - 1


def test_without_damage_a_picture_stays_as_it_is():
    assert torch.equal(Damage(SHAPE, Sliders()).query(PATTERNS[0]), PATTERNS[0])


def test_hidden_rows_are_grey_and_the_others_are_not_touched():
    seen = Damage(SHAPE, Sliders(top=1 / 3, bottom=1 / 6)).query(PATTERNS[0]).reshape(SHAPE)
    assert not seen[:2].any() and not seen[5:].any()
    assert torch.equal(seen[2:5], PATTERNS[0].reshape(SHAPE)[2:5])


def test_light_and_contrast_are_what_they_say():
    seen = Damage(SHAPE, Sliders(light=0.25, contrast=0.5)).query(PATTERNS[0])
    torch.testing.assert_close(seen, 0.5 * PATTERNS[0] + 0.25)


@given(width=st.floats(0.05, 5), shade=st.floats(-1, 1))
def test_a_blur_leaves_an_even_picture_even_and_goes_beyond_no_shade(width, shade):
    even = torch.full((1, 30), shade)
    torch.testing.assert_close(blurred(even, SHAPE, width), even)
    soft = blurred(PATTERNS, SHAPE, width)
    assert float(soft.max()) <= float(PATTERNS.max()) + 1e-6 and float(soft.min()) >= float(PATTERNS.min()) - 1e-6


def test_a_blur_works_alike_on_rows_and_on_columns():
    picture = PATTERNS[:1].reshape(1, *SHAPE)
    turned = blurred(picture.mT.flatten(1), SHAPE[::-1], 0.8).reshape(1, *SHAPE[::-1])
    torch.testing.assert_close(blurred(picture.flatten(1), SHAPE, 0.8).reshape(1, *SHAPE), turned.mT)


def test_the_likelihood_is_that_of_noise_around_the_blurred_and_dimmed_picture():
    sliders = Sliders(blur=0.7, noise=0.3, light=-0.2, contrast=0.6)
    damage = Damage(SHAPE, sliders)
    queries = damage.sample(PATTERNS, 4).queries
    centre = 0.6 * blurred(PATTERNS, SHAPE, 0.7) - 0.2
    density = torch.distributions.Normal(centre, 0.3).log_prob(queries[:, None]).sum(-1)
    torch.testing.assert_close(damage.log_likelihood(PATTERNS, queries), density, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("sliders", [Sliders(), Sliders(top=0.5, noise=0.1), Sliders(blur=1.0), Sliders(light=0.9)])
def test_the_oracle_finds_the_origin_of_what_was_little_damaged(sliders):
    damage = Damage(SHAPE, sliders)
    seen = damage.sample(PATTERNS, 20)
    assert torch.equal(Oracle(PATTERNS, damage).recall(seen.queries).indices[:, 0], seen.origins)


def test_paint_stays_where_it_is_in_the_query_and_moves_in_examples():
    damage = Damage(SHAPE, Sliders(), Paint((0, 7), (1.0, -1.0)))
    seen = damage.query(torch.zeros(30))
    assert seen[0] == 1 and seen[7] == -1 and int((seen != 0).sum()) == 2
    examples = damage.sample(torch.zeros(3, 30), 50).queries
    assert torch.equal((examples == 1).sum(1), torch.ones(50)) and torch.equal((examples == -1).sum(1), torch.ones(50))
    assert len(examples.unique(dim=0)) > 10


def test_paint_has_no_likelihood():
    damage = Damage(SHAPE, Sliders(), Paint((0,), (1.0,)))
    assert not damage.scored
    with pytest.raises(ValueError, match="paint cannot be scored"):
        damage.log_likelihood(PATTERNS, PATTERNS)


@given(
    text=st.none() | st.text() | st.lists(st.integers()).map(lambda cells: f'{{"cells": {cells}, "shades": {cells}}}')
)
def test_whatever_the_brush_sends_is_paint_on_the_picture(text):
    paint = paint_of(text, pixels=30)
    assert all(0 <= cell < 30 for cell in paint.cells) and all(abs(shade) <= 1 for shade in paint.shades)
    assert len(paint.cells) == len(set(paint.cells)) == len(paint.shades)


def test_shades_that_are_no_numbers_are_no_paint():
    assert paint_of('{"cells": [1], "shades": [NaN]}', 30) == Paint() and not math.isnan(sum(paint_of("[]", 3).shades))
