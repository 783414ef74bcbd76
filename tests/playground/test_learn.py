import pytest

from ahop.playground import learn
from ahop.playground.damage import Sliders
from ahop.playground.learn import Setup

DARK = Sliders(light=-0.8, contrast=0.4, noise=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [True, False])
def test_b_hop_comes_close_to_the_ceiling_and_no_memory_lies_far_above_it(few, labels, monkeypatch):
    monkeypatch.setattr(learn, "_SIZES", ())
    (point,) = learn.points(Setup(few, DARK, 40, labels))
    last = point.accuracy
    assert set(last) == {"m-hop", "b-hop", "Oracle"} | ({"a-hop"} if labels else set())
    assert last["b-hop"] >= last["Oracle"] - 0.1 > last["m-hop"]
    assert all(value <= last["Oracle"] + 0.05 for value in last.values())


def test_what_was_learned_has_a_value_for_each_pixel_or_a_place_for_each_value(few):
    (point,) = learn.points(Setup(few, DARK, 10))
    found = learn.properties(point.memory, 12)
    assert found
    for one in found:
        assert len(one.values) == (12 if one.places is None else len(one.places))


@pytest.mark.parametrize("examples", [9, 501])
def test_too_few_or_too_many_examples_are_refused(examples):
    with pytest.raises(ValueError, match=f"examples must be between 10 and 500, got {examples}"):
        learn.sizes(examples)
