"""A floor: many values are exactly there, and the rest have a density."""

import itertools
from dataclasses import replace
from functools import cache

import pytest
import torch
from tests.guards import Watch, apart, rows

import ahop
from ahop._precision import Units
from ahop.similarity import Correlated, Floor
from ahop.similarity.families.family import FAMILIES
from ahop.similarity.families.floor import learning
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation
from ahop.variants import Samples, Variant


class Unheard(Variant):
    """A value is at the floor of zero with a chance that falls with the pattern's; the rest is scaled at random."""

    def __init__(self, loud=(0.9,), seed=0):
        super().__init__(seed)
        self.loud = loud

    def heard(self, patterns, loud):
        return torch.where(patterns > 0, loud * patterns.clamp_max(1) ** 0.5, 0.1 * loud)

    def corrupt(self, patterns, generator):
        loud = torch.tensor(self.loud)[torch.randint(len(self.loud), (len(patterns), 1), generator=generator)]
        heard = torch.rand(patterns.shape, generator=generator) < self.heard(patterns, loud)
        noise = torch.randn(patterns.shape, generator=generator)
        return torch.where(heard, patterns.clamp_min(0.1) * (0.4 * noise).exp(), 0.0)

    def pass_through(self, channel):
        raise NotImplementedError

    def log_likelihood(self, patterns, queries):
        patterns, queries = patterns[None].double(), queries[:, None].double()
        logs = (queries / patterns.clamp_min(0.1)).clamp_min(1e-30).log()
        density = torch.distributions.Normal(0.0, 0.4).log_prob(logs)
        tables = []
        for loud in self.loud:
            heard = self.heard(patterns, loud)
            tables.append(torch.where(queries > 0, heard.log() + density, (-heard).log1p()).sum(-1))
        return torch.stack(tables).logsumexp(0)


def items(count=200, dim=40):
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(count, dim, generator=generator)
    return torch.where(torch.rand(count, dim, generator=generator) < 0.75, 0.0, values)


PATTERNS = items()
WORLD = Unheard((0.9, 0.3))
SEEN, TEST = WORLD.sample(PATTERNS, 600), WORLD.sample(PATTERNS, 500)


@cache
def truth():
    return (WORLD.log_likelihood(PATTERNS, TEST.queries).argmax(1) == TEST.origins).double().mean()


def accuracy(similarity, test=TEST, scale=1.0):
    with torch.no_grad():
        return (similarity(PATTERNS * scale, test.queries * scale).argmax(1) == test.origins).double().mean()


def learned(origins=None, patterns=PATTERNS, queries=SEEN.queries, **options):
    similarity = Floor(patterns.shape[1]).to(patterns)
    similarity.fit(patterns, queries, origins, **options)
    return similarity


@cache
def from_all(labelled):
    return learned(SEEN.origins if labelled else None)


def drawn(regimes=1, levels=3, bins=4, dim=5):
    similarity = Floor(dim, -1.0, slack=1e-4, regimes=regimes, levels=levels, bins=bins).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in similarity.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    values = torch.rand(2, 6, dim, generator=generator).double() * 1.4 - 1
    return similarity, *torch.where(values < -0.5, -1.0, values)


def test_it_is_close_to_the_true_likelihood():
    nearest = (torch.cdist(TEST.queries, PATTERNS).argmin(1) == TEST.origins).double().mean()
    assert 0.6 < truth() < 0.95 and nearest < truth() - 0.1
    assert accuracy(from_all(labelled=True)) > truth() - 0.04
    assert accuracy(from_all(labelled=False)) > truth() - 0.06


def test_queries_that_hear_more_and_less_are_told_apart():
    similarity = from_all(labelled=True)
    assert similarity.regimes > 1 and len(similarity.parts()) == similarity.regimes
    alike = Unheard((0.6,)).sample(PATTERNS, 600)
    assert learned(alike.origins, queries=alike.queries).regimes == 1


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "labelled"), [(1e-6, True), (255.0, False)])
def test_what_is_learned_is_the_same_in_any_unit(scale, labelled):
    plain = from_all(labelled)
    moved = learned(SEEN.origins if labelled else None, PATTERNS * scale, SEEN.queries * scale)
    with torch.no_grad():
        choices = [s(PATTERNS * u, TEST.queries * u).argmax(1) for s, u in ((plain, 1.0), (moved, scale))]
    assert (choices[0] == choices[1]).double().mean() > 0.99


def test_a_floor_stays_one_when_units_are_left():
    # In float32 the way there and back does not end where it began.
    units = Units(0.37, 0.123)
    there = learned(patterns=units.measure(PATTERNS), queries=units.measure(SEEN.queries))
    back = units.leave(there)
    assert torch.equal(back.at_floor(PATTERNS), PATTERNS == 0)
    assert torch.equal(back.at_floor(SEEN.queries), SEEN.queries == 0)
    assert accuracy(back) > truth() - 0.06


@pytest.mark.parametrize(("unit", "shift"), [(1e3, 0.0), (0.01, -7.0), (2.0, 100.0)])
def test_a_rescaled_one_says_the_same_of_rescaled_data(unit, shift):
    similarity, patterns, queries = drawn(2)
    with torch.no_grad():
        here, there = similarity(patterns, queries), similarity.rescaled(unit, shift)
        # A density counts by the unit of its values; a point mass does not.
        heard = (queries > -1).sum(1, keepdim=True) * torch.tensor(unit).double().log()
        torch.testing.assert_close(there(patterns * unit + shift, queries * unit + shift) + heard, here)


@pytest.mark.parametrize("bins", [1, 4])
def test_the_point_mass_and_the_density_add_up_to_one(bins):
    similarity = drawn(2, bins=bins, dim=1)[0]
    # The least share lies far outside the bins, and the floor is left to itself.
    places = torch.linspace(-41, 41, 200_001).double()[:, None]
    patterns = torch.tensor([[-1.0], [-0.7], [0.5]]).double()
    with torch.no_grad():
        mass = similarity(patterns, torch.tensor([[-1.0]]).double()).exp()
        density = similarity(patterns, places[~similarity.at_floor(places)][:, None]).exp().sum(0) * 41e-5
    torch.testing.assert_close(mass[0] + density, torch.ones(3).double(), atol=2e-3, rtol=0)


@pytest.mark.parametrize("masked", [False, True])
def test_codes_are_the_scores_up_to_a_constant_of_the_query(masked):
    similarity, patterns, queries = drawn()
    mask = torch.rand(6, 5, generator=torch.Generator().manual_seed(2)) < 0.6 if masked else None
    with torch.no_grad():
        gaps = similarity.codes(patterns, 0.0)(patterns, queries, mask) - similarity(patterns, queries, mask)
    torch.testing.assert_close(gaps, gaps[:, :1].expand_as(gaps))
    with pytest.raises(ValueError, match="codes of Floor need a single regime, got 2"):
        drawn(2)[0].codes(patterns, 0.0)


def test_what_is_not_observed_is_left_out():
    similarity, patterns, queries = drawn(2)
    kept = torch.tensor([0, 2, 3])
    small = Floor(3, -1.0, slack=1e-4, regimes=2, levels=3, bins=4).double()
    state = similarity.state_dict()
    small.load_state_dict({**state, "heard_logits": state["heard_logits"][:, kept]})
    mask = torch.zeros(6, 5, dtype=torch.bool)
    mask[:, kept] = True
    for score in (Floor.forward, Floor.stranger):
        torch.testing.assert_close(
            score(similarity, patterns, queries, mask), score(small, patterns[:, kept], queries[:, kept])
        )


def test_a_mixture_of_one_regime_at_a_time_is_the_whole():
    similarity, patterns, queries = drawn(3)
    with torch.no_grad():
        parts = torch.stack([part(patterns, queries) + torch.tensor(share).log() for share, part in similarity.parts()])
        torch.testing.assert_close(parts.logsumexp(0), similarity(patterns, queries), rtol=1e-5, atol=1e-5)


def test_a_stranger_has_the_values_of_any_pattern():
    similarity, patterns, queries = drawn()
    with torch.no_grad():
        expected = 0.0
        for i in range(5):
            alone = torch.zeros(6, 5, dtype=torch.bool)
            alone[:, i] = True
            expected += similarity(patterns, queries, alone).exp().mean(1).log()
        torch.testing.assert_close(similarity.stranger(patterns, queries), expected)


def test_gradients():
    similarity, patterns, queries = drawn(2)
    inputs = list(similarity.parameters())
    assert torch.autograd.gradcheck(lambda *_: similarity(patterns, queries), inputs)


def test_a_known_origin_stays():
    known = SEEN.origins[:100]
    logits = torch.randn(300, len(PATTERNS), 2, generator=torch.Generator().manual_seed(3))
    origins = torch.cat([known, torch.full((200,), -1)])
    candidates, weights = learning._shared_out(logits, origins, torch.zeros(len(PATTERNS)))
    shares = torch.zeros(300, len(PATTERNS)).scatter_(1, candidates, weights.sum(1).reshape(300, -1))
    torch.testing.assert_close(shares[:100], torch.nn.functional.one_hot(known, len(PATTERNS)).float())
    assert (shares[100:].amax(1) < 0.9).all()


def test_labels_are_heeded():
    few, wrong = torch.full_like(SEEN.origins, -1), torch.full_like(SEEN.origins, -1)
    few[:50], wrong[:550] = SEEN.origins[:50], (SEEN.origins[:550] + 1) % len(PATTERNS)
    assert accuracy(learned(few)) > truth() - 0.08
    assert accuracy(learned(wrong)) < 0.3


def test_independent_dimensions_are_trusted_and_repeated_ones_are_not():
    def trusted(copies):
        patterns, queries = PATTERNS.repeat(1, copies), alike.queries.repeat(1, copies)
        cells = learning.Cells(learning.begin(patterns, queries), patterns, queries, None)
        rows = torch.arange(len(queries))
        model = learning.fit_pairs(cells, rows, alike.origins)
        return learning.trust(model, cells, rows, model.by_regime(patterns, queries), torch.Generator().manual_seed(0))

    alike = Unheard((0.8,)).sample(PATTERNS, 600)
    with torch.no_grad():
        assert trusted(1) > 0.8
        assert trusted(4) == pytest.approx(trusted(1) / 4, rel=0.25)


def test_masked_queries_are_learned_from():
    mask = torch.rand(SEEN.queries.shape, generator=torch.Generator().manual_seed(4)) < 0.7
    hidden = torch.where(mask, SEEN.queries, 9.0)
    for origins in (SEEN.origins, None):
        similarity = learned(origins, queries=hidden, observed=mask)
        assert similarity.floor == 0.0 and accuracy(similarity) > truth() - 0.15


def test_it_is_saved_and_loaded(tmp_path):
    memory = ahop.BayesianHopfield(PATTERNS, similarity=from_all(labelled=True))
    memory.save(tmp_path)
    again = ahop.load(tmp_path)
    assert torch.equal(again.scores(TEST.queries), memory.scores(TEST.queries))
    assert again.similarity.describe() == from_all(labelled=True).describe()


def test_cross_validation_prefers_it_where_there_is_a_floor():
    validation = CrossValidation(TrainingData(PATTERNS, SEEN.queries, SEEN.origins), 0)
    _, held_out = learning.by_retrieval(validation)
    with torch.no_grad():
        plain = validation.evaluate(lambda rows: Correlated(40))
    assert held_out.utility > plain.utility and plain.hopeless(held_out)


@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        (torch.tensor([[3.0, 3.0, 1.0, 2.0]]), 3.0),
        (torch.linspace(0, 1, 12).reshape(3, 4), None),
        (torch.ones(3, 4), None),
    ],
)
def test_a_floor_is_a_value_that_many_share(queries, expected):
    assert learning.floor_of(queries) == expected


def test_what_has_no_floor_is_refused():
    samples = Samples(torch.rand(20, 40), torch.arange(20))
    with pytest.raises(ValueError, match="queries must have a floor, a value that a quarter of their entries share"):
        learned(samples.origins, queries=samples.queries)


def test_binary_values_have_one_bin():
    patterns = (items(100, 30) > 0).float()
    origins = torch.arange(100).repeat(3)
    flips = torch.rand(300, 30, generator=torch.Generator().manual_seed(5)) < 0.02
    similarity = learned(origins, patterns, (patterns[origins] != flips).float())
    assert similarity.bins == similarity.levels == 1
    with torch.no_grad():
        assert (similarity(patterns, patterns).argmax(1) == torch.arange(100)).double().mean() > 0.9


@pytest.mark.parametrize("given", [{"regimes": 0}, {"bins": 0}, {"levels": 0}, {"slack": -1.0}])
def test_bad_shapes(given):
    with pytest.raises(ValueError, match="must"):
        Floor(3, **given)


def test_labels_judge_floors_that_have_not_learned_from_them(monkeypatch):
    patterns, queries, origins = PATTERNS[:40], SEEN.queries[:60], SEEN.origins[:60] % 40
    watch = Watch(monkeypatch).on(learning, "fit_pairs").on(CrossValidation, "score")
    learning.by_retrieval(CrossValidation(TrainingData(patterns, queries, origins), 0))
    for learned, judged in itertools.pairwise(watch.calls):
        if judged.what == "score":
            apart(rows(origins[learned.rows]), rows(origins[judged.rows]))
    assert len(watch.of("score")) == 12 * len(learning.REGIMES)


@torch.no_grad()
def test_a_floor_of_one_half_knows_nothing_of_the_labels_of_the_other():
    origins = torch.where(torch.arange(60) % 2 == 0, SEEN.origins[:60] % 40, -1)
    data = TrainingData(PATTERNS[:40], SEEN.queries[:60], origins)
    wrong = replace(data, origins=torch.where((torch.arange(60) >= 30) & (origins >= 0), (origins + 1) % 40, origins))
    again = FAMILIES["a floor"].without_labels(data, 0, print).again
    one, other = (again(some)(torch.arange(30)).state_dict() for some in (data, wrong))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
@pytest.mark.parametrize("known", [20, 300])
def test_labels_that_are_wrong_at_random_promise_no_more_than_chance(known):
    origins = torch.full((300,), -1)
    origins[:known] = torch.randint(200, (known,), generator=torch.Generator().manual_seed(1))
    memory = ahop.BayesianHopfield(PATTERNS).fit(SEEN.queries[:300], origins)
    assert memory.report.labels == known and memory.report.interval[0] <= 1 / 200
    assert float(memory.recall(TEST.queries).probabilities.mean()) < 0.1
