import pytest
import torch

from ahop import BayesianHopfield


@pytest.mark.slow
def test_a_recall_says_what_refusing_comes_to_and_it_comes_to_that():
    generator = torch.Generator().manual_seed(0)
    every = torch.randn(300, 16, generator=generator)
    origins = torch.randint(300, (1200,), generator=generator)
    queries = every[origins] + 0.7 * torch.randn(1200, 16, generator=generator)
    genuine = origins < 200
    memory = BayesianHopfield(every[:200]).fit(queries[genuine][:400], hidden_causes=0)
    kept, strangers = memory.recall(queries[:1], reject=0.1).refusal
    answered = memory.recall(queries, reject=0.1).indices[:, 0] >= 0
    low, high = kept
    assert 0.85 < low < 0.9 < high < 0.95
    assert low - 0.03 < float(answered[genuine].float().mean()) < high + 0.03
    assert abs(float((~answered[~genuine]).float().mean()) - strangers) < 0.15 and strangers > 0.3
    assert memory.recall(queries[:1]).refusal is None


def test_a_memory_that_found_nothing_keeps_nobody():
    memory = BayesianHopfield(torch.rand(20, 4))
    memory.similarity.doubt.fill_(1.0)
    assert memory.recall(torch.rand(3, 4), reject=0.05).refusal == ((0.0, 0.0), 1.0)
