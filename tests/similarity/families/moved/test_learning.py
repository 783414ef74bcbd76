import math

import pytest
import torch

from ahop.similarity import Moved
from ahop.similarity.families.moved import alignment
from ahop.similarity.families.moved import learning as moved


def world(count=400, dim=6, width=6, noise=0.05, seed=0):
    """Skewed patterns, a rotation with a shift that leads to queries, and one query of each pattern."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.rand(count, dim, generator=generator).log().neg() * torch.linspace(1, 2, dim)
    turn = torch.linalg.qr(torch.randn(max(width, dim), max(width, dim), generator=generator)).Q[:width, :dim]
    queries = patterns @ turn.T + 3 + noise * torch.randn(count, width, generator=generator)
    return patterns, queries, turn, torch.randperm(count, generator=generator)


def right(similarity, patterns, queries, rows):
    return float((similarity(patterns, queries[rows]).argmax(1) == rows).double().mean())


@pytest.mark.parametrize("width", [4, 6, 9])
def test_pairs_give_the_map(width):
    patterns, queries, turn, order = world(width=width)
    similarity = moved.fit_pairs(patterns, queries[order[:200]], order[:200])
    torch.testing.assert_close(similarity.matrix.data, turn, atol=0.1, rtol=0)
    assert right(similarity, patterns, queries, order[200:]) > 0.9
    assert 0.95 < float(similarity.explained) <= 1


def test_fewer_pairs_than_dimensions_are_enough_where_a_rotation_leads():
    patterns, queries, _, order = world(dim=30, width=30, noise=0.3)
    some = order[:24]
    similarity = Moved(30)
    similarity.fit(patterns, queries[some], some)
    plain = Moved(30)
    plain.bias.data.copy_(queries[some].mean(0) - patterns[some].mean(0))
    assert right(similarity, patterns, queries, order[24:]) > 10 * right(plain, patterns, queries, order[24:])


def test_pairs_that_nothing_happened_to_leave_the_identity():
    patterns, _, _, order = world(dim=20)
    generator = torch.Generator().manual_seed(1)
    queries = patterns + 0.5 * torch.randn(patterns.shape, generator=generator)
    similarity = moved.fit_pairs(patterns, queries[order[:12]], order[:12])
    assert "Queries are where patterns are" in similarity.describe()


def test_far_off_pairs_count_little():
    patterns, queries, _, order = world()
    wild = queries.clone()
    wild[order[:20]] += 50 * torch.randn(20, 6, generator=torch.Generator().manual_seed(2))
    similarity = moved.fit_pairs(patterns, wild[order[:200]], order[:200])
    assert math.isfinite(similarity.tails)
    assert right(similarity, patterns, queries, order[200:]) > 0.9


@pytest.mark.slow
def test_no_pair_is_needed_where_patterns_are_irregular():
    patterns, queries, _, order = world()
    similarity = Moved(6)
    assert similarity.fit(patterns, queries[order]).found
    assert right(similarity, patterns, queries, order) > 0.8


@pytest.mark.slow
def test_queries_of_other_patterns_are_not_taken_for_found():
    patterns, _, _, _ = world()
    _, queries, _, order = world(seed=7)
    similarity = Moved(6)
    with pytest.warns(UserWarning, match="no map from the patterns to the 300 queries was found"):
        report = similarity.fit(patterns, queries[order[:300]])
    # What was not found is another thing than what had not been learned to its end.
    assert report.converged and not report.found


@pytest.mark.slow
def test_a_few_pairs_start_what_the_other_queries_go_on_with():
    patterns, queries, _, order = world(dim=12, width=14, noise=0.3)
    rows = order[:300]
    origins = torch.where(torch.arange(300) < 10, rows, -1)
    similarity = Moved(12, 14)
    assert similarity.fit(patterns, queries[rows], origins).found
    few = moved.fit_pairs(patterns, queries[rows[:10]], rows[:10])
    assert right(similarity, patterns, queries, order[300:]) > right(few, patterns, queries, order[300:])


def test_units_do_not_matter():
    patterns, queries, _, _ = world(200)
    here, there = Moved(6), Moved(6)
    first = here.fit(patterns.double(), queries.double(), torch.arange(200))
    second = there.fit(1e9 * patterns.double() + 5, 1e9 * queries.double() + 5, torch.arange(200))
    torch.testing.assert_close(there.matrix.data, here.matrix.data)
    assert second.loss - first.loss == pytest.approx(6 * math.log(1e9))


def test_what_is_ahead_by_chance_is_not_called_found():
    generator = torch.Generator().manual_seed(0)
    stored, asked = (alignment.standard(torch.randn(1000, 10, generator=generator)) for _ in range(2))
    turn = torch.linalg.qr(torch.randn(10, 10, generator=generator)).Q
    assert not alignment._judged(turn, stored, asked[:500], asked[500:]).found
    near = stored @ turn.T + 0.02 * asked
    assert alignment._judged(turn, stored, near[:500], near[500:]).found


def test_a_choice_that_was_made_is_kept():
    patterns, queries, _, order = world()
    rows = order[:100]
    choice = moved.choose(patterns, queries[rows], rows)
    again = moved.fit_pairs(patterns, queries[rows], rows, choice=choice)
    assert torch.equal(again.matrix, moved.fit_pairs(patterns, queries[rows], rows).matrix)
    fixed = moved.fit_pairs(patterns, queries[rows], rows, choice=moved.Choice(moved.Target.IDENTITY, math.inf))
    torch.testing.assert_close(fixed.matrix.data, torch.eye(6))


@pytest.mark.parametrize("count", [1, 2])
def test_hardly_any_pair_leaves_a_likelihood_that_is_finite(count):
    patterns, queries, _, _ = world(50)
    similarity = Moved(6)
    similarity.fit(patterns, queries[:count], torch.arange(count))
    assert torch.isfinite(similarity(patterns, queries)).all()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_hardly_any_query_is_not_taken_for_found(count):
    patterns, queries, _, _ = world(50)
    similarity = Moved(6)
    with pytest.warns(UserWarning, match="no map"):
        assert not similarity.fit(patterns, queries[:count]).found
    assert torch.isfinite(similarity(patterns, queries)).all()
