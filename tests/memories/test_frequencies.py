from itertools import pairwise

import torch

from ahop._queries import Queries
from ahop.memories.frequencies import _Counts, frequencies
from ahop.memories.window import Window
from ahop.similarity import Likelihood
from ahop.similarity.families import em

PATTERNS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ORIGINS = torch.tensor([0, 0, 0, 1, 1, 2, 0, 3])
QUERIES = Queries(PATTERNS[ORIGINS] + 0.3 * torch.randn(8, 4, generator=torch.Generator().manual_seed(1)).double())
LIKELIHOOD = Likelihood(4).double()


@torch.no_grad()
def test_known_origins_are_counted_and_none_is_ruled_out():
    found = frequencies(LIKELIHOOD, PATTERNS, Window(QUERIES, ORIGINS))
    assert found.tolist() == [5, 3, 2, 2, 1, 1]


@torch.no_grad()
def test_a_query_of_unknown_origin_counts_once_however_it_is_shared_out():
    some = torch.where(torch.arange(8) < 4, ORIGINS, -1)
    for origins in (None, some):
        found = frequencies(LIKELIHOOD, PATTERNS, Window(QUERIES, origins))
        torch.testing.assert_close(found.sum(), torch.tensor(6.0 + 8).double())
    assert (found >= torch.tensor([4, 2, 1, 1, 1, 1])).all()


@torch.no_grad()
def test_the_evidence_with_its_prior_never_falls():
    learner, bounds = _Counts(LIKELIHOOD, PATTERNS, Window(QUERIES, None)), []
    for _ in range(10):
        log_prior = (learner.counts / learner.counts.sum()).log().sum() / 8
        bounds.append(em.iterate(learner, 1)[0] + float(log_prior))
    assert min(after - before for before, after in pairwise(bounds)) > -1e-12 and bounds[-1] > bounds[0]
