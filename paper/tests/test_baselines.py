import math

import pytest
import torch
from tests.guards import apart, rows

from ahop_paper import baselines
from ahop_paper.baselines import METRICS


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


ORIGINS = torch.arange(60)


def right(found, queries):
    return float((found.first(queries) == ORIGINS).double().mean())


@pytest.mark.parametrize("metric", METRICS)
def test_centring_undoes_a_shift_and_z_scoring_a_gain_too(metric):
    patterns = drawn(60, 8)
    shifted = patterns + 5
    scaled = 3 * torch.arange(1, 9) * patterns - 4
    assert right(baselines.centred(patterns, shifted, metric), shifted) == 1
    assert right(baselines.z_scored(patterns, scaled, metric), scaled) == 1
    assert right(baselines.centred(patterns, scaled, "distance"), scaled) < 1


def test_a_dimension_that_never_moves_says_nothing():
    patterns = torch.cat([drawn(60, 8), torch.ones(60, 1)], 1)
    assert right(baselines.z_scored(patterns, patterns, "distance"), patterns) == 1


def test_ridge_finds_any_linear_map_and_procrustes_any_rotation():
    patterns = drawn(60, 8)
    wider = patterns @ drawn(8, 11, seed=1) + 2
    assert right(baselines.ridge(patterns, wider[:30], ORIGINS[:30], 1e-9, "distance"), wider) == 1
    turned = patterns @ torch.linalg.qr(drawn(8, 8, seed=1)).Q
    assert right(baselines.procrustes(patterns, turned[:30], ORIGINS[:30]), turned) == 1


def test_from_queries_that_are_all_alike_ridge_learns_where_patterns_lie_on_average():
    patterns = drawn(60, 8)
    found = baselines.ridge(patterns, torch.ones(30, 3).double(), ORIGINS[:30], 1e-6, "distance")
    torch.testing.assert_close(found.move(torch.ones(1, 3).double())[0], patterns[ORIGINS[:30]].mean(0))


def test_what_holds_on_held_out_pairs_is_chosen():
    patterns = drawn(60, 8)
    queries = patterns @ drawn(8, 8, seed=1)
    options = [(1e9, "distance"), (1e-6, "distance"), (1e6, "distance")]
    assert right(baselines.tuned(baselines.ridge, options, patterns, queries, ORIGINS, seed=0), queries) == 1


def test_a_choice_is_settled_by_origins_that_were_not_learned_from():
    learned, asked = [], []

    class Guess:
        def first(self, queries):
            asked.append(queries)
            return torch.zeros(len(queries))

    def make(patterns, queries, origins, option):
        learned.append(queries)
        return Guess()

    queries = drawn(120, 8)
    baselines.tuned(make, [(1,), (2,)], drawn(60, 8), queries, ORIGINS.repeat(2), seed=0)
    *tried, last = learned
    assert len(tried) == len(asked) == 2 and rows(last) == rows(queries)
    # Of an item that was asked for, neither of its two queries was learned from.
    items = [queries.reshape(2, 60, 8)[:, item] for item in range(60)]
    for some, others in zip(tried, asked, strict=True):
        apart(*({item for item in range(60) if rows(items[item]) & rows(part)} for part in (some, others)))


@pytest.mark.slow
def test_a_network_learns_what_ridge_cannot():
    patterns = torch.nn.functional.normalize(drawn(60, 4), dim=1)
    queries = (patterns**3).repeat(1, 2)
    line = baselines.ridge(patterns, queries, ORIGINS, 1e-3, "cosine")
    bent = baselines.perceptron(patterns, queries, ORIGINS, 1e-3, 300, seed=0)
    same = baselines.perceptron(patterns, queries, ORIGINS, 1e-3, 0, seed=0)
    torch.testing.assert_close(same.move(queries), line.move(queries))
    error = [float((found.move(queries) - patterns).detach().square().sum()) for found in (line, bent)]
    assert error[1] < 0.7 * error[0]


def test_spectra_are_standardised_by_what_their_instrument_does():
    """A blur of neighbours for the piecewise way, a cause common to all channels for the orthogonal one."""
    patterns = drawn(60, 20)
    blurred = patterns + 0.9 * patterns.roll(1, 1) + 3
    piecewise = baselines.piecewise(patterns, blurred[:30], ORIGINS[:30], 4, 1e-9, "distance")
    raw = baselines.Compared(patterns, lambda asked: asked, METRICS["distance"])
    assert right(piecewise, blurred) > 0.9 > right(raw, blurred)
    moved = patterns + 9 * drawn(60, 1, seed=1) * drawn(1, 20, seed=2)
    orthogonal = baselines.orthogonal(patterns, moved[:30], ORIGINS[:30], 1, "distance")
    assert right(orthogonal, moved) == 1 > right(raw, moved)
    turned = patterns @ drawn(20, 20, seed=3)
    assert right(baselines.direct(patterns, turned[:40], ORIGINS[:40], 20, "distance"), turned) == 1


def test_spectra_are_prepared_so_that_their_own_gain_or_offset_does_not_matter():
    patterns = drawn(60, 40).cumsum(1)
    gains, offsets = drawn(60, 1, seed=1).exp(), 9 * drawn(60, 1, seed=2)
    for prepare, queries in (
        (baselines.normal_variates, gains * patterns + offsets),
        (baselines.derivatives, patterns + offsets),
    ):
        assert right(baselines.prepared(patterns, queries, prepare, "L1"), queries) == 1
        assert right(baselines.centred(patterns, queries, "L1"), queries) < 1
    slope = baselines.derivatives(torch.arange(40.0)[None] * 3)[:, 7:-7]
    torch.testing.assert_close(slope, torch.full_like(slope, 3))


def test_a_pattern_that_is_near_to_all_is_chosen_no_more_than_others():
    """Queries at half their size lie nearer to the middle than to their own patterns."""
    patterns = drawn(60, 8)
    queries = 0.5 * patterns + 0.1 * drawn(60, 8, seed=1)
    plain = baselines.Compared(
        torch.cat([patterns, torch.full_like(patterns[:1], 0.2)]), lambda asked: asked, METRICS["distance"]
    )
    fair = baselines.csls(plain, queries)
    assert int((plain.first(queries) == 60).sum()) > 10 > 2 > int((fair.first(queries) == 60).sum())
    assert right(plain, queries) < 0.5 < 0.9 < right(fair, queries)
    sharp = baselines.inverted_softmax(plain, queries, None, 0.1)
    assert right(plain, queries) < 0.5 < 0.9 < right(sharp, queries)


def test_a_pattern_is_no_worse_off_for_its_own_query_where_that_is_left_out():
    patterns, own = drawn(60, 8), torch.arange(60)
    queries = patterns + 0.1 * drawn(60, 8, seed=1)
    plain = baselines.Compared(patterns, lambda asked: asked, METRICS["distance"])

    def lost(found, scale):
        """How much more is taken from patterns whose queries are known."""
        taken = (plain.score(patterns, patterns) - found.score(patterns, patterns) / scale)[0]
        return float(taken[:30].mean() - taken[30:].mean())

    for scale, correct in (2, baselines.csls), (1, lambda *given: baselines.inverted_softmax(*given, 0.1)):
        counted, left_out = (lost(correct(plain, queries[:30], origins), scale) for origins in (None, own[:30]))
        assert counted > 2 * abs(left_out) and counted > 0.1


def test_phones_are_compared_by_powers_or_by_ranks():
    heard = torch.rand(60, 20, generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    assert right(baselines.sorensen(heard, math.e), heard) == 1
    stored, asked = (baselines.sorensen(heard, 2.0).move(heard[rows]) for rows in ([0, 1], [2]))
    gaps, sums = (asked - stored).abs().sum(1), (asked + stored).sum(1)
    torch.testing.assert_close(baselines.sorensen(heard, 2.0).score(stored, asked), -(gaps / sums)[None])
    # Another phone hears all in its own scale.
    bent = heard**3 * torch.rand(60, 1, generator=torch.Generator().manual_seed(1)).double()
    assert right(baselines.ranked(heard), bent) == 1
    # Whatever the ranks' own library makes of single precision.
    assert baselines.ranked(heard.float()).patterns.dtype == torch.float64
    assert right(baselines.sorensen(heard, 2.0), bent) < 1


def test_spectral_entropy_is_one_for_equal_spectra_and_zero_for_those_that_share_no_peak():
    spectra = torch.tensor([[0.2, 0.8, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.0, 0.0]], dtype=torch.float64)
    scores = baselines.shared_entropy(spectra, spectra)
    torch.testing.assert_close(scores.diagonal(), torch.ones(3, dtype=torch.float64))
    assert scores[0, 1] == scores[1, 2] == 0
    middle = (spectra[0] + spectra[2]) / 2
    entropy = [-torch.special.xlogy(one, one).sum() for one in (middle, spectra[0], spectra[2])]
    assert scores[0, 2] == pytest.approx(float(1 - (2 * entropy[0] - entropy[1] - entropy[2]) / math.log(4)))


def test_a_weighted_cosine_of_plain_powers_is_the_cosine_of_roots():
    spectra = drawn(5, 7).abs()
    found = baselines.weighted_cosine(spectra, 0.0, 0.5)
    torch.testing.assert_close(found.score(found.patterns, found.move(spectra)), METRICS["cosine"](spectra, spectra))
    heavy = baselines.weighted_cosine(spectra, 50.0, 0.5)
    assert heavy.score(heavy.patterns, heavy.move(spectra)).min() > 0.99, "the heaviest peak alone counts"


def test_a_spectrum_without_peaks_is_like_none():
    found = baselines.spectral_entropy(drawn(5, 7).abs(), power=2)
    assert not found.score(found.patterns, found.move(torch.zeros(1, 7))).any()
