import pytest
import torch

from ahop.playground import recall
from ahop.playground.damage import Paint, Sliders
from ahop.playground.pictures import Pictures
from ahop.playground.recall import MEMORIES, Task


@pytest.mark.parametrize("name", MEMORIES)
def test_every_memory_names_its_best_five_and_how_sure_it_is(few, name):
    task = Task(few, 3, Sliders(noise=0.1))
    answer = recall.ask(task, name)
    chances = [chance for _, chance in answer.best]
    assert len({index for index, _ in answer.best}) == 5 and answer.best[0][0] == 3 and answer.right
    assert chances == sorted(chances, reverse=True) and chances[-1] >= 0 and sum(chances) <= 1 + 1e-5
    assert answer.picture.shape == (12,)
    assert (answer.refused is None) == (name != "b-hop") and not answer.refused


def test_a_picture_that_was_taken_out_is_in_no_answer(few):
    task = Task(few, 3, Sliders(noise=0.1), forget=True)
    for name in ("m-hop", "b-hop", "Oracle"):
        answer = recall.ask(task, name)
        assert 3 not in [index for index, _ in answer.best] and answer.right is None


@pytest.mark.slow
def test_b_hop_refuses_what_is_not_stored(few):
    """Where the damage is small, nothing else is like it."""
    strangers = [recall.ask(Task(few, place, Sliders(noise=0.05), forget=True), "b-hop").refused for place in (0, 1)]
    assert all(strangers)


def test_examples_are_learned_from_once(few, monkeypatch):
    task = Task(few, 5, Sliders(noise=0.2))
    memory = recall.memory_for(task, "a-hop")
    assert recall.memory_for(task._replace(chosen=7, seed=3), "a-hop") is memory
    assert recall.memory_for(task._replace(forget=True), "a-hop") is not memory


def test_the_oracle_is_asked_only_where_the_likelihood_is_known(few):
    painted = Task(few, 0, Sliders(), Paint((0,), (1.0,)))
    assert recall.names_for(Task(few, 0).damage) == list(MEMORIES)
    assert recall.names_for(painted.damage) == [name for name in MEMORIES if name != "Oracle"]


@pytest.mark.slow
def test_all_answers_come_and_those_that_learn_come_last(few):
    names = [answer.name for answer in recall.ask_all(Task(few, 1, Sliders(noise=0.2)))]
    assert sorted(names) == sorted(MEMORIES) and set(names[-3:]) == {"k2-hop", "a-hop", "b-hop"}


def test_equal_pictures_are_the_same_answer():
    twice = Pictures(torch.eye(4)[[0, 0, 1, 2]], (2, 2), ("a", "b", "c", "d"))
    assert all(recall.ask(Task(twice, place), "u-hop").right for place in (0, 1))


def test_pictures_that_differ_only_where_it_is_hidden_are_equally_likely():
    alike = Pictures(torch.tensor([[1.0, 1, 0, 1], [-1, 1, 0, 1], [1, 1, 1, 0]]), (2, 2), ("a", "b", "c"))
    for place in (0, 1):
        answer = recall.ask(Task(alike, place, Sliders(top=0.5)), "Oracle")
        assert answer.right and answer.tied and {index for index, _ in answer.best[:2]} == {0, 1}
    assert not recall.ask(Task(alike, 2, Sliders(top=0.5)), "Oracle").tied


@pytest.mark.parametrize("name", MEMORIES)
def test_a_walk_begins_at_the_query_and_ends_at_rest(few, name):
    task = Task(few, 2, Sliders(noise=0.3))
    memory = recall.memory_for(task, name)
    walk = recall.walk(memory, task.query, most=50)
    assert torch.equal(walk.states[0], task.query) and walk.energies.shape == (len(walk.states),)
    assert walk.rests and torch.allclose(memory.retrieve(walk.states[-1]), walk.states[-1], atol=1e-3)
    if name in ("m-hop", "s-hop", "k2-hop"):
        assert bool((walk.energies.diff() <= 1e-4).all())


def test_a_walk_is_no_longer_than_it_may_be(few):
    walk = recall.walk(recall.memory_for(Task(few, 2), "m-hop"), torch.zeros(12), most=1)
    assert len(walk.states) == 2
