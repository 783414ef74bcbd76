import base64
import io
import re
from html import unescape

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ahop.playground import draw
from ahop.playground.draw import Line

numbers = st.floats(-1e6, 1e6, allow_nan=False)


def opened(address):
    head, _, content = address.partition(",")
    assert head in ("data:image/png;base64", "data:image/gif;base64")
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_a_picture_shows_its_shades_and_cuts_off_what_lies_beyond():
    shown = opened(draw.picture(torch.tensor([-2.0, -1.0, 0.0, 1.0, 3.0, 1.0]), (2, 3)))
    assert shown.size == (3, 2) and list(shown.tobytes()) == [0, 0, 128, 255, 255, 255]


def test_a_film_has_a_frame_for_each_state():
    states = torch.linspace(-1, 1, 5)[:, None].expand(5, 6)
    assert opened(draw.film(states, (2, 3))).n_frames == 5


def test_nothing_is_white_less_is_blue_and_more_is_orange():
    shown = np.asarray(opened(draw.heat(torch.tensor([0.0, -2.0, 2.0, 1.0]), (2, 2)))).reshape(4, 3).astype(int)
    (nothing, less, more, some), (red, blue) = shown, (0, 2)
    assert nothing.tolist() == [255, 255, 255]
    assert less[red] < less[blue] and more[blue] < some[blue] < some[red]


def test_an_area_is_the_stronger_the_lower_and_what_is_in_none_is_grey():
    shown = np.asarray(opened(draw.areas(torch.tensor([[0.0, 1.0], [0.0, 9.0]]), torch.tensor([[0, 0], [1, -1]]))))
    (low, high), (other, none) = shown.astype(int)
    assert low[:3].tolist() == high[:3].tolist() != other[:3].tolist() and low[3] == other[3] > high[3] > none[3]
    assert len(set(none[:3].tolist())) == 1


@given(low=numbers, span=st.floats(0, 1e6))
def test_ticks_are_few_evenly_spaced_and_hold_what_is_shown(low, span):
    ticks = draw.ticks(low, low + span)
    assert 2 <= len(ticks) <= 6 or (span < 1e-6 * abs(low))
    assert ticks[0] <= low + 1e-6 * max(1, abs(low)) and ticks[-1] >= low + span - 1e-6 * max(1, abs(low) + span)


@given(rows=st.lists(st.tuples(st.integers(1, 500), numbers), min_size=1, max_size=30), log=st.booleans())
def test_every_point_lies_on_the_chart(rows, log):
    across, up = zip(*sorted(rows), strict=True)
    text = draw.chart("title", [Line("name", "m-hop", across, up)], "across", log=log)
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', text).groups())
    points = [tuple(map(float, pair.split(","))) for pair in re.search(r'points="([^"]+)"', text)[1].split()]
    assert len(points) == len(rows)
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


@given(text=st.text())
def test_text_of_others_is_neither_markup_nor_a_template(text):
    assert not set(draw.safe(text)) & set("<>\"'{}$`\\")
    assert unescape(draw.safe(text)) == text
