"""An answer does not depend on what lengths are measured in."""

from functools import cache

import pytest
import torch

import ahop
from ahop._precision import Units, unit_of
from ahop.similarity import Correlated, Likelihood, Regimes
from ahop.variants import Mixed

PATTERNS = torch.rand(40, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1
WORLD = Mixed(0.2, 0.3, 0.3)
SEEN, TEST = WORLD.sample(PATTERNS, 120), WORLD.sample(PATTERNS, 200)
SCALES = (1e-9, 1e-3, 255.0, 1e9)


def learn(name, patterns, queries, **options):
    if name == "b-hop*":
        return ahop.BayesianHopfield(patterns).fit(queries, **options)
    return ahop.create(name, patterns).fit(queries, SEEN.origins, **options)


@cache
def first_choices(name, scale, shift, **options):
    memory = learn(name, PATTERNS * scale + shift, SEEN.queries * scale + shift, **options)
    return memory.recall(TEST.queries * scale + shift).indices.squeeze(1)


MODELS = [
    ("a-hop", {}),
    ("a-hop", {"solver": "adam", "steps": 30}),
    ("k-hop", {"steps": 30}),
    ("k2-hop", {"steps": 60}),
    pytest.param("b-hop", {}, marks=pytest.mark.slow),
    ("b-hop", {"hidden_causes": 2}),
    pytest.param("b-hop*", {"hidden_causes": 0}, marks=pytest.mark.slow),
]


@pytest.mark.filterwarnings("ignore:the fit was still improving")
@pytest.mark.parametrize(("name", "options"), MODELS, ids=lambda value: str(value))
def test_what_is_learned_is_the_same_in_any_unit(name, options):
    plain = first_choices(name, 1.0, 0.0, **options)
    for scale in SCALES[:: 3 if name.startswith("b") else 1]:
        assert (first_choices(name, scale, 0.0, **options) == plain).double().mean() > 0.99
    # Not a law of all: an answer that nothing depends on would be the same in any unit as well.
    assert (plain == TEST.origins).double().mean() > 0.3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("b-hop", {}, marks=pytest.mark.slow),
        ("b-hop", {"hidden_causes": 2}),
        pytest.param("b-hop*", {"hidden_causes": 0}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_shift_of_everything_changes_nothing(name, options):
    plain = first_choices(name, 1.0, 0.0, **options)
    moved = first_choices(name, 1.0, 577.0, **options)
    assert (moved == plain).double().mean() > 0.98


def test_a_shift_changes_nothing_for_footprints_of_distances():
    plain, moved = (
        ahop.AdaptiveHopfield(PATTERNS.double() + shift, bases=["distance"])
        .fit(SEEN.queries.double() + shift, SEEN.origins)
        .recall(TEST.queries.double() + shift)
        .indices
        for shift in (0.0, 577.0)
    )
    assert (moved == plain).double().mean() > 0.99


def test_raw_bytes_are_learned_from():
    memory = ahop.AdaptiveHopfield((PATTERNS + 1) * 127.5)
    before = ahop.metrics.retrieval_accuracy(memory, ahop.variants.Samples((TEST.queries + 1) * 127.5, TEST.origins))
    memory.fit((SEEN.queries + 1) * 127.5, SEEN.origins)
    after = ahop.metrics.retrieval_accuracy(memory, ahop.variants.Samples((TEST.queries + 1) * 127.5, TEST.origins))
    assert memory.report.converged
    assert after > before + 0.1


@pytest.mark.slow
def test_a_stream_is_followed_in_any_unit():
    def followed(scale):
        memory = ahop.BayesianHopfield(PATTERNS * scale).fit(SEEN.queries * scale, SEEN.origins, hidden_causes=0)
        memory.similarity.known.fill_(1000)
        memory.partial_fit(TEST.queries * scale, TEST.origins)
        return memory.recall(TEST.queries * scale).indices

    plain = followed(1.0)
    for scale in (1e-9, 1e9):
        assert (followed(scale) == plain).double().mean() > 0.99


def a_likelihood():
    likelihood = Likelihood(12, 2, shifted=True)
    with torch.no_grad():
        likelihood.gain.copy_(torch.tensor([0.7, 1.2]))
        likelihood.bias.copy_(torch.linspace(-1, 1, 12))
    return likelihood


def a_subspace():
    correlated = Correlated(12, 2)
    with torch.no_grad():
        correlated.gain.fill_(0.8)
        correlated.bias.copy_(torch.linspace(-1, 1, 12))
        correlated.loading.copy_(torch.randn(12, 2, generator=torch.Generator().manual_seed(1)))
    return correlated


@pytest.mark.parametrize("similarity", [a_likelihood(), Regimes([a_likelihood(), Likelihood(12)]), a_subspace()])
@pytest.mark.parametrize(("unit", "shift"), [(1e3, 0.0), (0.01, -7.0), (2.0, 100.0)])
def test_a_rescaled_likelihood_says_the_same_of_rescaled_data(similarity, unit, shift):
    similarity = similarity.double()
    patterns, queries = PATTERNS.double(), TEST.queries.double()
    there = similarity.rescaled(unit, shift)
    with torch.no_grad():
        here = similarity(patterns, queries)
        # A density counts by the unit of its values.
        moved = there(patterns * unit + shift, queries * unit + shift) + 12 * torch.tensor(unit).double().log()
        torch.testing.assert_close(moved, here)
        back = there.rescaled(1 / unit, -shift / unit)
        torch.testing.assert_close(back(patterns, queries), here)


def test_the_unit_is_the_patterns_own():
    assert unit_of(PATTERNS) == pytest.approx(1.0, abs=0.05)
    assert unit_of(PATTERNS * 1e6 + 5e7) == pytest.approx(1e6 * unit_of(PATTERNS), rel=1e-3)
    assert unit_of(torch.full((3, 2), 7.0)) == 7.0
    assert unit_of(torch.zeros(3, 2)) == 1.0
    assert unit_of(torch.zeros(3, 2), torch.eye(2)) == pytest.approx(3**0.5 / 2)
    units = Units.of(PATTERNS * 100 + 3)
    measured = units.measure(PATTERNS * 100 + 3)
    assert measured.mean().abs() < 1e-5 and unit_of(measured) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
@pytest.mark.parametrize("name", ["a-hop", "k2-hop", "b-hop"])
def test_what_float32_cannot_learn_from_is_refused(name, scale):
    with pytest.raises(ValueError, match="patterns must be spread by 1e-15 to 1e\\+15 to learn in float32"):
        learn(name, PATTERNS * scale, SEEN.queries * scale)
    choices = learn(name, PATTERNS.double() * scale, SEEN.queries.double() * scale, **MODEST.get(name, {}))
    found = choices.recall(TEST.queries.double() * scale).indices.squeeze(1)
    assert (found == TEST.origins).double().mean() > 0.5


MODEST = {"k2-hop": {"rate": 0.01}}
