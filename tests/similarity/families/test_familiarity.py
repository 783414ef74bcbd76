import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

import ahop
from ahop.similarity.families.familiarity import adjusted_count
from ahop_paper.drawing import Draw
from ahop_paper.unseen import records


def familiar(count, mean, seed):
    return mean + torch.randn(count, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("apart", [1.5, 3.0, 10.0])
def test_the_share_of_strangers_is_found_by_how_familiar_they_are(share, apart):
    strangers = int(share * 2000)
    unknown = torch.cat([familiar(strangers, 0.0, 1), familiar(2000 - strangers, apart, 2)])
    found = adjusted_count(familiar(500, apart, 3), familiar(2000, 0.0, 4), unknown)
    assert found == pytest.approx(share, abs=0.08)


@given(seed=some.integers(0, 10_000), labels=some.integers(10, 200), apart=some.floats(0.0, 5.0))
def test_where_all_are_genuine_hardly_a_stranger_is_seen(seed, labels, apart):
    genuine, unknown = familiar(labels, apart, 3 * seed), familiar(400, apart, 3 * seed + 1)
    # Three standard errors: one in some 700 draws.
    assert adjusted_count(genuine, familiar(400, 0.0, 3 * seed + 2), unknown) < 0.2


def test_what_cannot_be_told_from_strangers_tells_nothing_of_their_share():
    alike = familiar(200, 0.1, 0)
    assert adjusted_count(alike, familiar(200, 0.0, 1), familiar(200, -1.0, 2)) == 0.0


@pytest.fixture(scope="module")
def world():
    return records(Draw(0))


@pytest.fixture(scope="module", params=[20, 100])
def memory(world, request):
    known = torch.where(torch.arange(len(world.origins)) < request.param, world.origins, -1)
    return ahop.BayesianHopfield(world.patterns).fit(world.queries, known, verbose=False)


@pytest.mark.slow
def test_labels_of_genuine_queries_show_how_many_others_are_strangers(memory, world):
    share = float((world.origins < 0).double().mean())
    assert memory.report.stranger_share == pytest.approx(share, abs=0.06)
    assert "of the queries seem to come from no stored pattern" in str(memory.report)


@pytest.mark.slow
def test_a_memory_is_no_surer_than_it_is_right_where_a_fifth_are_strangers(memory, world):
    found = memory.recall(world.asked)
    right = float((found.indices[:, 0] == world.wanted).double().mean())
    # It was surer by 13 to 17 points.
    assert float(found.probabilities[:, 0].mean()) < right + 0.04


@pytest.mark.slow
def test_where_all_but_strangers_have_labels_it_is_as_sure_as_further_queries_allow():
    noise = torch.Generator().manual_seed(0)
    every = torch.randn(400, 16, generator=noise)
    origins = torch.arange(400).repeat(2)
    queries = every[origins] + 0.3 * torch.randn(800, 16, generator=noise)
    stored = origins < 320
    known = torch.where(stored, origins, -1)
    # Half to learn from, half to ask; a fifth of either is strange, which is all whose origin nobody says.
    memory = ahop.BayesianHopfield(every[:320]).fit(queries[:400], known[:400], verbose=False)
    found = memory.recall(queries[400:])
    assert memory.report.stranger_share == pytest.approx(0.2, abs=0.06)
    assert float(found.probabilities[:, 0].mean()) == pytest.approx(0.8, abs=0.06)
    assert float(found.probabilities[stored[400:], 0].mean()) > 0.75


@pytest.mark.slow
def test_genuine_queries_alone_show_no_strangers(world):
    genuine = world.origins >= 0
    rows = torch.arange(int(genuine.sum()))
    known = torch.where(rows < 40, world.origins[genuine], -1)
    memory = ahop.BayesianHopfield(world.patterns).fit(world.queries[genuine], known, verbose=False)
    assert memory.report.stranger_share == 0.0
    assert "seem to come" not in str(memory.report)
