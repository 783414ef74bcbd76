from dataclasses import replace

import pytest
import torch

from ahop import BayesianHopfield
from ahop.similarity.families.capacity import _likely_origins, within_room
from ahop.similarity.families.nearest.family import PlainMetrics
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.without_labels import _anew

NOISE = torch.linspace(0.2, 1.8, 12)


def drawn(noise, seed=0, count=100):
    """Patterns of which each is asked for once, in any order; the noise differs from column to column."""
    draw = torch.Generator().manual_seed(seed)
    patterns, origins = torch.rand(count, 12, generator=draw) * 2 - 1, torch.randperm(count, generator=draw)
    asked = patterns[origins] + noise * NOISE * torch.randn(count, 12, generator=draw)
    return patterns, asked, origins, draw


@torch.no_grad()
def learned(noise=0.5, room=1, **options):
    patterns, asked, origins, _ = drawn(noise, **options)
    data = TrainingData(patterns, asked, room=torch.full((len(patterns),), room))
    chosen = PlainMetrics().without_labels(data, 0, lambda _: None)
    return data, replace(chosen, anew=lambda data: _anew(PlainMetrics(), 0, data)), origins


def test_pairs_that_are_likely_keep_to_the_room_and_are_right_more_often_than_first_choices():
    data, chosen, origins = learned()
    believed = _likely_origins(data, chosen.model)
    taken = believed[believed >= 0]
    assert len(taken.unique()) == len(taken) > 50
    first = chosen.model(data.patterns, data.queries).argmax(1)
    assert (believed == origins)[believed >= 0].double().mean() > (first == origins).double().mean() + 0.1


def test_what_is_known_stays_and_nobody_else_takes_it():
    data, chosen, origins = learned()
    wrong = torch.full_like(origins, -1)
    wrong[:10] = origins.roll(1)[:10]
    believed = _likely_origins(replace(data, origins=wrong), chosen.model)
    assert believed[:10].equal(wrong[:10]) and not torch.isin(believed[10:], wrong[:10]).any()


@pytest.mark.parametrize("case", ["room for all", "no room said", "all known", "cannot be learned again"])
def test_where_the_constraint_tells_nothing_a_model_stays_as_it_is(case):
    data, chosen, origins = learned()
    if case == "room for all":
        data = replace(data, room=torch.full((100,), 100))
    elif case == "no room said":
        data = replace(data, room=None)
    elif case == "all known":
        data, chosen = replace(data, origins=origins), replace(chosen, anew=None)
    else:
        chosen = replace(chosen, again=None)
    assert within_room(data, chosen) is chosen


def test_more_queries_than_room_are_learned_from_all_the_same():
    data, chosen, _ = learned()
    narrow = replace(data, room=(torch.arange(100) < 30).long())
    believed = _likely_origins(narrow, chosen.model)
    assert int(believed.max()) < 30 and len(believed[believed >= 0].unique()) == int((believed >= 0).sum())
    assert within_room(narrow, chosen) is not chosen


def test_of_many_queries_some_are_matched_together(monkeypatch):
    monkeypatch.setattr("ahop.similarity.families.capacity._MAX_SCORES", 100 * 40)
    data, chosen, _ = learned()
    assert (_likely_origins(data, chosen.model)[40:] == -1).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* queries fit these patterns no better")
@pytest.mark.parametrize("seed", range(4))
def test_one_to_one_a_memory_that_knows_it_finds_more_of_further_queries(seed):
    patterns, asked, _, draw = drawn(0.7, seed)
    origins = torch.arange(100).repeat(10)
    further = patterns[origins] + 0.7 * NOISE * torch.randn(1000, 12, generator=draw)

    def right(room):
        memory = BayesianHopfield(patterns).fit(asked, room=room, hidden_causes=0, verbose=False)
        return float((memory.recall(further).indices[:, 0] == origins).double().mean())

    assert right(1) > right(None)


@pytest.mark.parametrize("room", [0, 1.5, [1, 2]])
def test_a_room_that_is_none_is_refused_and_nothing_is_learned(room):
    memory = BayesianHopfield(torch.rand(5, 3))
    with pytest.raises(ValueError, match="room must be an integer of at least 1, or 5 of at least 0"):
        memory.fit(torch.rand(5, 3), room=room)
    assert memory.report is None
