import copy

import pytest
import torch
from tests.similarity.families.largest import Largest

import ahop
from ahop.similarity import Bent
from ahop.similarity.families.moved import bending, rounds


def bent_world(count=600, dim=4, width=8, noise=0.05, seed=0):
    """Patterns, and queries that a map with squares and products in it leads to."""
    generator = torch.Generator().manual_seed(seed)
    first, second = (torch.randn(dim, width, generator=generator) for _ in range(2))
    patterns = torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))
    queries = patterns @ first + 0.5 * (patterns @ second).square()
    return patterns, queries + noise * torch.randn(count, width, generator=generator)


@pytest.fixture(scope="module")
def learned():
    bent = Bent(4, 8)
    bent.fit(PATTERNS, QUERIES[:400], torch.arange(400))
    return bent


def right(similarity, patterns, queries, rows):
    return float((similarity(patterns, queries[rows]).argmax(1) == rows).double().mean())


PATTERNS, QUERIES = bent_world()
NEW = torch.arange(400, 600)


def test_a_bent_map_finds_what_a_straight_one_cannot(learned):
    assert right(learned, PATTERNS, QUERIES, NEW) > right(learned.straight, PATTERNS, QUERIES, NEW) + 0.1
    memory = ahop.BayesianHopfield(PATTERNS)
    memory.fit(QUERIES[:400], torch.arange(400), verbose=False)
    assert memory.report.chosen == "a bent map"


def test_the_scores_are_the_weighted_views(learned):
    weighed = torch.tensordot(learned.weights.detach(), learned.views(PATTERNS, QUERIES[:9]), 1)
    torch.testing.assert_close(learned(PATTERNS, QUERIES[:9]).detach(), weighed, rtol=1e-4, atol=1e-3)
    assert bool((learned.weights >= 0).all())


def test_places_are_those_of_a_process_without_the_patterns_own_query():
    pairs = bending.Pairs.of(PATTERNS, QUERIES[:60], torch.arange(60), 0, bending.Shape(0.8, 0.3))
    weights = torch.ones(5)
    model = pairs.every(weights)
    # Its own query is in the mean of all, from which both are counted.
    without = pairs.model(torch.tensor([7]), weights)
    place, same = (torch.linalg.solve(one.whitener.mT, one.locate(PATTERNS[7:8])[0].mT) for one in (model, without))
    torch.testing.assert_close(place, same, rtol=1e-3, atol=1e-3)


def test_a_fold_is_learned_as_if_its_pairs_had_never_been():
    shape = bending.Shape(0.8, 0.3)
    pairs = bending.Pairs.of(PATTERNS, QUERIES[:80], torch.arange(80), 0, shape)
    fold = torch.arange(0, 80, 4)
    kept, alpha, diagonal = pairs.without(fold)
    inputs = pairs.inputs[kept]
    inverse = bending._inverse(inputs, bending._squares(inputs), shape.length, pairs.noise[kept])
    torch.testing.assert_close(alpha, inverse @ pairs.queries[kept])
    torch.testing.assert_close(diagonal, inverse.diagonal())


def test_weights_are_learned_within_the_memory_budget_and_do_not_depend_on_it():
    patterns, queries = bent_world(1500, dim=16)
    origins = torch.arange(80)
    pairs = bending.Pairs.of(patterns, queries[:80], origins, 0, bending.Shape(0.8, 0.3))
    folds = [(queries[rows], rows) for rows in origins.split(40)]
    roomy = bending.weigh(pairs, folds, 0)
    with ahop.memory_budget(2**20), Largest() as largest:
        tight = bending.weigh(pairs, folds, 0)
        scores = tight.scores()
    assert 2**18 < largest.bytes <= 2**20
    torch.testing.assert_close(tight.weights, roomy.weights, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.cat(scores), torch.cat(roomy.scores()), rtol=1e-4, atol=1e-4)


def test_weights_and_scores_of_many_queries_are_within_the_memory_budget():
    patterns, queries = bent_world(1500, dim=16)
    origins = torch.arange(1000)
    folds = [(queries[rows], rows) for rows in origins.split(500)]
    with ahop.memory_budget(2**20), Largest() as largest:
        pairs = bending.Pairs.of(patterns, queries[:1000], origins, 0, bending.Shape(0.8, 0.3))
        weighed = bending.weigh(pairs, folds, 0)
        scores, apart = torch.cat(weighed.scores()), torch.cat(weighed.apart())
    assert largest.bytes <= 2**20
    assert scores.shape == apart.shape and len(scores) == 1000
    assert float((apart[:, 0] >= apart.amax(1)).double().mean()) > 0.5


def test_scores_of_folds_are_those_of_the_weighted_views_but_for_the_origin_among_rivals():
    pairs = bending.Pairs.of(PATTERNS, QUERIES[:60], torch.arange(60), 0, bending.Shape(0.8, 0.3))
    fold = QUERIES[:20], torch.arange(20)
    weights, (learned,), rivals, stored = weighed = bending.weigh(pairs, [fold], 0, torch.arange(5))
    (scores,) = weighed.scores()
    views = torch.tensordot(weights, learned.bent.views(stored, fold[0]), 1)
    other = rivals != fold[1][:, None]
    assert rivals[:5].tolist() == list(range(5)) and len(rivals.unique()) == 600
    torch.testing.assert_close(scores[:, 1:][other], views[other], rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(scores[:, 0], views[~other][rivals[(~other).nonzero()[:, 1]].argsort()])
    assert bool(scores[:, 1:][~other].isneginf().all())


def test_a_fold_is_judged_by_weights_that_it_had_no_part_in():
    pairs = bending.Pairs.of(PATTERNS, QUERIES[:60], torch.arange(60), 0, bending.Shape(0.8, 0.3))
    folds = [(QUERIES[rows], rows) for rows in torch.arange(60).split(20)]
    weighed = bending.weigh(pairs, folds, 0)
    first, *others = weighed.folds
    flipped = first._replace(near=[part.flip(0) for part in first.near])
    other = weighed._replace(folds=[flipped, *others], weights=torch.zeros(5))
    assert torch.equal(weighed.apart()[0], other.apart()[0])
    assert not torch.equal(weighed.apart()[1], other.apart()[1])


def test_several_queries_of_a_pattern_count_as_their_mean_with_less_noise():
    twice = torch.cat([QUERIES[:60] + 0.1, QUERIES[:60] - 0.1])
    pairs = bending.Pairs.of(PATTERNS, twice, torch.arange(60).repeat(2), 0, bending.Shape(0.8, 0.3))
    half = bending.Pairs.of(PATTERNS, QUERIES[:60], torch.arange(60), 0, bending.Shape(0.8, 0.15))
    torch.testing.assert_close(pairs.alpha, half.alpha, rtol=1e-4, atol=1e-4)
    assert torch.equal(pairs.noise, half.noise)


def test_codes_order_patterns_as_scores_do(learned):
    codes = learned.codes(PATTERNS, 0.1)
    gap = codes(PATTERNS, QUERIES[:20]) - learned(PATTERNS, QUERIES[:20])
    torch.testing.assert_close(gap, gap[:, :1].expand_as(gap), rtol=0, atol=1e-2)


def test_a_score_does_not_depend_on_what_else_is_stored(learned):
    """So blocks, shards, candidates of an index and codes that were made before have the scores of all patterns."""
    memory = ahop.BayesianHopfield(PATTERNS[:500], similarity=copy.deepcopy(learned))
    before, codes = memory.scores(QUERIES[:9]), learned.codes(PATTERNS[:500], 0.1)
    after = memory.add(PATTERNS[500:]).scores(QUERIES[:9])
    left = memory.remove(torch.arange(500)).scores(QUERIES[:9])
    torch.testing.assert_close(after, torch.cat([before, left], 1), rtol=1e-4, atol=1e-3)
    apart = [codes.encode_patterns(some) for some in PATTERNS.split(100)]
    torch.testing.assert_close(codes.encode_patterns(PATTERNS), torch.cat(apart), rtol=1e-4, atol=1e-3)
    # What was added has a noise of its own.
    assert float(learned.places(PATTERNS[500:]).precisions[2].std()) > 0


def test_chosen_patterns_have_the_scores_of_all(learned):
    chosen = torch.tensor([[0, 5], [599, 3]])
    every = learned(PATTERNS, QUERIES[:2]).gather(1, chosen)
    torch.testing.assert_close(learned.exact(PATTERNS, chosen, QUERIES[:2]), every, rtol=1e-4, atol=1e-3)


def test_units_change_nothing(learned):
    other = learned.rescaled(2.0, 3.0)
    torch.testing.assert_close(
        other(2 * PATTERNS + 3, 2 * QUERIES[:9] + 3), learned(PATTERNS, QUERIES[:9]), rtol=1e-3, atol=1e-2
    )


def test_places_are_kept_until_patterns_change(learned):
    bent, patterns = copy.deepcopy(learned), PATTERNS.clone()
    found = bent.places(patterns)
    assert bent.places(patterns) is found
    patterns[0] += 1
    assert not torch.equal(bent.places(patterns).there[0], found.there[0])


def test_weights_have_the_gradient_of_the_scores(learned):
    bent = copy.deepcopy(learned).double()
    patterns, queries = PATTERNS[:5].double(), QUERIES[:3].double()

    def scores(weights):
        return torch.func.functional_call(bent, {"weights": weights}, (patterns, queries))

    assert torch.autograd.gradcheck(scores, bent.weights.detach().requires_grad_())


def test_missing_values_are_compared_by_the_straight_map(learned):
    observed = torch.ones(3, 8, dtype=torch.bool)
    observed[:, 0] = False
    torch.testing.assert_close(
        learned(PATTERNS, QUERIES[:3], observed), learned.straight(PATTERNS, QUERIES[:3], observed), rtol=0, atol=0
    )


def test_it_is_saved_and_indexed(tmp_path, learned):
    memory = ahop.BayesianHopfield(PATTERNS, similarity=copy.deepcopy(learned))
    memory.save(tmp_path)
    loaded = ahop.load(tmp_path)
    torch.testing.assert_close(loaded.scores(QUERIES[:9]), memory.scores(QUERIES[:9]))
    found = memory.index().recall(QUERIES[:50]).indices
    assert float((found == memory.recall(QUERIES[:50]).indices).double().mean()) == 1


def test_strangers_are_less_familiar(learned):
    def familiar(queries):
        return learned(PATTERNS, queries).logsumexp(1) - learned.stranger(PATTERNS, queries)

    # Of the same map, but of patterns that are not stored.
    strangers = bent_world(1200)[1][600:]
    assert float((familiar(strangers)[:, None] < familiar(QUERIES[NEW])).double().mean()) > 0.85


@pytest.mark.slow
def test_an_index_of_the_patterns_can_be_asked_by_the_straight_map():
    memory = ahop.BayesianHopfield(PATTERNS)
    memory.fit(QUERIES[:400], torch.arange(400), verbose=False)
    adapter = memory.query_adapter("l2")
    first = torch.cdist(adapter(QUERIES[NEW]), PATTERNS).argmin(1)
    assert float((first == NEW).double().mean()) > 0.2
    nothing = ahop.BayesianHopfield(PATTERNS, similarity=rounds._nothing(PATTERNS, QUERIES))
    with pytest.raises(ValueError, match="found no map that is better than chance"):
        nothing.query_adapter()


def test_few_pairs_are_refused_with_what_is_needed():
    with pytest.raises(ValueError, match="origins must include at least 48 patterns"):
        Bent(4, 8).fit(PATTERNS, QUERIES[:20], torch.arange(20))


def rotated(count=1500, dim=24, width=30, noise=0.03, seed=0):
    """Clusters of clusters, as embeddings are, and a rotation of them into a wider space."""
    generator = torch.Generator().manual_seed(seed)
    parts = torch.rand(12, dim, generator=generator).log().neg()
    patterns = torch.rand(count, 12, generator=generator).pow(4) @ parts
    patterns = patterns + 0.3 * torch.rand(count, dim, generator=generator).log().neg()
    turn = torch.linalg.qr(torch.randn(width, width, generator=generator)).Q[:dim]
    return patterns, patterns @ turn + noise * torch.randn(count, width, generator=generator)


@pytest.mark.slow
def test_no_pair_is_needed():
    patterns, queries = rotated()
    unknown = torch.full((1000,), -1)
    found = rounds.learn(patterns, queries[:1000], unknown)
    assert found.start.found and found.expected > 0.8
    assert right(found.model, patterns, queries, torch.arange(1000, 1500)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_spaces_that_have_nothing_in_common_are_not_found(seed):
    patterns, _ = rotated(800, seed=seed)
    _, queries = rotated(800, width=30, seed=100 + seed)
    found = rounds.learn(patterns, queries, torch.full((800,), -1))
    assert not found.start.found
    # Nothing is said of any query.
    assert not found.model(patterns, queries[:5]).any()


def test_no_pattern_takes_more_than_its_share():
    scores, places = torch.tensor([[4.0, 3.0], [4.0, 0.0]]), torch.tensor([[0, 1], [0, 1]])
    believed = rounds._shared(scores, places, 2, torch.full((2,), -1))
    assert believed.origins.tolist() == [1, 0] and believed.first.tolist() == [0, 0]


def test_pairs_in_double_precision_are_learned_from():
    pairs = bending.Pairs.of(PATTERNS.double(), QUERIES[:60].double(), torch.arange(60), 0, bending.Shape(0.8, 0.3))
    none = torch.tensor([], dtype=torch.long)
    assert pairs.model(none, torch.full((5,), 0.2)).whitener.dtype == torch.float64
