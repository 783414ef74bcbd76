"""Right answers where arithmetic allows, one clear error where not, and never NaN out of finite input."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop.separation import Separation
from ahop.similarity import Adaptive, Similarity
from ahop.variants import Masked, Mixed

PATTERNS = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
QUERIES = PATTERNS[:10] + 0.1 * torch.randn(10, 8, generator=torch.Generator().manual_seed(1))
SIMILARITIES = ["dot", "distance", "euclidean", "manhattan", "cosine"]
SEPARATIONS = ["softmax", "sparsemax", "entmax", "normmax", "argmax", "exponential"]


@given(
    st.sampled_from(SIMILARITIES),
    st.sampled_from([*SEPARATIONS, "ksubsets", "epanechnikov"]),
    st.sampled_from([1e-30, 1e-25, 1e-8, 1e15, 1e20, 1e36]),
)
def test_first_choices_are_right_at_any_size_that_a_float_has(similarity, separation, scale):
    plain = ahop.AssociativeMemory(PATTERNS, similarity, "argmax").recall(QUERIES)
    memory = ahop.AssociativeMemory(PATTERNS * scale, similarity, separation)
    found = memory.recall(QUERIES * scale)
    assert found.indices.equal(plain.indices)
    assert torch.isfinite(found.probabilities).all()
    assert torch.isfinite(memory.retrieve(QUERIES * scale)).all()
    assert torch.isfinite(memory.energy(QUERIES * scale)).all()


@pytest.mark.parametrize("scale", [1e-25, 1e20])
def test_footprints_are_right_at_any_size(scale):
    plain = ahop.AdaptiveHopfield(PATTERNS).recall(QUERIES)
    memory = ahop.AdaptiveHopfield(PATTERNS * scale, separation="argmax")
    assert memory.recall(QUERIES * scale).indices.equal(plain.indices)
    assert torch.isfinite(ahop.AdaptiveHopfield(PATTERNS * scale).retrieve(QUERIES * scale)).all()


def test_footprints_are_right_where_a_temperature_would_overflow():
    memory = ahop.AdaptiveHopfield(PATTERNS * 1e17, separation=ahop.separation.Softmax(1e6))
    plain = ahop.AdaptiveHopfield(PATTERNS).recall(QUERIES)
    found = memory.recall(QUERIES * 1e17)
    assert found.indices.equal(plain.indices)
    torch.testing.assert_close(memory.retrieve(QUERIES * 1e17), memory.patterns[found.indices.squeeze(1)])


def test_a_cosine_of_small_rows_beside_large_ones():
    sizes = torch.tensor([1e-25, 1.0, 1e25]).repeat(10)[:, None]
    plain = ahop.AssociativeMemory(PATTERNS, "cosine", "argmax").scores(QUERIES)
    torch.testing.assert_close(ahop.AssociativeMemory(PATTERNS * sizes, "cosine", "argmax").scores(QUERIES), plain)


def test_what_no_number_can_hold_is_refused():
    memory = ahop.AssociativeMemory(PATTERNS.double() * 1e200, "distance", "softmax")
    with pytest.raises(ValueError, match=r"values as large as .*e\+200 have no finite scores in float64"):
        memory.recall(QUERIES.double() * 1e200)


@given(st.sampled_from(SEPARATIONS), st.floats(1e-20, 1e20), st.sampled_from([1e-8, 1.0, 1e8, 1e30]))
def test_weights_are_a_distribution_at_any_temperature_and_size(separation, beta, size):
    kind = Separation.named(separation)
    part = kind() if separation in ("argmax", "exponential") else kind(beta=beta)
    scores = size * torch.tensor([[3.0, 3.0 - 1e-6, -1.0, 2.0]])
    weights = part(scores)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1))
    assert int(weights.argmax()) == 0
    assert torch.isfinite(part.conjugate(scores)).all()


def test_a_narrow_entmax_of_large_scores_takes_the_best():
    weights = ahop.separation.Entmax(1.3)(torch.tensor([1e8, 1e8 - 800, 0.0]))
    assert weights.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("beta", [1e39, 1e-39, 0, -1, float("nan"), None, "warm", True])
def test_a_temperature_out_of_range_is_named(beta):
    with pytest.raises(ValueError, match="beta must be a number"):
        ahop.ModernHopfield(PATTERNS, beta=beta)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_products_of_halves_do_not_overflow(dtype):
    patterns = torch.stack([torch.full((200,), 300.0), torch.full((200,), 290.0)]).to(dtype)
    found = ahop.ModernHopfield(patterns).recall(torch.full((200,), 300.0))
    assert found.indices.item() == 0 and found.probabilities.item() == 1.0


HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("beta", [1e-5, 0.3, 100.0, 1e5])
def test_a_temperature_survives_a_cast(dtype, beta):
    memory = ahop.ModernHopfield(torch.eye(3), beta=beta).to(dtype)
    assert float(memory.separation.beta) == pytest.approx(beta, rel=1e-5)


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["m-hop", "s-hop", "u-hop", "a-hop", "b-hop"])
def test_a_prior_of_zero_rules_a_pattern_out(name, dtype):
    memory = ahop.create(name, torch.eye(3).to(dtype), prior=[0, 1, 1])
    assert memory.weights(torch.zeros(3))[0] == 0
    assert memory.recall(torch.eye(3)[0], k=3).indices[-1] == 0
    assert memory.recall(torch.zeros(3), k=3).probabilities[-1] == 0


@pytest.mark.parametrize("dtype", HALVES)
def test_counts_too_large_for_halves_are_kept(dtype):
    memory = ahop.ModernHopfield(torch.eye(3).to(dtype), prior=[1e6, 1e6, 2e6])
    torch.testing.assert_close(memory.weights(torch.zeros(3)).float(), torch.tensor([0.25, 0.25, 0.5]))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("k-hop", {"steps": 20}),
        ("k2-hop", {"steps": 20}),
        ("a-hop", {}),
        ("a-hop", {"solver": "adam", "steps": 20}),
        pytest.param("b-hop", {}, marks=pytest.mark.slow),
        ("b-hop", {"hidden_causes": 2}),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_memories_of_halves_learn_in_full(name, options, dtype):
    seen = Mixed(0.2, 0.2, 0.2).sample(PATTERNS, 60)
    memory = ahop.create(name, PATTERNS.to(dtype)).fit(*seen, **options)
    assert all(p.dtype == torch.float32 and torch.isfinite(p).all() for p in memory.parameters())
    wide = ahop.create(name, PATTERNS).fit(*seen, **options)
    agree = memory.recall(seen.queries).indices == wide.recall(seen.queries).indices
    assert agree.double().mean() > 0.85
    assert memory.retrieve(QUERIES).dtype == dtype


@pytest.mark.parametrize("dtype", HALVES)
def test_an_oracle_of_halves_gives_numbers(dtype):
    found = ahop.Oracle(PATTERNS.to(dtype), Masked(0.3)).recall(PATTERNS[:5])
    assert found.indices.squeeze(1).tolist() == [0, 1, 2, 3, 4]
    assert torch.isfinite(found.probabilities).all()


def test_what_does_not_fit_is_refused_and_nothing_changes():
    memory = ahop.ModernHopfield(PATTERNS.clone(), values=PATTERNS.clone(), prior=torch.ones(30))
    before = memory.recall(QUERIES)
    row = np.zeros((1, 8))
    for arguments in (
        ([row + 1e300], {"values": row, "prior": [1.0]}),
        ([row], {"values": row + 1e300, "prior": [1.0]}),
        ([row], {"values": row, "prior": np.array([1e300])}),
    ):
        with pytest.raises(ValueError, match=r"must fit torch.float32, at most 3.4e\+38; got 1e\+300"):
            memory.add(*arguments[0], **arguments[1])
    with pytest.raises(ValueError, match=r"queries must fit torch.float32"):
        memory.recall(row + 1e300)
    large = ahop.ModernHopfield(PATTERNS * 1e5)
    with pytest.raises(ValueError, match=r"patterns must fit torch.float16"):
        large.half()
    assert large.patterns.dtype == torch.float32 and len(memory) == 30
    assert memory.recall(QUERIES).indices.equal(before.indices)


def test_every_similarity_that_learns_stays_in_float32():
    similarity = Adaptive(4).half()
    assert similarity.weight.dtype == torch.float32
    for name, kind in Similarity.members.items():
        if name in ("likelihood", "correlated"):
            assert all(p.dtype == torch.float32 for p in kind(dim=4).bfloat16().parameters())
