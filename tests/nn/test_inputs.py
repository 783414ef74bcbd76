import pytest
import torch
from torch import nn

from ahop.modulation import Kernel
from ahop.nn import Hopfield, HopfieldLayer, HopfieldPooling
from ahop.similarity import Dot, Likelihood, Manhattan

BATCH, STORED, STATES, WIDTH, HEADS = 3, 7, 5, 8, 2


def inputs():
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(BATCH, size, WIDTH, generator=generator) for size in (STORED, STATES, STORED))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 3}, "hidden_size must be given: 8 values do not divide by 3 heads"),
        ({"num_heads": 0}, "num_heads must be at least 1, got 0"),
        ({"similarity": "guess"}, "unknown similarity 'guess'"),
        ({"separation": "guess"}, "unknown separation 'guess'"),
        ({"similarity": [Dot()] * 3, "num_heads": 2}, "one for each of 2 heads; got"),
        ({"similarity": Likelihood(3)}, "similarity was made for 3 dimensions, but the Hopfield space has 8"),
        ({"scaling": -1.0}, "scaling must be positive, one number or one for each of 1 heads; got -1.0"),
        ({"scaling": torch.ones(3)}, "scaling must be positive, one number or one for each of 1 heads"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"modulation": Kernel(5)}, "modulation was made for 5 dimensions, but hidden_size is 8"),
        ({"similarity": None}, "similarity must be a name, a Similarity, or one for each of 1 heads; got"),
        (
            {"pattern_projection_as_static": True, "pattern_projection_size": 20},
            "pattern_projection_size must be 8, the width in a head, for a static input; got 20",
        ),
        (
            {"output_size": 5, "disable_out_projection": True},
            "output_size must be None where there is no output projection, got 5",
        ),
        ({"update_steps_max": -1}, "update_steps_max must be at least 0, or None; got -1"),
    ],
)
def test_arguments_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        Hopfield(WIDTH, **options)


def test_what_needs_a_size_says_so():
    with pytest.raises(ValueError, match="hidden_size must be given for a similarity that learns"):
        Hopfield(similarity="adaptive")
    with pytest.raises(ValueError, match="input_size must be given for inputs to be normalised"):
        Hopfield(normalize_state_pattern=True)
    with pytest.raises(ValueError, match="quantity must be at least 1, got 0"):
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
