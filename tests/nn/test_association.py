import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ahop.nn import AttentionPooling, Hopfield, HopfieldLayer, HopfieldPooling, MaxPooling, MeanPooling
from ahop.nn.association import Mask
from ahop.separation import Entmax, Softmax

BATCH, STORED, STATES, WIDTH, HEADS = 3, 7, 5, 8, 2
SIMILARITIES = ["dot", "distance", "euclidean", "manhattan", "cosine", "adaptive", "likelihood"]
SLOW = ("exponential", "entmax", "argmax", Entmax(1.3), "identity", "normmax", "epanechnikov")
SEPARATIONS = [
    "softmax",
    "sparsemax",
    "power",
    "ksubsets",
    *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW),
]


def inputs(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(BATCH, size, WIDTH, generator=generator) for size in (STORED, STATES, STORED))


def padding():
    mask = torch.zeros(BATCH, STORED, dtype=torch.bool)
    mask[0, -3:] = mask[1, 0] = True
    return mask


def biased(layer):
    """The layer with biases that are not zero, as after learning."""
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return layer


# --- the temperature -----------------------------------------------------------------------------------------


@given(st.floats(1e-5, 1e5), st.sampled_from([torch.float16, torch.bfloat16, torch.float64]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_cast_keeps_the_temperature(beta, dtype, learn):
    layer = Hopfield(WIDTH, num_heads=HEADS, scaling=beta, learn_scaling=learn).to(dtype)
    assert layer.state.linear.weight.dtype == dtype
    torch.testing.assert_close(
        layer.association.beta.double(), torch.tensor([beta, beta], dtype=torch.float64), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("similarity", ["dot", "distance", "adaptive"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("beta", [100.0, 1e5])
def test_a_layer_in_half_precision_answers_at_any_temperature(similarity, dtype, beta):
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, scaling=beta).to(dtype)
    sides = tuple(side.to(dtype) for side in inputs())
    heads = [part(side).float() for part, side in zip((layer.stored, layer.state), sides, strict=False)]
    # The same numbers in full precision: what is rounded is rounded before the comparison.
    exact = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, scaling=beta)
    no_mask = Mask(None, None, (BATCH, HEADS, STATES, STORED))
    wanted = exact.association(*heads, layer.projection(sides[2]).float(), no_mask)
    got = layer.association(layer.stored(sides[0]), layer.state(sides[1]), layer.projection(sides[2]), no_mask)
    assert got.dtype == dtype
    torch.testing.assert_close(got.float(), wanted, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("separation", [Softmax(3.0), "softmax", "sparsemax"])
@pytest.mark.parametrize("similarity", ["dot", "distance"])
def test_what_is_read_out_is_what_the_weights_say(similarity, separation):
    """Numbers that a mask adds count alike on every way to a readout."""
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, separation=separation, disable_out_projection=True)
    added = torch.randn(BATCH, HEADS, STATES, STORED, generator=torch.Generator().manual_seed(1))
    weights = layer.get_association_matrix(inputs(), association_mask=added)
    wanted = (weights @ layer.projection(inputs()[2])).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(inputs(), association_mask=added), wanted)


# --- what may not be seen ------------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("separation", SEPARATIONS, ids=str)
def test_what_no_state_may_see_has_no_part_be_it_nan(similarity, separation):
    torch.manual_seed(0)
    layer = biased(
        Hopfield(
            WIDTH,
            num_heads=HEADS,
            similarity=similarity,
            separation=separation,
            normalize_stored_pattern=True,
            learn_scaling=True,
            update_steps_max=1,
        )
    )
    hidden, nowhere = padding(), torch.zeros(STATES, STORED, dtype=torch.bool)
    nowhere[:, 2] = True
    masks = [
        ({"stored_pattern_padding_mask": hidden}, hidden),
        ({"association_mask": torch.zeros(nowhere.shape).masked_fill(nowhere, -torch.inf)}, nowhere[:1]),
    ]
    for options, rows in masks:
        found = []
        for filling in (torch.zeros(WIDTH), torch.tensor([torch.nan, torch.inf, -torch.inf, 3e38] * (WIDTH // 4))):
            stored, state, projection = inputs()
            sides = [torch.where(rows[..., None], filling, side) for side in (stored, projection)]
            sides = [side.requires_grad_() for side in (sides[0], state, sides[1])]
            layer.zero_grad()
            answer = layer(tuple(sides), **options)
            answer.square().sum().backward()
            grads = [tensor.grad for tensor in (*sides, *layer.parameters()) if tensor.grad is not None]
            with torch.no_grad():
                tables = [layer(tuple(sides), **options), layer.get_association_matrix(tuple(sides), **options)]
                if not isinstance(separation, str) or separation not in ("power", "identity"):
                    tables.append(layer.energy(tuple(sides), **options))
            found.append([answer.detach(), *tables, *grads])
            assert all(bool(table.isfinite().all()) for table in found[-1])
        assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_one_set_that_asks_itself_may_have_padding_that_is_no_number():
    torch.manual_seed(0)
    layer, rows = biased(Hopfield(WIDTH, num_heads=HEADS)), inputs()[0]
    mask = {"stored_pattern_padding_mask": padding()}
    whole = layer(rows, **mask)
    with_nan = rows.masked_fill(padding()[..., None], torch.nan).requires_grad_()
    answer = layer(with_nan, **mask)
    answer.square().sum().backward()
    assert bool(answer.isfinite().all())
    assert bool(with_nan.grad.isfinite().all())
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in layer.parameters())
    torch.testing.assert_close(answer[~padding()], whole[~padding()])


@pytest.mark.parametrize("similarity", ["dot", "adaptive"])
def test_shared_rows_that_no_sample_sees_may_be_no_numbers(similarity):
    torch.manual_seed(0)
    layer = biased(HopfieldLayer(WIDTH, quantity=STORED, similarity=similarity))
    mask = torch.zeros(BATCH, STORED, dtype=torch.bool)
    mask[:, 1] = mask[0, 3] = True
    state = inputs()[1]
    wanted = layer(state, stored_pattern_padding_mask=mask)
    with torch.no_grad():
        layer.stored_patterns[1], layer.targets[1] = torch.nan, torch.inf
    torch.testing.assert_close(layer(state, stored_pattern_padding_mask=mask), wanted)
    layer(state, stored_pattern_padding_mask=mask).sum().backward()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in layer.parameters())


@pytest.mark.parametrize("pooling", [MeanPooling(WIDTH), MaxPooling(WIDTH), AttentionPooling(WIDTH, heads=2)])
def test_poolings_do_not_look_at_padding(pooling):
    found = []
    mask = padding()
    mask[2] = True
    for filling in (0.0, torch.nan, -torch.inf):
        pooling.zero_grad()
        rows = inputs()[0].masked_fill(mask[..., None], filling).requires_grad_()
        pooled = pooling(rows, mask)
        pooled.square().sum().backward()
        found.append([pooled.detach(), rows.grad, *(p.grad.clone() for p in pooling.parameters())])
    assert not found[0][0][2].any()
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize("separation", ["softmax", "sparsemax", "identity"])
@pytest.mark.parametrize("similarity", ["dot", "distance", "adaptive"])
@pytest.mark.parametrize("steps", [0, 2])
def test_a_state_that_may_see_nothing_reads_out_zero(similarity, separation, steps):
    torch.manual_seed(0)
    options = {"similarity": similarity, "separation": separation, "update_steps_max": steps}
    layer = biased(Hopfield(WIDTH, num_heads=HEADS, **options))
    everything, nothing = torch.zeros(BATCH, STORED, dtype=torch.bool), torch.zeros(STATES, STORED, dtype=torch.bool)
    everything[0], nothing[2] = True, True
    for learning in (True, False):
        with torch.set_grad_enabled(learning):
            answer = layer(inputs(), stored_pattern_padding_mask=everything)
            assert not answer[0].any()
            assert bool(answer[1:].all())
            answer = layer(inputs(), association_mask=nothing)
            assert not answer[:, 2].any()
            assert bool(answer[:, :2].all())
    # One head that sees is enough.
    first = torch.stack([torch.ones_like(nothing), torch.zeros_like(nothing)]).expand(BATCH, -1, -1, -1)
    assert bool(layer(inputs(), association_mask=first).all())


def test_shared_sets_and_pools_that_see_nothing_read_out_zero():
    torch.manual_seed(0)
    mask = torch.zeros(BATCH, STORED, dtype=torch.bool)
    mask[1] = True
    lookup = biased(HopfieldLayer(WIDTH, quantity=STORED, num_heads=HEADS))
    assert lookup(inputs()[1], stored_pattern_padding_mask=mask).any(-1).tolist() == [
        [True] * 5,
        [False] * 5,
        [True] * 5,
    ]
    pooling = biased(HopfieldPooling(WIDTH, quantity=2))
    assert pooling(inputs()[0], stored_pattern_padding_mask=mask).any(-1).tolist() == [True, False, True]


@pytest.mark.parametrize("similarity", [*SIMILARITIES, "correlated", "mahalanobis"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0])
def test_zeros_and_padding_alone_have_answers_and_gradients_that_are_numbers(similarity, bias, size):
    torch.manual_seed(0)
    options = {"num_heads": HEADS, "similarity": similarity, "input_bias": bias}
    rows = (size * inputs()[0]).requires_grad_()
    padded = {"stored_pattern_padding_mask": torch.ones(BATCH, STORED, dtype=torch.bool)}
    for layer, masks in (
        (Hopfield(WIDTH, **options), {}),
        (Hopfield(WIDTH, **options), padded),
        (HopfieldPooling(WIDTH, **options), padded),
        (HopfieldLayer(WIDTH, quantity=3, **options), {}),
        (Hopfield(similarity="dot" if similarity in ("adaptive", "likelihood") else similarity, hidden_size=WIDTH), {}),
    ):
        answer = layer(rows, **masks)
        learned = [parameter for parameter in layer.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(answer.square().sum(), [rows, *learned], allow_unused=True)
        assert torch.isfinite(answer).all()
        assert all(torch.isfinite(gradient).all() for gradient in gradients if gradient is not None)
