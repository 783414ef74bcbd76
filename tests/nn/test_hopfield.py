import copy

import pytest
import torch
from torch import nn

import ahop
from ahop.modulation import Kernel
from ahop.nn import Hopfield
from ahop.separation import Entmax, Softmax, Sparsemax
from ahop.similarity import Adaptive, Cosine, Distance, Dot

BATCH, STORED, STATES, WIDTH, HEADS = 3, 7, 5, 8, 2


def inputs(dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    stored = torch.randn(BATCH, STORED, WIDTH, generator=generator, dtype=dtype)
    state = torch.randn(BATCH, STATES, WIDTH, generator=generator, dtype=dtype)
    return stored, state, torch.randn(BATCH, STORED, WIDTH, generator=generator, dtype=dtype)


def padding(last=3):
    mask = torch.zeros(BATCH, STORED, dtype=torch.bool)
    mask[0, -last:] = mask[1, 0] = True
    return mask


def twins(**options):
    """Attention as PyTorch has it, and a layer with the same weights."""
    torch.manual_seed(1)
    attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    nn.init.normal_(attention.in_proj_bias)
    nn.init.normal_(attention.out_proj.bias)
    layer = Hopfield(WIDTH, num_heads=HEADS, **options)
    with torch.no_grad():
        for place, side in enumerate((layer.state, layer.stored, layer.projection)):
            rows = slice(place * WIDTH, (place + 1) * WIDTH)
            side.linear.weight.copy_(attention.in_proj_weight[rows])
            side.linear.bias.copy_(attention.in_proj_bias[rows])
        layer.out_projection.load_state_dict(attention.out_proj.state_dict())
    return attention, layer


ALLOWED = torch.rand(STATES, STORED, generator=torch.Generator().manual_seed(2)) < 0.7
ADDED = torch.randn(BATCH * HEADS, STATES, STORED, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    "masks",
    [
        {},
        {"stored_pattern_padding_mask": padding()},
        {"association_mask": ~ALLOWED},
        {"association_mask": ADDED},
        {"association_mask": ADDED.masked_fill(~ALLOWED, -torch.inf)},
        {"association_mask": (~ALLOWED).expand(BATCH * HEADS, -1, -1)},
        {"association_mask": ~ALLOWED, "stored_pattern_padding_mask": padding()},
        {"association_mask": ADDED, "stored_pattern_padding_mask": padding()},
    ],
)
def test_the_default_is_multi_head_attention(masks):
    attention, layer = twins()
    stored, state, projection = inputs()
    theirs = {"key_padding_mask": masks.get("stored_pattern_padding_mask"), "attn_mask": masks.get("association_mask")}
    if None not in theirs.values() and theirs["attn_mask"].dtype != torch.bool:
        # PyTorch wants both masks of one kind.
        theirs["key_padding_mask"] = torch.zeros(BATCH, STORED).masked_fill(padding(), -torch.inf)
    wanted, weights = attention(state, stored, projection, average_attn_weights=False, **theirs)
    torch.testing.assert_close(layer((stored, state, projection), **masks), wanted)
    torch.testing.assert_close(layer.get_association_matrix((stored, state, projection), **masks), weights)


def test_one_tensor_is_all_three():
    attention, layer = twins()
    state = inputs()[1]
    torch.testing.assert_close(layer(state), attention(state, state, state)[0])


def test_a_batch_may_be_left_out():
    _, layer = twins()
    stored, state, projection = inputs()
    alone = layer((stored[0], state[0], projection[0]), stored_pattern_padding_mask=padding()[0])
    whole = layer((stored, state, projection), stored_pattern_padding_mask=padding())
    torch.testing.assert_close(alone, whole[0])


@pytest.mark.parametrize(
    "separation",
    [
        "softmax",
        "sparsemax",
        "entmax",
        "normmax",
        "ksubsets",
        "epanechnikov",
        "argmax",
        Entmax(1.3),
        "power",
        "identity",
    ],
)
@pytest.mark.parametrize("similarity", ["dot", "distance", "manhattan", "cosine", "adaptive", "likelihood"])
def test_rows_that_see_nothing_are_finite(similarity, separation):
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, separation=separation)
    sides = [side.requires_grad_() for side in inputs()]
    nothing = torch.zeros(STATES, STORED, dtype=torch.bool)
    nothing[2] = True
    empty = padding(STORED)
    for masks in ({"association_mask": nothing}, {"stored_pattern_padding_mask": empty}):
        answer = layer(tuple(sides), **masks)
        weights = layer.get_association_matrix(tuple(sides), **masks)
        answer.square().sum().backward()
        assert answer.isfinite().all()
        assert all(side.grad is None or side.grad.isfinite().all() for side in sides)
        assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
    assert bool((weights[0] == 0).all())


@pytest.mark.parametrize("similarity", ["dot", "distance", "adaptive", "likelihood"])
@pytest.mark.parametrize("separation", ["softmax", "sparsemax", "entmax", "normmax", "ksubsets", "epanechnikov"])
def test_what_is_masked_is_as_if_it_were_not_there(similarity, separation):
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, separation=separation)
    stored, state, projection = inputs()
    mask = padding()
    whole = layer((stored, state, projection), stored_pattern_padding_mask=mask)
    for sample in range(BATCH):
        kept = ~mask[sample]
        alone = layer((stored[sample][kept], state[sample], projection[sample][kept]))
        torch.testing.assert_close(whole[sample], alone, atol=1e-5, rtol=1e-4)
    with torch.no_grad():  # the way without gradients is another one
        again = layer((stored, state, projection), stored_pattern_padding_mask=mask)
    torch.testing.assert_close(whole.detach(), again, atol=1e-5, rtol=1e-4)


def test_the_adaptive_similarity_starts_as_the_dot_product():
    _, plain = twins()
    _, adaptive = twins(similarity="adaptive")
    torch.testing.assert_close(adaptive(inputs()), plain(inputs()), atol=1e-6, rtol=1e-5)
    plain, adaptive = plain.double(), adaptive.double()
    exact = {"atol": 1e-14, "rtol": 1e-13}
    torch.testing.assert_close(adaptive(inputs(torch.float64)), plain(inputs(torch.float64)), **exact)


def test_weights_are_learned_per_head_or_shared():
    own = Hopfield(WIDTH, num_heads=HEADS, similarity="adaptive")
    shared = Hopfield(WIDTH, num_heads=HEADS, similarity=Adaptive(WIDTH // HEADS, ["distance"]))
    assert len(own.association.similarities) == HEADS
    assert len(shared.association.similarities) == 1
    own(inputs()).square().sum().backward()
    slopes = [similarity.weight.grad for similarity in own.association.similarities]
    assert all(bool(slope.abs().sum() > 0) for slope in slopes)
    assert not torch.equal(*slopes)


def test_a_list_gives_each_head_its_own_similarity():
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=[Dot(), Distance()])
    alike = [Hopfield(WIDTH, num_heads=HEADS, similarity=part) for part in (Dot(), Distance())]
    for other in alike:
        other.load_state_dict(layer.state_dict(), strict=False)
    mixed = layer.get_association_matrix(inputs())
    for head, other in enumerate(alike):
        torch.testing.assert_close(mixed[:, head], other.get_association_matrix(inputs())[:, head])


@pytest.mark.slow
def test_adaptive_heads_go_through_the_kernels_together():
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity="adaptive")
    for similarity in layer.association.similarities:
        similarity.set_order_weights(torch.rand(2, WIDTH // HEADS))
    with ahop.kernels.use("reference"):
        expected = layer(inputs())
    with ahop.kernels.use("cpu"):
        answer = layer(inputs())
        assert ahop.kernels.last_used() == "cpu"
        answer.square().sum().backward()
        torch.testing.assert_close(answer, expected, atol=1e-6, rtol=1e-5)
        with torch.no_grad():
            torch.testing.assert_close(layer(inputs()), expected, atol=1e-6, rtol=1e-5)
    one_by_one = [
        similarity(stored, state)
        for similarity, stored, state in zip(
            layer.association.similarities,
            layer.stored(inputs()[0]).unbind(1),
            layer.state(inputs()[1]).unbind(1),
            strict=True,
        )
    ]
    weights = torch.softmax(torch.stack(one_by_one, 1) * layer.association.beta[:, None, None], -1)
    torch.testing.assert_close(layer.get_association_matrix(inputs()), weights, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("similarity", ["dot", "adaptive"])
@pytest.mark.parametrize("learning", [True, False])
def test_beta_belongs_to_its_head(similarity, learning):
    torch.manual_seed(0)
    betas = torch.tensor([0.1, 3.0])
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, scaling=betas, disable_out_projection=True)
    with torch.set_grad_enabled(learning):
        both = layer(inputs()).unflatten(-1, (HEADS, -1))
        for head in range(HEADS):
            with torch.no_grad():
                layer.association.log_beta.fill_(float(betas[head].log()))
            torch.testing.assert_close(both[..., head, :], layer(inputs()).unflatten(-1, (HEADS, -1))[..., head, :])


def test_beta_can_be_learned():
    layer = Hopfield(WIDTH, num_heads=HEADS, learn_scaling=True)
    layer(inputs()).square().sum().backward()
    assert layer.association.log_beta.grad.abs().min() > 0
    assert not Hopfield(WIDTH).association.log_beta.requires_grad


def test_plain_retrieval_has_nothing_to_learn():
    memory = Hopfield(scaling=10.0)
    patterns = torch.eye(4)
    noisy = patterns + 0.2 * torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(memory((patterns, noisy, patterns)).argmax(-1), torch.arange(4))
    expected = ahop.ModernHopfield(patterns, beta=10.0)
    torch.testing.assert_close(memory((patterns, noisy, patterns)), expected.retrieve(noisy))
    torch.testing.assert_close(memory.energy((patterns, noisy, patterns))[0], expected.energy(noisy))
    assert not any(p.requires_grad for p in memory.parameters())
    values = torch.randn(4, 9)
    assert memory((patterns, noisy, values)).shape == (4, 9)


def test_states_are_updated_until_they_rest():
    patterns = torch.eye(6) * 2
    start = patterns + 0.5 * torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    resting = Hopfield(scaling=2.0, update_steps_max=None, update_steps_eps=1e-6)
    rest = resting((patterns, start, patterns))
    again = Hopfield(scaling=2.0)((patterns, rest, patterns))
    torch.testing.assert_close(rest, again, atol=1e-4, rtol=1e-4)
    many = Hopfield(scaling=2.0, update_steps_max=200, update_steps_eps=0.0)((patterns, start, patterns))
    torch.testing.assert_close(rest, many, atol=1e-4, rtol=1e-4)


def test_the_stopping_rule_looks_at_the_state():
    # Weights that hardly change can still move a state far where patterns are large, and the other way round.
    patterns = 1e4 * torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    state = torch.tensor([[1e4 * 0.5, 1e4 * 0.499]])
    options = {"scaling": 1e-9, "update_steps_max": 1}
    for eps, moved in ((1.0, True), (100.0, False)):
        layer = Hopfield(update_steps_eps=eps, **options)
        states = layer._settle(layer._project(layer._check((patterns, state, patterns), None, None)))
        assert bool((states - state).abs().max() > 1) == moved


def test_a_state_that_never_rests_raises_a_warning(monkeypatch):
    monkeypatch.setattr("ahop.nn.hopfield._MOST_STEPS", 3)
    layer = Hopfield(update_steps_max=None, update_steps_eps=0.0, scaling=0.5)
    with pytest.warns(RuntimeWarning, match="still moved after 3 steps"):
        layer((torch.randn(4, 3), torch.randn(2, 3), torch.randn(4, 3)))


def test_each_head_has_the_energy_of_its_own_similarity():
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=[Dot(), Distance()])
    for head, part in enumerate((Dot(), Distance())):
        other = Hopfield(WIDTH, num_heads=HEADS, similarity=part)
        other.load_state_dict(layer.state_dict(), strict=False)
        torch.testing.assert_close(layer.energy(inputs())[:, head], other.energy(inputs())[:, head])


@pytest.mark.parametrize("separation", ["softmax", "sparsemax", "entmax", "normmax", "ksubsets"])
@pytest.mark.parametrize("scaling", [0.3, 2.0])
def test_updates_descend_the_energy(separation, scaling):
    stored, state, _ = inputs(torch.float64)
    mask = padding()
    energies, options = [], {"separation": separation, "scaling": scaling, "update_steps_eps": 0.0}
    for steps in range(5):
        layer = Hopfield(update_steps_max=steps, **options).double()
        states = layer._settle(layer._project(layer._check((stored, state, stored), mask, None)))
        energies.append(layer.energy((stored, states[:, 0], stored), stored_pattern_padding_mask=mask))
    falls = torch.stack(energies).diff(dim=0)
    assert bool((falls <= 1e-10).all())
    assert float(falls[0].min()) < -1e-3


def test_the_energy_of_other_similarities_is_the_evidence():
    stored, state, _ = inputs()
    layer = Hopfield(scaling=2.0, similarity="distance")
    wanted = -torch.logsumexp(2 * Distance()(stored, state), -1) / 2
    torch.testing.assert_close(layer.energy((stored, state, stored))[:, 0], wanted)


def test_shared_stored_patterns_are_worked_on_once():
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, normalize_stored_pattern=True, normalize_pattern_projection=True)
    seen = []
    for part in (layer.stored.norm, layer.stored.linear, layer.projection.norm, layer.projection.linear):
        part.register_forward_hook(lambda module, given, answer: seen.append(given[0].shape[0]))
    stored, state, projection = inputs()
    together = layer((stored[0], state, projection[0]))
    assert seen == [1, 1, 1, 1]
    torch.testing.assert_close(together, layer((stored[:1].expand(3, -1, -1), state, projection[:1].expand(3, -1, -1))))


@pytest.mark.parametrize("similarity", ["dot", "adaptive"])
@pytest.mark.parametrize("learning", [True, False])
def test_shared_stored_patterns_with_masks(similarity, learning):
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity)
    stored, state, projection = inputs()
    wide = [side[:1].expand(BATCH, -1, -1) for side in (stored, projection)]
    generator = torch.Generator().manual_seed(5)
    own = torch.rand(BATCH, HEADS, STATES, STORED, generator=generator) < 0.3
    with torch.set_grad_enabled(learning):
        for masks in ({"stored_pattern_padding_mask": padding()}, {"association_mask": own}):
            shared = layer((stored[:1], state, projection[:1]), **masks)
            torch.testing.assert_close(shared, layer((wide[0], state, wide[1]), **masks), atol=1e-6, rtol=1e-5)
            weights = layer.get_association_matrix((stored[:1], state, projection[:1]), **masks)
            expected = layer.get_association_matrix((wide[0], state, wide[1]), **masks)
            torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"similarity": "adaptive", "update_steps_max": 2}, {}, {"similarity": "distance"}])
def test_the_whole_layer_compiles(options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, **options)
    whole = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for masks in ({}, {"stored_pattern_padding_mask": padding(), "association_mask": ~ALLOWED}):
        answer = whole(inputs(), **masks)
        torch.testing.assert_close(answer, layer(inputs(), **masks), atol=1e-6, rtol=1e-5)
    answer.sum().backward()


@pytest.mark.parametrize("similarity", ["dot", "distance", "adaptive", "likelihood"])
@pytest.mark.parametrize("separation", ["softmax", "sparsemax"])
def test_half_precision_by_autocast(similarity, separation):
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity, separation=separation)
    expected = layer(inputs())
    with torch.autocast("cpu", torch.bfloat16):
        answer = layer(inputs(), stored_pattern_padding_mask=torch.zeros(BATCH, STORED, dtype=torch.bool))
        loss = answer.float().square().sum()
    loss.backward()
    assert answer.dtype == torch.bfloat16
    torch.testing.assert_close(answer.float(), expected, atol=0.05, rtol=0.05)
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(layer(inputs()).float(), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("similarity", ["dot", "distance", "adaptive", "likelihood"])
@pytest.mark.parametrize(
    "separation", ["softmax", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sparsemax", "entmax"))]
)
def test_gradients(similarity, separation):
    torch.manual_seed(0)
    layer = Hopfield(
        WIDTH, num_heads=HEADS, similarity=similarity, separation=separation, learn_scaling=True, update_steps_max=1
    ).double()
    sides = [side[:2, :3].clone().requires_grad_() for side in inputs(torch.float64)]
    mask = torch.tensor([[False, False, True], [False, False, False]])

    def run(*tensors):
        return layer(tensors[:3], stored_pattern_padding_mask=mask)

    learned = [p for p in layer.parameters() if p.requires_grad]
    # The parameters are among the inputs, so that their gradients are checked too.
    assert torch.autograd.gradcheck(run, (*sides, *learned), atol=1e-5, rtol=1e-3, fast_mode=True)


def test_dropout_drops_in_training_alone():
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, dropout=0.5, similarity="distance")
    assert not torch.equal(layer(inputs()), layer(inputs()))
    layer.eval()
    torch.testing.assert_close(layer(inputs()), layer(inputs()))


def test_states_are_updated_without_dropout():
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, dropout=0.5, update_steps_max=3)
    weights = [layer.get_association_matrix(inputs()) for _ in range(2)]
    torch.testing.assert_close(*weights)
    resting = Hopfield(scaling=2.0, dropout=0.5, update_steps_max=None)
    resting((torch.eye(6), torch.eye(6), torch.eye(6)))  # a state that cannot rest would warn


@pytest.mark.parametrize("similarity", ["dot", "distance", "adaptive", "likelihood", Adaptive(4, sort=False)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_modules_may_be_cast(similarity, dtype):
    torch.manual_seed(0)
    layer = Hopfield(WIDTH, num_heads=HEADS, similarity=similarity)
    expected = layer(inputs(), stored_pattern_padding_mask=padding())
    cast = copy.deepcopy(layer).to(dtype)
    answer = cast(tuple(side.to(dtype) for side in inputs()), stored_pattern_padding_mask=padding())
    answer.sum().backward()
    assert answer.dtype == dtype
    torch.testing.assert_close(answer.float(), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("mask", [None, padding(), padding(STORED)])
def test_one_pass_has_the_gradients_of_several(mask, monkeypatch):
    """Where a table of scores would be too big to keep, all goes in one pass and is made again in the backward pass."""
    found = []
    for budget in (2**30, 1):
        monkeypatch.setattr("ahop.nn.association.budget", lambda budget=budget: budget)
        torch.manual_seed(0)
        layer = Hopfield(WIDTH, num_heads=HEADS, similarity="adaptive", learn_scaling=True)
        sides = [side.requires_grad_() for side in inputs()]
        layer(tuple(sides), stored_pattern_padding_mask=mask).square().sum().backward()
        found.append([*(side.grad for side in sides), *(p.grad for p in layer.parameters())])
    for kept, again in zip(*found, strict=True):
        torch.testing.assert_close(kept, again, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("separation", [Softmax(1e-4), Sparsemax(1e-5), Entmax(1.5, beta=1e-4), "softmax"])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_what_is_masked_has_no_weight_at_any_temperature(separation, size):
    layer = Hopfield(similarity="distance", separation=separation)
    stored, state, _ = (size * side for side in inputs())
    weights = layer.get_association_matrix((stored, state, stored), stored_pattern_padding_mask=padding())
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, 1, STATES))


def test_sizes_may_all_differ():
    layer = Hopfield(
        6, hidden_size=5, output_size=9, pattern_size=4, num_heads=3, stored_pattern_size=7, pattern_projection_size=8
    )
    assert layer((torch.randn(2, 10, 7), torch.randn(2, 3, 6), torch.randn(2, 10, 8))).shape == (2, 3, 9)


def test_static_inputs_are_taken_as_they_are():
    layer = Hopfield(
        6, hidden_size=5, num_heads=2, stored_pattern_as_static=True, pattern_projection_as_static=True, pattern_size=4
    )
    assert layer.stored.linear is None
    assert layer.state.linear is not None
    assert layer((torch.randn(2, 10, 5), torch.randn(2, 3, 6), torch.randn(2, 10, 4))).shape == (2, 3, 6)


def test_modulation_makes_a_kernel_network():
    kernel = Kernel(WIDTH // HEADS)
    with torch.no_grad():
        kernel.phi.copy_(torch.randn(WIDTH // HEADS, WIDTH // HEADS, generator=torch.Generator().manual_seed(0)))
    _, layer = twins(modulation=kernel)
    stored, state, _ = inputs()
    scores = torch.einsum("bhqd,fd,fe,bhne->bhqn", layer.state(state), kernel.phi, kernel.phi, layer.stored(stored))
    weights = torch.softmax(scores * layer.association.beta[:, None, None], -1)
    torch.testing.assert_close(layer.get_association_matrix(inputs()), weights)
    torch.testing.assert_close(
        layer(inputs()),
        layer.out_projection((weights @ layer.projection(inputs()[2])).transpose(1, 2).flatten(2)),
    )


def test_the_hopfield_space_can_be_normalised():
    layer = Hopfield(WIDTH, num_heads=HEADS, normalize_hopfield_space=True)
    heads = layer._project(layer._check(inputs(), None, None))
    for side in (heads.stored, heads.state):
        torch.testing.assert_close(side.square().mean(-1), torch.ones(side.shape[:-1]), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("similarity", ["cosine", Cosine(), [Cosine(), Dot(), Cosine(), Dot()]])
def test_cosines_have_a_scale_of_their_own_unless_one_is_given(similarity):
    heads = [10.0, 0.5] * 2 if isinstance(similarity, list) else [10.0] * 4
    layer = Hopfield(16, num_heads=4, similarity=similarity)
    assert layer.association.beta.flatten().tolist() == pytest.approx(heads)
    given = Hopfield(16, num_heads=4, similarity=similarity, scaling=3.0)
    assert given.association.beta.flatten().tolist() == pytest.approx([3.0] * 4)


def test_by_default_a_layer_learns_by_cosines_what_it_learns_by_dot_products():
    def found(similarity, **options):
        torch.manual_seed(0)
        layer = Hopfield(16, similarity=similarity, pattern_projection_size=8, output_size=8, **options)
        optimiser = torch.optim.Adam(layer.parameters(), 1e-2)
        for _ in range(80):
            stored, labels = torch.randn(8, 10, 16), torch.randint(8, (8, 10))
            given = stored, stored + 0.3 * torch.randn_like(stored), torch.nn.functional.one_hot(labels, 8).float()
            scores = layer(given).flatten(0, 1)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(scores, labels.flatten()).backward()
            optimiser.step()
        return float((scores.argmax(-1) == labels.flatten()).float().mean())

    assert found("dot") > 0.9 and found("cosine") > 0.9 and found("cosine", scaling=0.25) < 0.7


@pytest.mark.parametrize("layer", [ahop.nn.Hopfield, ahop.nn.HopfieldLayer, ahop.nn.HopfieldPooling])
def test_a_second_number_without_a_name_is_refused_and_not_taken_for_heads(layer):
    with pytest.raises(TypeError, match="positional arguments but 3 were given"):
        layer(32, 4)
