import pytest
import torch

from ahop._queries import Queries

ROWS = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
SEEN = ROWS > 0.5
CHANGES = {
    "part": (lambda queries: queries[1:], lambda tensor: tensor[1:]),
    "rows": (lambda queries: queries[torch.tensor([2, 0])], lambda tensor: tensor[[2, 0]]),
    "axis": (lambda queries: queries[..., None, :], lambda tensor: tensor.unsqueeze(-2)),
    "flat": (lambda queries: queries.flat(), lambda tensor: tensor.flatten(0, -2)),
    "moved": (lambda queries: queries.to("meta"), lambda tensor: tensor.to("meta")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_happens_to_queries_happens_to_their_mask(name):
    change, wanted = CHANGES[name]
    found = change(Queries(ROWS, SEEN))
    for one, other in ((found.rows, wanted(ROWS)), (found.observed, wanted(SEEN))):
        assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)
        assert one.is_meta or torch.equal(one, other)
    assert change(Queries(ROWS)).observed is None


def test_no_queries_can_be_cut_and_flattened():
    none = Queries(ROWS[:, :0], SEEN[:, :0]).flat()
    assert len(none) == 0 and none.rows.shape == none.observed.shape == (0, 5)


def test_queries_of_halves_become_single_and_their_mask_stays():
    found = Queries(ROWS.half(), SEEN).single()
    assert found.rows.dtype == torch.float32 and found.observed is SEEN
    assert Queries(ROWS.double()).single().rows.dtype == torch.float64


def test_values_are_masked_as_their_queries_are():
    asked, whole = Queries(ROWS, SEEN), Queries(ROWS)
    assert asked.masked(2 * ROWS).equal(2 * ROWS * SEEN) and whole.masked(ROWS) is ROWS
    assert asked.mask.equal(SEEN.float()) and whole.mask.equal(torch.ones_like(ROWS))
    assert asked.boolean_mask is SEEN and bool(whole.boolean_mask.all())
