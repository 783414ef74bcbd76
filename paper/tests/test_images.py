import json

import joblib
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from typer.testing import CliRunner

from ahop import datasets
from ahop.datasets import Photos
from ahop_paper import images, vision
from ahop_paper.commands import app
from ahop_paper.muon import Muon, orthogonal


def few(name, count=24):
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 3
    pixels = torch.randint(0, 80, (count, 32, 32, 3), dtype=torch.uint8, generator=draw)
    # One colour a class.
    pixels[torch.arange(count), :, :, labels] += 150
    return Photos(pixels, labels, pixels, labels, ["red", "green", "blue"])


def invoke(*arguments):
    return CliRunner().invoke(app, ["images", *arguments], env={"COLUMNS": "160"})


@pytest.fixture
def small(monkeypatch):
    """Three blocks' worth of width less, so that a test takes a second."""
    monkeypatch.setattr(datasets, "load", few)
    monkeypatch.setattr(
        vision.ImageTransformer.__init__,
        "__defaults__",
        (8, 24, 2, 2, 2),  # patch, width, depth, heads, ratio
    )


@pytest.mark.slow
def test_the_table_of_images(small, tmp_path):
    out = tmp_path / "images.json"
    result = invoke("--quick", "--models", ",".join(vision.MODELS), "--out", str(out))
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert [row["model"] for row in rows] == list(vision.MODELS)
    again = invoke("--quick", "--models", "m-hop", "--out", str(out))
    assert again.exit_code == 0, again.output
    assert len(json.loads(out.read_text())["done"]) == len(vision.MODELS)


def test_figures_stand_in_the_order_of_seeds_whoever_ends_first():
    done = [{"model": "m-hop", "seed": seed, "accuracy": seed / 10, "parameters": 1} for seed in (2, 0, 1)]
    (row,) = images.summary(images.Config(models=("m-hop",)), {}, done)["rows"]
    assert row["accuracy"]["runs"] == [0.0, 0.1, 0.2]


def test_the_paper_stands_beside_its_protocol(small):
    result = invoke("--quick", "--protocol", "published")
    assert result.exit_code == 0, result.output
    assert ".564" in result.output
    assert "its weight is 1 whatever the similarity" in " ".join(result.output.split())


@pytest.mark.parametrize("model", vision.MODELS)
def test_one_token_leaves_the_similarity_nothing_to_do(model):
    torch.manual_seed(0)
    network = vision.PublishedNetwork(model, size=32, classes=10)
    assert network.tokens == 1
    pictures = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    layer = network.hopfield
    tokens = network.embedding(vision.patches(pictures, 32))
    torch.testing.assert_close(
        network.hopfield.get_association_matrix((tokens, network.state, tokens)), torch.ones(3, 1, 1, 1)
    )
    plain = network.head(layer.out_projection(layer.projection.linear(tokens)).squeeze(1))
    torch.testing.assert_close(network(pictures), plain)
    network(pictures).square().sum().backward()
    idle = [layer.stored.linear.weight, network.state, *layer.association.parameters()]
    assert all(p.grad is None or not bool(p.grad.abs().max() > 1e-6) for p in idle)


def test_larger_images_have_several_tokens():
    assert vision.PublishedNetwork("m-hop", size=64, classes=10).tokens == 4


def test_the_transformer_is_as_large_as_it_says():
    network = vision.ImageTransformer("m-hop", size=32, classes=10)
    assert network.tokens == 64
    assert sum(p.numel() for p in network.parameters() if p.requires_grad) == 2_249_674


def test_patches_are_squares_of_the_image():
    picture = torch.arange(3 * 8 * 8.0).reshape(1, 3, 8, 8)
    rows = vision.patches(picture, 4)
    assert rows.shape == (1, 4, 48)
    torch.testing.assert_close(rows[0, 1], picture[0, :, :4, 4:].flatten())


@pytest.mark.parametrize("protocol", images.PROTOCOLS)
def test_training_learns(small, protocol):
    config = images.Config(protocol=protocol, epochs=12)
    torch.manual_seed(0)
    found = images.train("m-hop", 0, config)
    assert found["accuracy"] > 0.9


def test_training_does_not_look_at_the_test_images(small, monkeypatch):
    photos, losses = few("cifar10"), set()
    for some in (photos, photos._replace(test=255 - photos.test, test_labels=photos.test_labels.flip(0))):
        monkeypatch.setattr(datasets, "load", lambda name, some=some: some)
        losses.add(images.train("m-hop", 0, images.Config(epochs=1))["loss"])
    assert len(losses) == 1


@pytest.mark.slow
def test_workers_share_the_networks(small, threads, tmp_path):
    # Threads for processes, which would know nothing of the few images here.
    out = tmp_path / "images.json"
    with joblib.parallel_config(backend="threading"):
        result = invoke("--quick", "--models", "m-hop,k-hop,a-hop", "--workers", "2", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert {one["model"] for one in json.loads(out.read_text())["done"]} == {"m-hop", "k-hop", "a-hop"}


def test_the_kernel_moves_patterns_apart(small):
    torch.manual_seed(0)
    network = vision.ImageTransformer("k-hop", size=32, classes=3)
    pictures = vision.prepare(few("").train, torch.tensor(0.5), torch.tensor(0.25))
    before = {name: value.clone() for name, value in network.named_parameters()}
    loss = float(network.separation_loss(pictures).detach())
    images.part_patterns(network, pictures, steps=20)
    assert float(network.separation_loss(pictures).detach()) < loss
    changed = {name for name, value in network.named_parameters() if not torch.equal(value, before[name])}
    assert changed == {name for name in before if name.endswith("phi")}


def test_held_out_images_are_training_images():
    config = images.Config(holdout=6)
    part = images.part(few(""), config)
    assert (len(part.train), len(part.test)) == (18, 6)
    every = torch.cat([part.train, part.test]).flatten(1).float().sum(1).sort().values
    torch.testing.assert_close(every, few("").train.flatten(1).float().sum(1).sort().values)
    with pytest.raises(ValueError, match="holdout must be less than 24, the number of training images; got 24"):
        images.part(few(""), images.Config(holdout=24))


def test_varied_images_keep_their_size_and_labels_their_sum():
    torch.manual_seed(0)
    pictures = vision.prepare(few("").train, torch.tensor(0.5), torch.tensor(0.25))
    targets = torch.nn.functional.one_hot(few("").train_labels, 3).float()
    shares = set()
    for _ in range(8):
        mixed, labels = vision.blend(vision.vary(pictures), targets)
        assert mixed.shape == pictures.shape
        assert mixed.isfinite().all()
        torch.testing.assert_close(labels.sum(-1), torch.ones(24))
        shares.add(round(float(labels[0].max()), 3))
    assert len(shares) > 1


def test_the_learning_rate_rises_and_falls():
    recipe = images.RECIPES["transformer"]
    rates = [images.schedule(done / 100, recipe) for done in range(100)]
    assert rates[0] < rates[4]
    assert max(rates) <= recipe.rate
    assert rates[-1] < 0.01 * recipe.rate


def test_orthogonal_matrices_have_equal_singular_values():
    matrices = torch.randn(3, 8, 5, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonal(matrices, steps=8))
    assert float(values.min()) > 0.6
    assert float(values.max()) < 1.3


def test_muon_descends():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(4, 4))
    rate = torch.tensor(0.2)
    optimizer = Muon([weight], rate, decay=0.0)
    losses = []
    for _ in range(60):
        loss = (weight - torch.eye(4)).square().sum()
        weight.grad = None
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "stl10"], "data must be one of 'cifar10'"),
        (["--protocol", "own"], "protocol must be one of 'transformer'"),
        (["--models", "z-hop"], "models must be one of 'm-hop'"),
        (["--epochs", "-1"], "epochs must be at least 0, got -1"),
        (["--runs", "0"], "runs must be at least 1, got 0"),
        (["--device", "toaster"], "device must be one that PyTorch can use here, got 'toaster'"),
        (["--out", "table.txt"], "must be a file that ends in .json"),
    ],
)
def test_options_that_cannot_be(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_muon_takes_the_steps_of_pytorchs_own():
    torch.manual_seed(0)
    ours = torch.nn.Parameter(torch.randn(6, 4))
    theirs = torch.nn.Parameter(ours.detach().clone())
    options = {"momentum": 0.95, "adjust_lr_fn": "match_rms_adamw", "nesterov": True}
    optimizers = (
        Muon([ours], torch.tensor(0.1), decay=0.05),
        torch.optim.Muon([theirs], lr=0.1, weight_decay=0.05, **options),
    )
    for seed in range(3):
        ours.grad = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))
        theirs.grad = ours.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    # PyTorch works in bfloat16, which has three figures.
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)


def test_muon_of_pytorch_takes_its_rate_as_a_number_which_no_cuda_graph_can_record():
    """The day it takes a tensor, ours can go."""
    with FakeTensorMode():
        weight = torch.nn.Parameter(torch.zeros(3, 3))
        weight.grad = torch.ones(3, 3)
        Muon([weight], torch.tensor(0.1), decay=0.0).step()
        with pytest.raises(DataDependentOutputException):
            torch.optim.Muon([weight], lr=torch.ones(()), weight_decay=0.0).step()
