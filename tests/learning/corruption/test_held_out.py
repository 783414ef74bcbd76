"""A temperature and a doubt from scores of origins that were left out."""

import pytest
import torch

from ahop import BayesianHopfield
from ahop.learning.corruption.held_out import doubted, tempered

RIVALS = 200


def table(hopeless, beta, count=1000):
    """Scores whose posterior is right at ``beta``, but for a share of queries that say nothing of the origin."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(count, RIVALS + 1, dtype=torch.float64, generator=generator)
    own = torch.multinomial(torch.softmax(logits, 1), 1, generator=generator).squeeze(1)
    lost = torch.rand(count, generator=generator) < hopeless
    own[lost] = torch.randint(RIVALS + 1, (int(lost.sum()),), generator=generator)
    rows, first = torch.arange(count), logits[:, 0].clone()
    logits[:, 0] = logits[rows, own]
    logits[rows[own > 0], own[own > 0]] = first[own > 0]
    return logits / beta


@pytest.mark.parametrize("beta", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("hopeless", [0.1, 0.3])
def test_queries_beyond_hope_do_not_make_the_others_doubtful(hopeless, beta):
    log_beta, doubt = doubted(table(hopeless, beta))
    assert doubt == pytest.approx(hopeless, abs=0.06)
    assert torch.tensor(log_beta).exp() == pytest.approx(beta, rel=0.15)
    # A temperature alone has to make all of them less sure.
    assert tempered(table(hopeless, beta))[1] < log_beta


def test_there_is_no_doubt_without_reason():
    scores = table(hopeless=0.0, beta=0.5)
    assert doubted(scores) == (tempered(scores)[1], 0.0)


@pytest.mark.parametrize("prior", [None, torch.tensor([1.0, 2.0, 3.0, 0.0])])
def test_doubt_gives_the_prior_its_share(prior):
    memory = BayesianHopfield(torch.eye(4), prior=prior)
    asked = torch.eye(4) + 0.1
    sure = memory.recall(asked, k=4)
    memory.similarity.doubt.fill_(0.25)
    doubtful = memory.recall(asked, k=4)
    assert doubtful.indices.equal(sure.indices)
    share = torch.full((4,), 0.25) if prior is None else prior / prior.sum()
    expected = 0.75 * sure.probabilities + 0.25 * share[sure.indices]
    torch.testing.assert_close(doubtful.probabilities, expected)
    torch.testing.assert_close(doubtful.probabilities.sum(1), torch.ones(4))
