"""A family that registers itself takes part in every fit, with nothing else to edit."""

import pytest
import torch
from torch import nn

import ahop
from ahop import BayesianHopfield
from ahop.similarity import Density, Similarity
from ahop.similarity.codes import NoCodesError
from ahop.similarity.families import screening
from ahop.similarity.families.family import FAMILIES, Family, known_families, register
from ahop.similarity.families.recipe import Recipe
from ahop.similarity.families.training import TrainingData


class Reversed(Density):
    """Queries are the sizes of their patterns' values in reverse order, with noise."""

    def __init__(self, dim: int, zero: float = 0.0):
        super().__init__()
        self.dim, self.zero = dim, zero
        self.log_sigma = nn.Parameter(torch.zeros(()))

    def forward(self, patterns, queries, observed=None):
        squares = torch.cdist((queries - self.zero).flip(-1), (patterns - self.zero).abs()).square()
        return -squares * (-2 * self.log_sigma).exp() / 2 - self.dim * self.log_sigma

    def stranger(self, patterns, queries, observed=None):
        return self(patterns.mean(0, keepdim=True), queries, observed).squeeze(1) - self.dim

    def describe(self, columns=None):
        return "Signs are lost, and dimensions in reverse order."

    def rescaled(self, unit, shift):
        new = Reversed(self.dim, unit * self.zero + shift).to(self.log_sigma)
        with torch.no_grad():
            new.log_sigma.copy_(self.log_sigma + torch.tensor(unit).log())
        return new


@pytest.fixture
def mirrors():
    """A family of a user's own, which is gone after the test."""

    @register
    class Mirrors(Family):
        name = "a mirror"
        models = (Reversed,)
        complexity = 30

        def applies(self, data, seed):
            return data.same_width

        def fit(self, data, seed):
            sizes, mirrored = (data.patterns - data.zero).abs(), (data.queries - data.zero).flip(1)
            nearest = torch.cdist(mirrored, sizes).argmin(1)
            origins = torch.where(data.all_origins < 0, nearest, data.all_origins)
            model = Reversed(data.patterns.shape[1], data.zero).to(data.patterns)
            spread = (mirrored - sizes[origins]).square().mean().sqrt()
            model.log_sigma.copy_(spread.clamp_min(1e-3).log())
            return model

    yield Mirrors
    del FAMILIES["a mirror"]
    Reversed.learner = None


def mirrored(count):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(60, 10, generator=generator)
    origins = torch.randint(60, (count,), generator=generator)
    return patterns, patterns[origins].abs().flip(1) + 0.2 * torch.randn(count, 10, generator=generator), origins


@pytest.mark.parametrize(
    "labels", ["none", *(pytest.param(labels, marks=pytest.mark.slow) for labels in ("all", "some"))]
)
def test_a_family_of_a_users_own_takes_part_in_the_choice(mirrors, labels, tmp_path):
    patterns, queries, origins = mirrored(400)
    known = {"all": origins[:200], "none": None, "some": torch.where(torch.arange(200) < 30, origins[:200], -1)}[labels]
    memory = BayesianHopfield(patterns).fit(queries[:200], known)
    assert memory.report.chosen == "a mirror" and isinstance(memory.similarity.model, Reversed)
    found = memory.recall(queries[200:], reject=0.05).indices.squeeze(1)
    assert float((found == origins[200:]).double().mean()) > 0.85
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(queries), memory.scores(queries))
    assert memory.similarity.describe() == "Signs are lost, and dimensions in reverse order."
    with pytest.raises(NoCodesError, match="Reversed has no codes"):
        memory.as_inner_product()


def test_its_likelihood_learns_by_itself(mirrors):
    patterns, queries, origins = mirrored(200)
    model = Reversed(10)
    assert model.learns
    model.fit(patterns, queries, origins)
    assert model.log_sigma.exp().item() == pytest.approx(0.2, abs=0.03)


def test_without_it_nothing_of_it_is_left():
    assert "a mirror" not in FAMILIES and not Reversed(3).learns


def test_a_name_is_taken_once(mirrors):
    class Other(mirrors):
        pass

    with pytest.raises(ValueError, match="family 'a mirror' is known already"):
        register(Other)
    assert type(FAMILIES["a mirror"]) is mirrors


CELL = """
from ahop.similarity import Gain
from ahop.similarity.families.family import Family, register

class Notes(Gain):
    pass

@register
class FromACell(Family):
    name = "notes"
    models = (Notes,)

    def applies(self, data, seed):
        return False

    def fit(self, data, seed):
        return Notes(data.patterns.shape[1])
"""


def test_a_cell_of_a_notebook_can_be_run_twice(monkeypatch):
    """With its likelihood, which the newer family learns."""
    monkeypatch.setattr(Similarity, "members", dict(Similarity.members))
    order, cell = [*FAMILIES, "notes"], {"__name__": "__main__"}
    try:
        for _ in range(2):
            exec(CELL, cell)
            assert type(FAMILIES["notes"]) is cell["FromACell"] and list(FAMILIES) == order
            assert cell["Notes"].learner is FAMILIES["notes"]
    finally:
        FAMILIES.pop("notes", None)


def test_a_stream_goes_on_from_a_model_whose_family_can_follow(mirrors, monkeypatch):
    patterns, queries, origins = mirrored(40)
    monkeypatch.setattr(mirrors, "follow", lambda self, model, data: self.fit(data, seed=0))
    memory = BayesianHopfield(patterns, similarity=Reversed(10)).partial_fit(queries, origins)
    model = memory.similarity.model
    assert isinstance(model, Reversed) and model.log_sigma.exp().item() == pytest.approx(0.2, abs=0.03)
    assert memory.report.tried == ()


def test_a_family_says_whether_it_can_be_meant_by_a_number_of_hidden_causes(mirrors, monkeypatch):
    assert [family.name for family in known_families(causes=0)] == ["single dimensions"]
    assert [family.rank for family in known_families(causes=2)] == [2]
    monkeypatch.setattr(mirrors, "of_causes", lambda self, count: None if count else self)
    assert FAMILIES["a mirror"] in known_families(causes=0)
    assert FAMILIES["a mirror"] not in known_families(causes=2)


def test_a_plain_family_of_a_users_own_is_screened_in_every_view():
    class Mirror(Recipe):
        name = "reversed"

        def fit(self, pairs):
            gaps = pairs.queries.flip(1) - pairs.origins.abs()
            model = Reversed(pairs.origins.shape[1]).to(gaps)
            model.log_sigma.data.copy_(gaps.square().mean().sqrt().log())
            return model

    class Mirrors(Family):
        name = "plain mirrors"
        plain = True

        def applies(self, data, seed):
            return True

        def fit(self, data, seed):
            raise NotImplementedError

        def recipes(self, data, view):
            yield Mirror()

    data = TrainingData(*mirrored(60))
    with torch.no_grad():
        first, *others = screening.screened(data, [Mirrors()], seed=0)
    assert first.view.plain and first.held_out.accuracy > 0.85
    assert others and all(isinstance(one.recipe, Mirror) and not one.view.plain for one in others)
