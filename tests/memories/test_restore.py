import pytest
import torch

import ahop
from ahop.similarity import Correlated, Floor


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


FIRST = noise(120, 8).cumsum(1)
# A drift up and down from column to column, which is unlike a random walk.
DRIFT = noise(120, 1, seed=1) * torch.tensor([1.0, -1.0]).repeat(4)
SECOND = 1.3 * FIRST + torch.linspace(-2, 2, 8) + DRIFT + 0.05 * noise(120, 8, seed=2)
LEARN, TEST = slice(0, 80), slice(80, 120)


@pytest.fixture(scope="module")
def memory():
    return ahop.BayesianHopfield(FIRST[LEARN]).fit(SECOND[LEARN], torch.arange(80), hidden_causes=1)


def error(found):
    return float((found - FIRST[TEST]).square().mean().sqrt())


def test_samples_that_are_not_stored_come_back_nearer_than_any_stored_one(memory):
    found = memory.restore(SECOND[TEST])
    nearest = torch.cdist(FIRST[TEST], FIRST[LEARN]).min(1).values.square().mean().div(8).sqrt()
    assert error(found) < 0.3 * float(nearest) and error(found) < 0.15 * error(SECOND[TEST])


def test_one_query_a_batch_and_every_precision_give_the_same(memory):
    whole = memory.restore(SECOND[TEST])
    assert whole.shape == (40, 8) and whole.dtype == torch.float32 and not whole.requires_grad
    torch.testing.assert_close(memory.restore(SECOND[80]), whole[0])
    torch.testing.assert_close(memory.restore(SECOND[TEST].reshape(4, 10, 8)), whole.reshape(4, 10, 8))
    assert memory.restore(SECOND[:0]).shape == (0, 8)
    half = ahop.BayesianHopfield(FIRST[LEARN].bfloat16(), similarity=memory.similarity).restore(SECOND[TEST].bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), whole, atol=0.1, rtol=0.1)


def test_missing_values_are_filled_in(memory):
    holes = SECOND[TEST].clone()
    holes[:, 3] = torch.nan
    assert error(memory.restore(holes, observed="not-nan")) < 0.3 * error(SECOND[TEST])


def test_what_was_learned_is_restored_by_after_it_was_kept_in_a_file(memory, tmp_path):
    memory.save(tmp_path)
    torch.testing.assert_close(ahop.load(tmp_path).restore(SECOND[TEST]), memory.restore(SECOND[TEST]))


def test_a_likelihood_that_is_given_is_known_without_a_fit():
    memory = ahop.BayesianHopfield(FIRST, similarity=Correlated(8))
    assert memory.restore(SECOND[TEST]).shape == (40, 8)


def test_what_nothing_is_known_of_is_not_restored():
    with pytest.raises(ValueError, match="restore must come after fit"):
        ahop.BayesianHopfield(FIRST).restore(SECOND)
    with pytest.raises(ValueError, match="queries cannot be restored: fit found 'floor'"):
        ahop.BayesianHopfield(FIRST, similarity=Floor(8)).restore(SECOND)
    lost = ahop.BayesianHopfield(FIRST)
    with pytest.warns(UserWarning, match="no map"):
        lost.fit(noise(60, 5), verbose=False)
    with pytest.raises(ValueError, match="queries cannot be restored: fit found nothing that is better than chance"):
        lost.restore(noise(3, 5))
