import pytest
import torch

from ahop.similarity.families.correlated.moments import OfMatrix, OfRows, PairMoments, ShareMoments

GENERATOR = torch.Generator().manual_seed(0)


def test_moments_of_sure_shares_are_moments_of_pairs():
    queries, patterns = (torch.randn(60, 24, generator=GENERATOR).double() for _ in range(2))
    origins = torch.randint(60, (60,), generator=GENERATOR)
    weights = torch.rand(60, generator=GENERATOR).double()
    shares = torch.zeros(60, 60).double()
    shares[torch.arange(60), origins] = weights
    pairs = PairMoments(queries, patterns[origins], weights, 60)
    spread = ShareMoments(queries, patterns, shares)
    for name in ("mean_x", "mean_k", "xk", "kk"):
        torch.testing.assert_close(getattr(pairs, name), getattr(spread, name))
    gain, scale = torch.tensor(0.7).double(), 0.5 + torch.rand(24, generator=GENERATOR).double()
    one, other = pairs.covariance(gain), spread.covariance(gain)
    torch.testing.assert_close(one.diagonal(), other.diagonal())
    torch.testing.assert_close(*(found.leading(scale, 3, torch.zeros(24, 3).double())[0] for found in (one, other)))


@pytest.mark.parametrize("rows", [30, 300])
def test_a_few_eigenvectors_are_found_whatever_way_is_taken(rows):
    many = torch.randn(rows, 200, generator=GENERATOR).double() * (1 + 9 * (torch.arange(200) < 3))
    scale, start = 0.5 + torch.rand(200, generator=GENERATOR).double(), torch.zeros(200, 3).double()
    matrix = many.mT @ many / scale[:, None] / scale
    for covariance in (OfRows(many), OfMatrix(many.mT @ many)):
        values, vectors = covariance.leading(scale, 3, start)
        torch.testing.assert_close(matrix @ vectors, vectors * values, rtol=1e-3, atol=1e-2 * float(values.max()))
        torch.testing.assert_close(values, torch.linalg.eigvalsh(matrix)[-3:], rtol=1e-3, atol=0)
        torch.testing.assert_close(vectors.mT @ vectors, torch.eye(3).double())
