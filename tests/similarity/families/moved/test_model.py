import math

import pytest
import torch

import ahop
from ahop.similarity import Moved

GENERATOR = torch.Generator().manual_seed(0)


def learned(tails=math.inf, dim=4, query_dim=6):
    moved = Moved(dim, query_dim, tails=tails).double()
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=GENERATOR))
    return moved


def some(*shape):
    return torch.randn(*shape, generator=GENERATOR).double()


def test_normal_tails_are_the_normal_distribution_around_the_map():
    moved, patterns, queries = learned(), some(5, 4), some(7, 6)
    for k, pattern in enumerate(patterns):
        normal = torch.distributions.MultivariateNormal(moved.matrix @ pattern + moved.bias, scale_tril=moved.factor)
        torch.testing.assert_close(moved(patterns, queries)[:, k], normal.log_prob(queries))


def test_heavy_tails_are_students():
    moved = learned(3.0, 2, 1)
    pattern, queries = some(1, 2), torch.linspace(-5, 5, 11).double()[:, None]
    student = torch.distributions.StudentT(3.0, moved.matrix @ pattern[0] + moved.bias, moved.factor[0])
    torch.testing.assert_close(moved(pattern, queries), student.log_prob(queries))


@pytest.mark.parametrize("tails", [4.0, math.inf])
def test_what_is_not_observed_is_marginalised(tails):
    moved, patterns, queries = learned(tails), some(5, 4), some(7, 6)
    kept = torch.tensor([0, 2, 3])
    covariance = (moved.factor @ moved.factor.T)[kept][:, kept]
    small = Moved.around(moved.matrix[kept], moved.bias[kept], covariance, tails, 0.0)
    mask = torch.zeros(7, 6, dtype=torch.bool)
    mask[:, kept] = True
    torch.testing.assert_close(moved(patterns, queries, mask), small(patterns, queries[:, kept]))
    torch.testing.assert_close(
        moved.stranger(patterns, queries, mask), small.stranger(patterns, queries[:, kept]), check_dtype=False
    )


@pytest.mark.parametrize("masked", [False, True])
def test_gradients(masked):
    moved, patterns, queries = learned(4.0), some(3, 4), some(3, 6)
    mask = torch.rand(3, 6, generator=GENERATOR) < 0.6 if masked else None
    inputs = [patterns.requires_grad_(), queries.requires_grad_(), *moved.parameters()]
    assert torch.autograd.gradcheck(lambda patterns, queries, *_: moved(patterns, queries, mask), inputs)


def test_a_stranger_is_a_pattern_spread_like_the_stored_ones():
    moved, patterns, queries = learned(), some(5, 4), some(7, 6)
    spread = torch.cov(patterns.T, correction=0)
    covariance = moved.matrix @ spread @ moved.matrix.T + moved.factor @ moved.factor.T
    normal = torch.distributions.MultivariateNormal(moved.matrix @ patterns.mean(0) + moved.bias, covariance)
    torch.testing.assert_close(moved.stranger(patterns, queries), normal.log_prob(queries))


def test_other_units_change_the_density_by_their_size_alone():
    moved, patterns, queries = learned(4.0), some(5, 4), some(7, 6)
    there = moved.rescaled(1e3, 7.0)(1e3 * patterns + 7, 1e3 * queries + 7)
    torch.testing.assert_close(there, moved(patterns, queries) - 6 * math.log(1e3))


def test_codes_are_scores_up_to_a_constant_of_the_query():
    moved, patterns, queries = learned(), some(5, 4), some(7, 6)
    codes = moved.codes(patterns, 0.1)
    assert codes.encode_patterns(patterns).shape == (5, 7)
    gap = moved(patterns, queries) - codes(patterns, queries)
    torch.testing.assert_close(gap, gap[:, :1].expand(-1, 5))
    with pytest.raises(ValueError, match="observed is not supported"):
        codes(patterns, queries, torch.zeros(7, 6, dtype=torch.bool))


@pytest.mark.parametrize("metric", ["inner", "cosine", "l2"])
def test_an_adapter_loses_little_where_a_rotation_leads_between_spheres(metric):
    patterns = torch.nn.functional.normalize(some(200, 4), dim=1)
    turn = torch.linalg.qr(some(6, 4)).Q
    moved = Moved.around(turn, some(6), 0.01 * torch.eye(6).double(), math.inf, 0.0)
    queries = patterns @ turn.T + moved.bias + 0.1 * some(200, 6)
    asked = moved.adapter(patterns, metric)(queries)
    assert asked.shape == (200, 4)
    index = -torch.cdist(asked, patterns) if metric == "l2" else asked @ patterns.T
    own = torch.arange(200)
    found, exact = ((scores.argmax(1) == own).sum() for scores in (index, moved(patterns, queries)))
    assert found > 0.95 * exact > 50


def test_an_unknown_metric_is_named():
    with pytest.raises(ValueError, match="metric must be one of 'inner', 'cosine', 'l2', got 'hamming'"):
        Moved(2).adapter(torch.eye(2), "hamming")


def test_a_memory_takes_queries_of_another_width(tmp_path):
    patterns, turn = some(60, 4).float(), some(4, 6).float()
    queries = patterns @ turn + 0.05 * some(60, 6).float()
    memory = ahop.UniversalHopfield(patterns, similarity=Moved(4, query_dim=6))
    memory.fit(queries, torch.arange(60))
    assert (memory.recall(queries).indices.squeeze(1) == torch.arange(60)).float().mean() > 0.95
    assert memory.scores(queries[0]).shape == (60,) and memory.retrieve(queries).shape == (60, 4)
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(queries), memory.scores(queries))
    with pytest.raises(ValueError, match=r"queries must have 6 values each, as the similarity was made for; got shape"):
        memory.recall(patterns)
    with pytest.raises(ValueError, match="steps must be 1 where answers and queries differ in width"):
        memory.retrieve(queries, steps=2)
    with pytest.raises(ValueError, match="observed must be None: a moved space"):
        memory.fit(queries, torch.arange(60), observed=queries < 1)


def test_it_says_what_it_found():
    assert "Queries are where patterns are" in Moved(3).describe()
    turned = Moved.around(torch.eye(3).flip(0), torch.zeros(3), torch.eye(3), 4.0, 0.5).describe()
    assert "a rotation leads there, stretching by 1 on average" in turned and "explains 50 %" in turned
    other = Moved.around(torch.diag(torch.tensor([1.0, 2.0, 5.0])), torch.zeros(3), torch.eye(3), math.inf, 0.0)
    assert "a linear map that is no rotation" in other.describe()
    assert [len(values) for _, values, _ in learned().curves()] == [6, 6, 4]


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="dim and query_dim must be at least 1, got 3 and 0"):
        Moved(3, 0)
    with pytest.raises(ValueError, match="tails must be more than 0, got 0"):
        Moved(3, tails=0)


def test_patterns_that_are_all_the_same_have_no_adapter():
    memory = ahop.BayesianHopfield(torch.ones(2, 2)).fit(torch.ones(2, 1), torch.arange(2))
    with pytest.raises(ValueError, match="patterns must differ for an index to tell them apart"):
        memory.query_adapter()
