import pytest
import torch

from ahop_paper import self_taught
from ahop_paper.baselines import centred


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def right(found, queries):
    return float((found.first(queries) == torch.arange(len(queries))).double().mean())


def test_a_projection_teaches_itself_which_direction_to_leave_out():
    patterns = drawn(200, 12)
    direction = torch.nn.functional.normalize(drawn(12, seed=1), dim=0)
    queries = patterns + 5 * drawn(200, 1, seed=2) * direction + 0.1 * drawn(200, 12, seed=3)
    assert right(centred(patterns, queries, "distance"), queries) < 0.6
    assert right(self_taught.projected(patterns, queries, 1, "distance"), queries) > 0.95


def test_a_map_is_found_without_a_pair():
    patterns = drawn(400, 8).exp() * torch.linspace(0.1, 2, 8, dtype=torch.float64)
    queries = patterns[:300] @ torch.linalg.qr(drawn(8, 8, seed=1)).Q + 0.01 * drawn(300, 8, seed=2) + 3
    assert right(centred(patterns, queries, "cosine"), queries) < 0.1
    assert right(self_taught.translated(patterns, queries, seed=0), queries) > 0.95


def test_a_map_is_found_into_a_wider_space():
    patterns = drawn(400, 8).exp() * torch.linspace(0.1, 2, 8, dtype=torch.float64)
    queries = patterns @ torch.linalg.qr(drawn(11, 8, seed=1)).Q.T
    assert right(self_taught.translated(patterns, queries, seed=0), queries) > 0.95


@pytest.mark.slow
def test_a_few_pairs_show_the_way_where_a_map_is_not_found_without():
    patterns, some = drawn(400, 8), torch.arange(10)
    queries = patterns @ torch.linalg.qr(drawn(8, 8, seed=1)).Q + 0.4 * drawn(400, 8, seed=2)
    assert right(self_taught.mapped(patterns, queries, seed=0), queries) < 0.1
    assert right(self_taught.mapped(patterns, queries, seed=0, first=(some, some)), queries) > 0.7
