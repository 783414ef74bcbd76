"""What known origins say in an E-step."""

import torch

from ahop.similarity.families.shares import assign_known, ruled_out

ORIGINS = torch.tensor([2, -1, 0])


def test_shares_of_scores_that_known_origins_rule_out_are_those_assigned_afterwards():
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    shares = torch.softmax(scores, 1)
    assign_known(shares, ORIGINS)
    assert torch.softmax(scores.masked_fill(ruled_out(ORIGINS, 4), -torch.inf), 1).equal(shares)
    assert shares[[0, 2], [2, 0]].eq(1).all() and bool((shares[1] > 0).all())


def test_nothing_is_ruled_out_where_no_origin_is_known():
    shares, nobody = torch.full((3, 4), 0.25), torch.full((3,), -1)
    assign_known(shares, nobody)
    assert shares.eq(0.25).all() and not ruled_out(nobody, 4).any()
