import copy

import pytest
import torch

import ahop
from ahop import STRANGER, BayesianHopfield


@pytest.mark.slow
def test_a_recall_says_what_refusing_comes_to_and_it_comes_to_that():
    generator = torch.Generator().manual_seed(0)
    every = torch.randn(300, 16, generator=generator)
    origins = torch.randint(300, (1200,), generator=generator)
    queries = every[origins] + 0.7 * torch.randn(1200, 16, generator=generator)
    genuine = origins < 200
    memory = BayesianHopfield(every[:200]).fit(queries[genuine][:400], hidden_causes=0)
    kept, strangers, *_ = memory.recall(queries[:1], reject=0.1).refusal
    answered = memory.recall(queries, reject=0.1).indices[:, 0] >= 0
    low, high = kept
    assert 0.85 < low < 0.9 < high < 0.95
    assert low - 0.03 < float(answered[genuine].float().mean()) < high + 0.03
    assert abs(float((~answered[~genuine]).float().mean()) - strangers) < 0.15 and strangers > 0.3
    assert memory.recall(queries[:1]).refusal is None


def test_a_memory_that_found_nothing_keeps_nobody():
    memory = BayesianHopfield(torch.rand(20, 4))
    memory.similarity.doubt.fill_(1.0)
    assert memory.recall(torch.rand(3, 4), reject=0.05).refusal == ((0.0, 0.0), 1.0, 0, 0)


def world(genuine=60, strangers=40, seed=0):
    """Patterns, queries of them and then queries of others, and their origins."""
    generator = torch.Generator().manual_seed(seed)
    every = torch.randn(50, 8, generator=generator)
    origins = torch.randint(30, (genuine + strangers,), generator=generator)
    queries = every[torch.where(torch.arange(len(origins)) < genuine, origins, 30 + origins % 20)]
    queries = queries + 0.3 * torch.randn(queries.shape, generator=generator)
    return every[:30], queries, torch.where(torch.arange(len(origins)) < genuine, origins, STRANGER)


PATTERNS, QUERIES, ORIGINS = world()
GENUINE = ORIGINS != STRANGER


@pytest.fixture(scope="module")
def taught():
    return BayesianHopfield(PATTERNS).fit(QUERIES, ORIGINS, hidden_causes=0)


@pytest.fixture(scope="module")
def alone():
    """Not told of strangers."""
    return BayesianHopfield(PATTERNS).fit(QUERIES[GENUINE], ORIGINS[GENUINE], hidden_causes=0)


def same(one, other):
    """Whether two memories have learned the same, but for what known strangers say."""
    mine, theirs = one.similarity.state_dict(), other.similarity.state_dict()
    return all(torch.equal(mine[name], theirs[name]) for name in mine if not name.startswith("met"))


def test_known_strangers_teach_nothing(taught, alone):
    assert same(taught, alone)
    assert torch.equal(taught.recall(QUERIES).probabilities, alone.recall(QUERIES).probabilities)


@pytest.mark.slow
def test_strangers_that_are_marked_are_refused_more_often_than_those_that_nobody_knows(taught):
    unmarked = BayesianHopfield(PATTERNS).fit(QUERIES, ORIGINS.masked_fill(~GENUINE, -1), hidden_causes=0)
    _, queries, origins = world(seed=1)
    marked, unmarked = (
        float((memory.recall(queries[origins == STRANGER], reject=0.05).indices < 0).float().mean())
        for memory in (taught, unmarked)
    )
    assert marked > unmarked + 0.3


@pytest.mark.slow
@pytest.mark.parametrize("known", [0, 10, 60])
def test_they_teach_nothing_however_many_origins_are_known_beside_them(known):
    origins = ORIGINS.clone()
    origins[known:60] = -1
    memory = BayesianHopfield(PATTERNS).fit(QUERIES, origins, learn_prior=True)
    alone = BayesianHopfield(PATTERNS).fit(QUERIES[GENUINE], origins[GENUINE] if known else None, learn_prior=True)
    assert same(memory, alone) and torch.equal(memory.prior, alone.prior)


@pytest.mark.parametrize("make", [ahop.UniversalHopfield, ahop.AdaptiveHopfield])
def test_they_teach_other_memories_nothing_either(make):
    options = {"similarity": "mahalanobis"} if make is ahop.UniversalHopfield else {"bases": ["dot", "distance"]}
    rows = torch.cat([torch.arange(20), (~GENUINE).nonzero().squeeze(1)])
    memory, alone = make(PATTERNS, **options), make(PATTERNS, **options)
    memory.fit(QUERIES[rows], ORIGINS[rows])
    alone.fit(QUERIES[:20], ORIGINS[:20])
    assert torch.equal(memory.scores(QUERIES), alone.scores(QUERIES))


def test_a_stream_leaves_them_out():
    memory, alone = BayesianHopfield(PATTERNS), BayesianHopfield(PATTERNS)
    memory.partial_fit(QUERIES[57:], ORIGINS[57:])
    alone.partial_fit(QUERIES[57:60], ORIGINS[57:60])
    assert same(memory, alone) and len(memory._recent.queries) == 3


@pytest.mark.parametrize("reject", [0.01, 0.05, 0.3])
def test_as_many_are_refused_as_a_refusal_says(reject, taught, alone):
    found = taught.recall(QUERIES[~GENUINE], reject=reject)
    refused = int((found.indices[:, 0] == -1).sum())
    assert (found.refusal.refused, found.refusal.known) == (refused, 40)
    low, high = found.refusal.interval
    assert low <= refused / 40 <= high and high - low < 0.3
    # Genuine queries alone say how many of these are kept.
    assert alone.recall(QUERIES[:1], reject=reject).refusal == found.refusal._replace(refused=0, known=0)


def test_a_report_says_how_many_are_refused_and_nothing_where_none_are_known(taught, alone):
    refused = int((taught.recall(QUERIES[~GENUINE], reject=0.05).indices == -1).sum())
    assert (taught.report.refused, taught.report.strangers) == (refused, 40)
    line = next(line for line in str(taught.report).splitlines() if line.startswith("strangers "))
    assert f"{refused} of 40 known strangers are refused at reject=0.05; 90 % confidence interval" in line
    assert taught.report.labels == int(GENUINE.sum())
    assert "strangers" not in str(alone.report)


@pytest.mark.slow
def test_the_interval_holds_the_share_of_further_strangers_that_are_refused():
    held = 0
    for seed in range(20):
        patterns, queries, origins = world(strangers=1040, seed=seed)
        memory = BayesianHopfield(patterns).fit(queries[:100], origins[:100], hidden_causes=0)
        further = memory.recall(queries[100:], reject=0.05)
        low, high = further.refusal.interval
        held += low <= float((further.indices == -1).double().mean()) <= high
    # Nine times in ten, less two standard errors.
    assert held >= 16


def test_strangers_among_checked_answers_take_their_place_however_often_they_are_checked(taught):
    memory = copy.deepcopy(taught)
    before = memory.recall(QUERIES[:1], reject=0.05).refusal
    memory.verify(QUERIES[:60], ORIGINS[:60])
    after = memory.recall(QUERIES[:1], reject=0.05).refusal
    assert (before.known, after.known) == (40, 40) and abs(before.refused - after.refused) <= 1
    assert (memory.report.refused, memory.report.strangers) == (after.refused, 40)
    for _ in range(2):
        memory.verify(QUERIES[50:80], iter(ORIGINS[50:80].tolist()))
        told = memory.recall(QUERIES[:1], reject=0.05).refusal
        assert told.known == int((ORIGINS[50:80] == STRANGER).sum()) > 10
        assert (memory.report.refused, memory.report.strangers) == (told.refused, told.known)


def test_what_is_kept_of_them_is_saved(tmp_path, taught):
    taught.save(tmp_path)
    assert ahop.load(tmp_path).recall(QUERIES, reject=0.05).refusal == taught.recall(QUERIES, reject=0.05).refusal


@pytest.mark.slow
def test_they_judge_where_values_are_missing():
    queries = QUERIES.clone()
    queries[::2, 0] = torch.nan
    memory = BayesianHopfield(PATTERNS).fit(queries, ORIGINS, observed="not-nan", hidden_causes=0)
    refused = memory.recall(queries[~GENUINE], observed="not-nan", reject=0.05).indices == -1
    assert memory.report.refused == int(refused.sum())


def test_strangers_alone_and_other_negative_numbers_are_refused():
    memory = BayesianHopfield(PATTERNS)
    with pytest.raises(ValueError, match="origins must leave some queries to learn from, got known strangers only"):
        memory.fit(QUERIES[:5], [STRANGER] * 5)
    with pytest.raises(ValueError, match=r"where unknown, ahop.STRANGER where it is none of them; got -3 to 0"):
        memory.fit(QUERIES[:2], [0, -3])
    with pytest.raises(ValueError, match=r"origins must be between 0 and 29, the stored patterns; got -2 to 0"):
        ahop.compare(PATTERNS, QUERIES[:2], [0, STRANGER])
    assert memory.report is None


def test_so_few_queries_that_none_can_be_refused_say_nothing_of_strangers():
    rows = torch.tensor([0, 1, 2, 80])
    memory = BayesianHopfield(PATTERNS).fit(QUERIES[rows], ORIGINS[rows])
    assert memory.report.strangers == 0
