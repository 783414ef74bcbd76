import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ahop
from ahop.modulation import Kernel
from ahop.nn import AttentionPooling, BagNetwork, Hopfield, HopfieldLayer, HopfieldPooling, MeanPooling, RowEmbedding
from ahop.nn.inputs import check
from ahop.similarity import Dot, Likelihood, Manhattan

BATCH, STORED, STATES, WIDTH, HEADS = 3, 7, 5, 8, 2


def inputs():
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(BATCH, size, WIDTH, generator=generator) for size in (STORED, STATES, STORED))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 3}, "hidden_size must be given: 8 values are not divisible by 3 heads"),
        ({"num_heads": 0}, "num_heads must be an integer of at least 1, got 0"),
        ({"similarity": "guess"}, "unknown similarity 'guess'"),
        ({"separation": "guess"}, "unknown separation 'guess'"),
        ({"similarity": [Dot()] * 3, "num_heads": 2}, "one for each of 2 heads; got"),
        ({"similarity": Likelihood(3)}, "similarity must be for 8 dimensions, got one for 3"),
        ({"scaling": -1.0}, "scaling must be positive, one number or one for each of 1 heads; got -1.0"),
        ({"scaling": torch.ones(3)}, "scaling must be positive, one number or one for each of 1 heads"),
        ({"dropout": 1.0}, "dropout must be a number of at least 0 and below 1, got 1.0"),
        ({"modulation": Kernel(5)}, "modulation must be for 8 dimensions, the hidden_size; got one for 5"),
        ({"similarity": None}, "similarity must be a name, a Similarity, or one for each of 1 heads; got"),
        (
            {"pattern_projection_as_static": True, "pattern_projection_size": 20},
            "pattern_projection_size must be 8, the width in a head, for a static input; got 20",
        ),
        (
            {"output_size": 5, "disable_out_projection": True},
            "output_size must be None where there is no output projection, got 5",
        ),
        ({"update_steps_max": -1}, "update_steps_max must be an integer of at least 0, got -1"),
    ],
)
def test_arguments_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        Hopfield(WIDTH, **options)


NO_COUNTS = (0, -1, 2.0, 1.5, True, "4", float("nan"), [3], torch.ones(2))
SIZES = ["input_size", "hidden_size", "output_size", "pattern_size", "num_heads", "stored_pattern_size"]


@pytest.mark.parametrize("wrong", NO_COUNTS, ids=str)
def test_sizes_are_whole_numbers(wrong):
    for name in (*SIZES, "pattern_projection_size"):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got "):
            Hopfield(**{"input_size": WIDTH, name: wrong})
    for make, name in (
        (lambda size: HopfieldLayer(WIDTH, quantity=size), "quantity"),
        (lambda size: HopfieldPooling(WIDTH, quantity=size), "quantity"),
        (MeanPooling, "width"),
        (lambda size: AttentionPooling(WIDTH, heads=size), "heads"),
        (lambda size: BagNetwork(size, MeanPooling(64)), "input_size"),
        (lambda size: BagNetwork(4, MeanPooling(64), outputs=size), "outputs"),
        (lambda size: RowEmbedding(2, [3, size]), "categories"),
        (lambda size: RowEmbedding(2, width=size), "width"),
        (lambda size: RowEmbedding(2, frequencies=size), "frequencies"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got "):
            make(wrong)


def test_sizes_may_come_from_numpy():
    layer = Hopfield(
        np.int64(WIDTH), num_heads=np.int32(2), update_steps_max=np.int64(1), update_steps_eps=np.float32(1)
    )
    assert layer(inputs()).shape == (BATCH, STATES, WIDTH)
    assert type(layer.num_heads) is int


@pytest.mark.parametrize("wrong", [-1e-9, float("nan"), True, "0.1", None, torch.ones(2)], ids=str)
def test_thresholds_and_shares_are_numbers(wrong):
    with pytest.raises(ValueError, match="update_steps_eps must be a number in 0 to inf, got "):
        Hopfield(WIDTH, update_steps_eps=wrong)
    share = "dropout must be a number of at least 0 and below 1, got "
    for make in (
        lambda: Hopfield(WIDTH, dropout=wrong),
        lambda: BagNetwork(4, MeanPooling(64), dropout=wrong),
        lambda: RowEmbedding(2, dropout=wrong),
        lambda: RowEmbedding(2, column_dropout=wrong),
    ):
        with pytest.raises(ValueError, match=share):
            make()
    with pytest.raises(ValueError, match="update_steps_max must be an integer of at least 0, got "):
        Hopfield(WIDTH, update_steps_max="3" if wrong is None else wrong)


@pytest.mark.parametrize(
    "wrong",
    ["1", True, float("nan"), float("inf"), 1e39, 0.0, [1.0, -1.0], [[1.0, 1.0]], ["a"], [1.0, [2.0]], object()],
)
def test_scalings_are_positive_numbers(wrong):
    with pytest.raises(ValueError, match="scaling must be positive, one number or one for each of 2 heads; got "):
        Hopfield(WIDTH, num_heads=2, scaling=wrong)


@pytest.mark.parametrize("wrong", [nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True).exp()])
def test_a_scaling_with_a_gradient_is_not_cut_off_in_silence(wrong):
    with pytest.raises(ValueError, match="learn_scaling=True; got a tensor with a gradient, which would be lost"):
        Hopfield(WIDTH, num_heads=2, scaling=wrong)
    with pytest.raises(ValueError, match=r"scaling must be numbers, .* got a tensor on the meta device"):
        Hopfield(WIDTH, num_heads=2, scaling=torch.ones(2, device="meta"))
    given = torch.tensor([0.5, 2.0], dtype=torch.float64)
    for scaling in (given, given.numpy(), given.tolist(), tuple(given.tolist())):
        torch.testing.assert_close(Hopfield(WIDTH, num_heads=2, scaling=scaling).association.beta, given.float())


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({}, 8),
        ({"output_size": 5}, 5),
        ({"num_heads": 2, "pattern_size": 3}, 8),
        ({"num_heads": 2, "pattern_size": 3, "disable_out_projection": True}, 6),
        ({"num_heads": 2, "disable_out_projection": True}, 8),
        ({"pattern_projection_as_static": True, "pattern_size": 8, "disable_out_projection": True}, 8),
        ({"input_size": None}, None),
        ({"input_size": None, "pattern_size": 8, "num_heads": 3}, 24),
    ],
)
def test_output_size_is_the_width_of_the_output(options, width):
    layer = Hopfield(**{"input_size": WIDTH, **options})
    assert layer.output_size == width
    assert layer(inputs()).shape[-1] == (WIDTH if width is None else width)


def test_layers_that_learn_a_set_have_an_output_size():
    lookup, pooling = HopfieldLayer(WIDTH, output_size=3), HopfieldPooling(WIDTH, output_size=3, quantity=4)
    assert (lookup.output_size, pooling.output_size, pooling.pooled_size) == (3, 3, 12)


@pytest.mark.parametrize("bias", [True, False])
def test_input_bias_governs_every_bias(bias):
    names = [name for name, _ in Hopfield(WIDTH, input_bias=bias).named_parameters() if name.endswith("bias")]
    assert len(names) == (4 if bias else 0)


def test_what_needs_a_size_says_so():
    with pytest.raises(ValueError, match="'adaptive' needs a number of dimensions"):
        Hopfield(similarity="adaptive")
    with pytest.raises(ValueError, match="input_size must be given for inputs to be normalised"):
        Hopfield(normalize_state_pattern=True)
    with pytest.raises(ValueError, match="quantity must be an integer of at least 1, got 0"):
        HopfieldPooling(WIDTH, quantity=0)
    with pytest.raises(TypeError, match="modulation must be a Modulation or None, got Linear"):
        Hopfield(WIDTH, modulation=nn.Linear(8, 8))
    Hopfield(similarity=Manhattan())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((torch.ones(2, 3, 8), torch.ones(2, 3, 8)), "input must be a tensor or .stored, state, projection., got 2"),
        ((torch.ones(2, 3, 7),) * 3, r"stored patterns must have shape \(B, n, 8\) or \(n, 8\); got \(2, 3, 7\)"),
        ((None, torch.ones(2, 3, 8), torch.ones(2, 3, 8)), "stored patterns must be a tensor .*; got NoneType"),
        ((torch.ones(2, 3, 8), torch.ones(3, 3, 8), torch.ones(2, 3, 8)), "inputs must have one batch size"),
        ((torch.ones(2, 3, 8), torch.ones(2, 3, 8), torch.ones(2, 4, 8)), "a projection for each stored pattern"),
        ((torch.ones(2, 0, 8), torch.ones(2, 3, 8), torch.ones(2, 0, 8)), "stored patterns must be at least one"),
    ],
)
def test_inputs_that_cannot_be(given, message):
    with pytest.raises(ValueError, match=message):
        Hopfield(WIDTH)(given)


def test_masks_that_cannot_be():
    layer = Hopfield(WIDTH)
    with pytest.raises(ValueError, match=r"stored_pattern_padding_mask must be boolean .* of shape \(3, 7\); got"):
        layer(inputs(), stored_pattern_padding_mask=torch.zeros(3, 6, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"association_mask must have shape \(5, 7\) or .*; got \(4, 7\)"):
        layer(inputs(), association_mask=torch.zeros(4, 7, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"association_mask must be boolean or numbers to add, got torch.int64"):
        layer(inputs(), association_mask=torch.zeros(5, 7, dtype=torch.long))
    with pytest.raises(TypeError, match="association_mask must be a tensor or None, got list"):
        layer(inputs(), association_mask=[[True]])
    with pytest.raises(ValueError, match="input must be a tensor of state patterns, got 3 tensors"):
        HopfieldLayer(WIDTH)(inputs())
    with pytest.raises(ValueError, match=r"input must be a tensor or \(stored, projection\), got 3 tensors"):
        HopfieldPooling(WIDTH)(inputs())


def test_a_side_that_is_stored_and_asks_is_hidden_as_stored_alone():
    rows = inputs()[0]
    hidden = torch.zeros(BATCH, STORED, dtype=torch.bool)
    hidden[:, 2] = True
    checked = check((rows, rows, rows), (WIDTH,) * 3, 1, hidden, None, single=False)
    stored, state, projection = checked.sides
    assert not stored[:, 2].any()
    assert not projection[:, 2].any()
    torch.testing.assert_close(state, rows)


def test_inputs_of_a_layer_know_no_layer():
    # Read from the file: what is imported for types alone is a circle as well.
    tree = ast.parse(Path(ahop.nn.inputs.__file__).read_text())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "ahop.nn.hopfield" not in imported


@pytest.mark.parametrize("kind", [Hopfield, HopfieldLayer, HopfieldPooling])
def test_a_layer_checks_projects_and_settles_in_that_order(kind, monkeypatch):
    order = []
    for step in ("_check", "_project", "_settle"):
        plain = getattr(Hopfield, step)
        monkeypatch.setattr(
            Hopfield, step, lambda *given, _step=step, _plain=plain: order.append(_step) or _plain(*given)
        )
    layer, rows = kind(WIDTH), torch.randn(BATCH, STORED, WIDTH)
    layer(rows)
    layer.get_association_matrix(rows)
    assert order == ["_check", "_project", "_settle"] * 2
    layer.energy(rows)
    assert order[6:] == ["_check", "_project"]
