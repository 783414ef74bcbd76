"""Weights in the layout of hflayers, and what its layers compute with them, in NumPy from the equations."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from ahop.nn import Hopfield, HopfieldLayer, HopfieldPooling, from_hflayers

STORED, STATES = 6, 4
CORE = "association_core."
SIDES = {"q": "state_pattern", "k": "stored_pattern", "v": "pattern_projection"}


def layout(input_size, hidden_size=None, output_size=None, pattern_size=None, num_heads=1, **options):
    """Their names and shapes for the arguments that both have."""
    hidden = hidden_size or input_size // num_heads
    pattern = pattern_size or hidden
    inputs = {"q": input_size, "k": options.get("stored_pattern_size"), "v": options.get("pattern_projection_size")}
    inputs = {letter: width or input_size for letter, width in inputs.items()}
    outputs = {"q": num_heads * hidden, "k": num_heads * hidden, "v": num_heads * pattern}
    projected = [letter for letter in "qkv" if not options.get(f"{SIDES[letter]}_as_static")]
    shapes = {}
    if set(inputs.values()) == {input_size} and pattern_size is None:
        shapes[CORE + "in_proj_weight"] = (sum(outputs[letter] for letter in projected), input_size)
    else:
        shapes |= {f"{CORE}{letter}_proj_weight": (outputs[letter], inputs[letter]) for letter in projected}
    shapes[CORE + "out_proj.weight"] = (output_size or input_size, outputs["v"])
    if options.get("input_bias", True):
        # The part of the projection is there even where that is static.
        shapes[CORE + "in_proj_bias"] = (sum(outputs[letter] for letter in {*projected, "v"}),)
        shapes[CORE + "out_proj.bias"] = (output_size or input_size,)
    if options.get("disable_out_projection"):
        shapes = {name: shape for name, shape in shapes.items() if "out_proj" not in name}
    for letter, side in SIDES.items():
        if options.get(f"normalize_{side}"):
            shapes |= {f"norm_{side}.{kind}": (inputs[letter],) for kind in ("weight", "bias")}
    return shapes


def drawn(shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(*shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}


def normal(rows):
    rows = rows - rows.mean(-1, keepdims=True)
    return rows / np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-5)


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def theirs(weights, stored, state, projection, options, *, zero=False, hidden=None):
    """One sample, head after head; ``hidden`` are stored patterns that are padding, ``zero`` adds their zero row."""
    weights = {name: tensor.numpy() for name, tensor in weights.items()}
    heads, start, cut = options.get("num_heads", 1), 0, {}
    count = sum(not options.get(f"{side}_as_static") for side in SIDES.values())
    for letter, rows in (("q", state), ("k", stored), ("v", projection)):
        rows, norm = rows.numpy(), f"norm_{SIDES[letter]}"
        if norm + ".weight" in weights:
            rows = normal(rows) * weights[norm + ".weight"] + weights[norm + ".bias"]
        if options.get(f"{SIDES[letter]}_as_static"):
            cut[letter] = [rows] * heads
            continue
        packed = weights.get(CORE + "in_proj_weight")
        if packed is None:
            weight = weights[f"{CORE}{letter}_proj_weight"]
        else:
            weight = packed[start : start + len(packed) // count]
        bias = weights.get(CORE + "in_proj_bias", np.zeros(10**4))[start : start + len(weight)]
        start += len(weight)
        cut[letter] = np.split(rows @ weight.T + bias, heads, -1)
    readouts = []
    for q, k, v in zip(cut["q"], cut["k"], cut["v"], strict=True):
        if options.get("normalize_hopfield_space"):
            q, k = normal(q), normal(k)
        gone = np.zeros(len(k), bool) if hidden is None else hidden.numpy()
        if zero:
            k, v = (np.concatenate([rows, np.zeros_like(rows[:1])]) for rows in (k, v))
            gone = np.append(gone, False)
        beta = options.get("scaling") or k.shape[-1] ** -0.5
        for _ in range(options.get("update_steps_max", 0)):
            q = softmax(np.where(gone, -np.inf, beta * q @ k.T)) @ k
        readouts.append(softmax(np.where(gone, -np.inf, beta * q @ k.T)) @ v)
    answer = np.concatenate(readouts, -1)
    if CORE + "out_proj.weight" in weights:
        answer = answer @ weights[CORE + "out_proj.weight"].T + weights.get(CORE + "out_proj.bias", 0.0)
    return torch.from_numpy(answer)


NORMS = {f"normalize_{side}": True for side in SIDES.values()}
OPTIONS = [
    {"input_size": 8},
    {"input_size": 8, "num_heads": 2, "scaling": 0.7, **NORMS},
    {"input_size": 8, "num_heads": 2, "hidden_size": 3, "output_size": 5, "update_steps_max": 3},
    {"input_size": 8, "num_heads": 2, "input_bias": False, "normalize_state_pattern": True},
    {"input_size": 8, "num_heads": 2, "disable_out_projection": True, "normalize_hopfield_space": True},
    {"input_size": 8, "num_heads": 2, "normalize_hopfield_space": True, "update_steps_max": 2, **NORMS},
    {"input_size": 8, "num_heads": 2, "pattern_size": 5},
    {
        "input_size": 8,
        "hidden_size": 4,
        "num_heads": 3,
        "stored_pattern_size": 7,
        "pattern_projection_size": 6,
        **NORMS,
    },
    {"input_size": 8, "hidden_size": 4, "num_heads": 2, "pattern_size": 3, "pattern_projection_size": 6},
    {"input_size": 8, "state_pattern_as_static": True, "scaling": 0.3},
    {"input_size": 8, "num_heads": 2, "hidden_size": 8, "stored_pattern_as_static": True},
    {"input_size": 8, "num_heads": 2, "hidden_size": 8, "pattern_projection_as_static": True},
    {"input_size": 8, "num_heads": 2, "hidden_size": 8, "pattern_size": 3, "stored_pattern_as_static": True},
]


def sample(layer, seed=1):
    generator = torch.Generator().manual_seed(seed)
    parts = ((layer.stored, STORED), (layer.state, STATES), (layer.projection, STORED))
    return [torch.randn(rows, part.width, generator=generator, dtype=torch.float64) for part, rows in parts]


def loaded(kind, weights, options):
    layer = kind(**{"update_steps_eps": 0.0, **options}).double()
    layer.load_state_dict(from_hflayers(weights, layer))
    return layer


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(map(str, options.items())))
def test_a_layer_with_their_weights_gives_their_answer(options):
    weights = drawn(layout(**options))
    layer = loaded(Hopfield, weights, options)
    stored, state, projection = sample(layer)
    torch.testing.assert_close(layer((stored, state, projection)), theirs(weights, stored, state, projection, options))
    hidden = torch.tensor([True, False, False, True, False, False])
    answer = layer((stored, state, projection), stored_pattern_padding_mask=hidden)
    torch.testing.assert_close(answer, theirs(weights, stored, state, projection, options, hidden=hidden))


@pytest.mark.parametrize("options", [OPTIONS[1], OPTIONS[7], {"input_size": 8, "state_pattern_as_static": True}])
def test_pooling_with_their_weights_gives_their_answer(options):
    weights = drawn(layout(**options))
    width = options["input_size"]
    queries = torch.randn(1, 3, width, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    wrapped = {f"hopfield.{name}": tensor for name, tensor in weights.items()}
    for table in (queries, queries.transpose(0, 1)):
        layer = loaded(HopfieldPooling, {**wrapped, "pooling_weights": table}, {"quantity": 3, **options})
        stored, _, projection = sample(layer)
        answer = theirs(weights, stored, queries[0], projection, options)
        torch.testing.assert_close(layer((stored, projection)), answer.flatten())


@pytest.mark.parametrize("options", [OPTIONS[1], OPTIONS[3], {"input_size": 8, "stored_pattern_as_static": True}])
@pytest.mark.parametrize("separate", [True, False])
def test_a_lookup_with_their_weights_gives_their_answer(options, separate):
    weights = drawn(layout(**options))
    lookup, targets = torch.randn(2, 1, 5, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    tables = {"lookup_weights": lookup, **({"target_weights": targets} if separate else {})}
    wrapped = {f"hopfield.{name}": tensor for name, tensor in weights.items()}
    layer = loaded(HopfieldLayer, {**wrapped, **tables}, {"quantity": 5, **options})
    state = sample(layer)[1]
    answer = theirs(weights, lookup[0], state, (targets if separate else lookup)[0], options)
    torch.testing.assert_close(layer(state), answer)


def with_zero(side, given, heads):
    return functional.pad(heads, (0, 0, 0, 1))


@pytest.mark.parametrize("options", OPTIONS[:9])
def test_a_zero_association_is_a_hook_on_either_side(options):
    """The guide's recipe: it holds with biases, norms, steps and masks."""
    weights = drawn(layout(**options))
    layer = loaded(Hopfield, weights, options)
    for side in (layer.stored, layer.projection):
        side.register_forward_hook(with_zero)
    stored, state, projection = sample(layer)
    answer = layer((stored, state, projection))
    torch.testing.assert_close(answer, theirs(weights, stored, state, projection, options, zero=True))
    hidden = torch.ones(STORED, dtype=torch.bool)
    hidden[2:4] = False
    answer = layer((stored, state, projection), stored_pattern_padding_mask=hidden)
    torch.testing.assert_close(answer, theirs(weights, stored, state, projection, options, zero=True, hidden=hidden))
    apart = torch.zeros(STATES, STORED, dtype=torch.float64).masked_fill(hidden, -torch.inf)
    torch.testing.assert_close(layer((stored, state, projection), association_mask=apart), answer)
    # Who sees nothing else sees the zero row: what is left is the output's bias.
    nothing = layer((stored, state, projection), stored_pattern_padding_mask=torch.ones_like(hidden))
    bias = getattr(layer.out_projection, "bias", None)
    torch.testing.assert_close(nothing, torch.zeros_like(nothing) if bias is None else bias.expand_as(nothing))


@pytest.mark.parametrize("similarity", ["dot", "adaptive"])
def test_patterns_that_a_hook_appends_are_shared_like_all_others(similarity):
    torch.manual_seed(0)
    layer = HopfieldLayer(8, quantity=STORED, num_heads=2, similarity=similarity)
    for side in (layer.stored, layer.projection):
        side.register_forward_hook(with_zero)
    state, hidden = torch.randn(3, STATES, 8), torch.rand(3, STORED) < 0.4
    for learning in (True, False):
        with torch.set_grad_enabled(learning):
            whole = layer(state, stored_pattern_padding_mask=hidden)
            one_by_one = [layer(x, stored_pattern_padding_mask=rows) for x, rows in zip(state, hidden, strict=True)]
            torch.testing.assert_close(whole, torch.stack(one_by_one))


def test_what_only_our_layer_has_is_kept():
    layer = Hopfield(8, num_heads=2, similarity="adaptive", scaling=3.0, learn_scaling=True)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    weights = drawn(layout(8, num_heads=2))
    converted = from_hflayers(weights, layer)
    assert converted.keys() == before.keys()
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert not name.startswith("association.") or torch.equal(converted[name], tensor)
    # Copies: what is learned later does not reach back.
    layer.load_state_dict(converted, assign=True)
    nn.init.zeros_(layer.stored.linear.weight)
    assert weights[CORE + "in_proj_weight"].all()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (CORE + "bias_k", torch.zeros(1, 1, 8), "state_dict has 'association_core.bias_k', which has no place in this"),
        (CORE + "p_norm_weight", torch.ones(4), "state_dict has 'association_core.p_norm_weight', which has no place"),
        ("norm_state_pattern.weight", torch.ones(8), "state_dict has 'norm_state_pattern.weight', which has no place"),
        ("hopfield.x", torch.ones(8), "state_dict has 'hopfield.x', which has no place in this Hopfield"),
        (
            CORE + "out_proj.bias",
            None,
            "must have 'association_core.out_proj.bias', which becomes 'out_projection.bias'",
        ),
        (
            CORE + "in_proj_weight",
            None,
            "must have 'association_core.q_proj_weight', which becomes 'state.linear.weight'",
        ),
        (
            CORE + "in_proj_weight",
            torch.ones(32, 8),
            r"in_proj_weight must have shape \(24, 8\) for this layer, got \(32",
        ),
        (CORE + "in_proj_bias", torch.ones(16), r"in_proj_bias must have shape \(24,\) for this layer, got \(16,\)"),
    ],
)
def test_what_has_no_place_is_named(key, value, message):
    weights = {**drawn(layout(8)), key: value}
    layer = Hopfield(8)
    with pytest.raises(ValueError, match=message):
        from_hflayers({name: tensor for name, tensor in weights.items() if tensor is not None}, layer)


def test_only_hopfield_layers_are_converted():
    with pytest.raises(TypeError, match="layer must be a Hopfield layer, got Linear"):
        from_hflayers({}, nn.Linear(2, 2))
