"""Two clouds of points, brought together by a rotation."""

import pytest
import torch

from ahop.similarity.families.moved import alignment
from ahop.similarity.families.moved.alignment import align, lands
from ahop.similarity.families.moved.turns import nearest_rotation


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_queries_land_on_patterns_as_they_are_or_not(unit):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(2000, 16, generator=generator)
    queries = patterns + 0.3 * torch.randn(2000, 16, generator=generator) + 5
    rotation = nearest_rotation(torch.randn(16, 16, generator=generator))
    assert lands(patterns, unit * queries)
    # Turned, they lie somewhere among the patterns, and near to none.
    assert not lands(patterns, unit * queries @ rotation.mT)
    # And so do points that have nothing to do with them.
    assert not lands(patterns, unit * torch.randn(2000, 16, generator=generator))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_groups_that_a_rotation_can_bring_to_a_pattern_each_are_not_found(seed):
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(600, 19, generator=generator)
    group = torch.randint(8, (500,), generator=generator)
    queries = 3 * torch.randn(8, 15, generator=generator)[group] + torch.randn(500, 15, generator=generator)
    assert not align(patterns, queries, torch.full((500,), -1), seed).found


@pytest.mark.parametrize("known", [0, 2, 30])
def test_a_search_that_has_failed_is_made_again_however_many_pairs_are_known(known, monkeypatch):
    patterns, queries = torch.randn(2, 200, 12, generator=torch.Generator().manual_seed(0))
    origins = torch.where(torch.arange(200) < known, torch.arange(200), -1)
    seeds = []
    monkeypatch.setattr(alignment.starts, "by_components", lambda *given: seeds.append(given[-1]) or iter(()))
    assert not align(patterns, queries, origins, 7).found
    assert seeds == [7, 8, 9, 10, 11, 12]


@pytest.fixture
def sizes(monkeypatch):
    """How many patterns took turns."""
    sizes, take_turns = [], alignment.take_turns

    def watched(rotation, stored, *others):
        sizes.append(len(stored))
        return take_turns(rotation, stored, *others)

    monkeypatch.setattr(alignment, "take_turns", watched)
    return sizes


def test_turns_on_all_of_many_items_are_made_only_from_starts_that_come_closer_than_nulls(monkeypatch, sizes):
    patterns, queries = torch.randn(2, 100, 12, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(alignment, "_SOME_ITEMS", 20)
    monkeypatch.setattr(alignment.starts, "by_components", lambda *_: iter(()))
    monkeypatch.setattr(alignment, "_LEAST_LEAD", 1e3)
    monkeypatch.setattr(alignment, "_MIN_GAIN_RATIO", 1e3)
    assert not align(patterns, queries, torch.full((100,), -1)).found
    assert set(sizes) == {25, 20}
    monkeypatch.setattr(alignment, "_MIN_GAIN_RATIO", 0.0)
    align(patterns, queries, torch.full((100,), -1))
    assert set(sizes) == {25, 20, 100}


def test_what_known_pairs_bring_together_goes_on_though_it_comes_no_closer_than_nulls(monkeypatch, sizes):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(400, 12, generator=generator)
    turned = patterns @ nearest_rotation(torch.randn(12, 12, generator=generator))
    queries = turned + 0.1 * torch.randn(400, 12, generator=generator)
    monkeypatch.setattr(alignment, "_SOME_ITEMS", 150)
    monkeypatch.setattr(alignment, "_MIN_GAIN_RATIO", 1e3)
    # Nothing else can be right.
    wrong = nearest_rotation(torch.randn(12, 12, generator=generator))
    monkeypatch.setattr(alignment.starts, "by_fingerprints", lambda *_: wrong)
    monkeypatch.setattr(alignment.starts, "by_components", lambda *_: iter(()))
    assert align(patterns, queries, torch.where(torch.arange(400) < 100, torch.arange(400), -1)).found
    assert set(sizes) == {100, 150, 400}


@pytest.mark.parametrize("count", [0, 1])
def test_rows_of_less_than_two_dimensions_are_not_found_and_no_error(count):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(200, 1, generator=generator) * torch.ones(1, 3) if count else torch.ones(200, 3)
    queries = torch.randn(200, 4, generator=generator)
    assert not align(patterns, queries, torch.full((200,), -1)).found


def test_components_are_not_looked_for_where_what_costs_less_is_right(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(400, 12, generator=generator).exp()
    queries = patterns @ nearest_rotation(torch.randn(12, 12, generator=generator))
    monkeypatch.setattr(alignment.starts, "by_components", lambda *sides: pytest.fail("components were looked for"))
    assert align(patterns, queries, torch.full((400,), -1)).found
