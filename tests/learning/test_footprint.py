from itertools import product
from types import SimpleNamespace

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from tests.guards import apart

import ahop
from ahop.learning import features, footprint, gradient
from ahop.learning.features import Features
from ahop.learning.holdout import holdout_split
from ahop.metrics import first_choice_accuracy, retrieval_accuracy
from ahop.variants import Biased, Mixed, Noisy


def uniform(*shape, seed=0, dtype=torch.float32):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype) * 2 - 1


@pytest.fixture(scope="module")
def problem():
    patterns = uniform(200, 24)
    world = Mixed(0.4, 0.3, 0.3)
    return patterns, world.sample(patterns, 256), world.sample(patterns, 400)


def test_fitting_beats_fixed_similarities_and_the_oracle_beats_fitting(problem):
    patterns, seen, test = problem
    learned = retrieval_accuracy(ahop.AdaptiveHopfield(patterns).fit(*seen), test)
    assert learned > retrieval_accuracy(ahop.ModernHopfield(patterns), test) + 0.1
    assert learned > retrieval_accuracy(ahop.UniversalHopfield(patterns), test) + 0.1
    assert learned < retrieval_accuracy(ahop.Oracle(patterns, Mixed(0.4, 0.3, 0.3)), test)


@pytest.mark.parametrize("sort", [True, False])
def test_the_convex_optimum_is_the_same_from_anywhere(sort, monkeypatch):
    patterns = uniform(60, 12)
    seen, weights = Mixed(0.4, 0.3, 0.3).sample(patterns, 100), []
    for start in (0.0, 1.0, -3.0):
        monkeypatch.setattr(Features, "start", lambda table, at=start: table.patterns.new_full((table.width,), at))
        memory = ahop.AdaptiveHopfield(patterns.double(), sort=sort)
        memory.fit(*seen, smoothness=1e-2, steps=2000)
        weights.append(memory.similarity.order_weights())
        assert memory.report.converged
    for other in weights[1:]:
        torch.testing.assert_close(other, weights[0], atol=0.05, rtol=0.02)


@pytest.mark.parametrize("dim", [5, 100])
@pytest.mark.parametrize("negatives", [0, 4])
def test_the_gradient_of_the_objective_is_right(dim, negatives):
    patterns = uniform(9, dim, dtype=torch.float64)
    queries, origins = Noisy(0.3).sample(patterns, 6)
    similarity = ahop.similarity.Adaptive(dim).double()
    table = Features(similarity, patterns, queries, origins, None, negatives, 64, 0)
    u = uniform(2 * min(dim, 64), seed=1, dtype=torch.float64).requires_grad_()

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, u):
            loss, gradient = table.loss_and_gradient(u, smoothness=0.1)
            ctx.save_for_backward(gradient)
            return loss

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    torch.autograd.gradcheck(Loss.apply, u)


def test_the_objective_is_the_retrieval_loss(problem):
    patterns, seen, _ = problem
    memory = ahop.AdaptiveHopfield(patterns).fit(*seen, smoothness=0.0)
    loss = gradient.retrieval_loss(memory.scores(seen.queries), seen.origins)
    assert memory.report.loss == pytest.approx(loss.item(), abs=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_adam_goes_the_papers_way_to_a_loss_no_better_than_the_optimum(problem):
    patterns, seen, _ = problem
    convex = ahop.AdaptiveHopfield(patterns).fit(*seen, smoothness=0.0).report
    adam = ahop.AdaptiveHopfield(patterns).fit(*seen, solver="adam").report
    assert (adam.solver, adam.iterations) == ("adam", 200)
    assert convex.loss - 1e-3 <= adam.loss < 2 * convex.loss


@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_adam_moves_a_learnable_matrix(problem):
    patterns, seen, _ = problem
    memory = ahop.AdaptiveHopfield(patterns, learn_matrix=True)
    before = memory.similarity.matrix_values.detach().clone()
    memory.fit(*seen, solver="adam", steps=5, rate=0.01)
    assert not torch.equal(memory.similarity.matrix_values, before)


def test_smoothness_is_judged_by_samples_that_were_not_learned_from(monkeypatch):
    learned, judged = [], []
    # The rougher the better, to the end.
    losses = iter(torch.arange(10.0).flip(0))
    table = SimpleNamespace(
        samples=50,
        even_shares=lambda: torch.full((50,), 1 / 50),
        loss_and_gradient=lambda u, shares: (judged.append(shares) or next(losses), None),
    )
    monkeypatch.setattr(
        footprint, "_newton", lambda table, u, smoothness, shares, *rest: (learned.append(shares) or u, 0)
    )
    levels = footprint._SMOOTHNESS
    assert footprint._choose_smoothness(table, torch.zeros(3), levels, 10, seed=0)[0] == min(levels)
    assert len(learned) == len(judged) == len(footprint._SMOOTHNESS)
    for ours, theirs in zip(learned, judged, strict=True):
        apart(*(set(shares.nonzero().flatten().tolist()) for shares in (ours, theirs)))
        assert int((theirs > 0).sum()) == 10 and float(ours.sum()) == pytest.approx(1) == pytest.approx(
            float(theirs.sum())
        )


@pytest.mark.parametrize(("count", "folds"), [(5, 5), (52, 5), (256, 1)])
def test_a_fit_is_compared_with_its_start_on_samples_that_it_has_not_seen(count, folds, monkeypatch):
    learned, judged = [], []
    table = SimpleNamespace(
        samples=count,
        even_shares=lambda: torch.full((count,), 1 / count),
        losses=lambda u, some: judged.append((u, some)) or u.sum().expand(len(some)),
    )

    def newton(table, start, smoothness, shares, *rest):
        learned.append(shares)
        return torch.full((3,), float(len(learned))), 0

    monkeypatch.setattr(footprint, "_newton", newton)
    gains = footprint._gains(table, torch.zeros(3), torch.zeros(3), 1e-2, 10, seed=0)
    assert len(learned) == folds - 1 and len(gains) == (count if folds > 1 else count // 5)
    held_out = [some for u, some in judged[1::2]]
    assert torch.equal(held_out[0], holdout_split(count, 0)[1])
    assert len(torch.cat(held_out).unique()) == len(gains)
    for shares, some in zip(learned, held_out[1:], strict=True):
        apart(set(shares.nonzero().flatten().tolist()), set(some.tolist()))


@pytest.mark.parametrize("options", [{}, {"isolated": True}, {"sort": False}, {"bases": ["manhattan"]}])
@pytest.mark.parametrize("count", [1, 4, 16])
def test_however_few_samples_a_fit_is_not_worse_than_none(options, count):
    patterns = torch.randn(30, 12, generator=torch.Generator().manual_seed(count))
    seen, test = (Noisy(1.0, seed=seed).sample(patterns, size) for seed, size in ((0, count), (1, 300)))
    memory = ahop.AdaptiveHopfield(patterns, **options)
    before = first_choice_accuracy(memory, test)
    assert memory.fit(*seen).report.converged
    assert first_choice_accuracy(memory, test) >= before - 0.02


def test_each_of_some_losses_is_a_part_of_the_mean(problem):
    patterns, seen, _ = problem
    similarity, budgets = ahop.similarity.Adaptive(24), [2**28, 2**20]
    u = uniform(48, seed=1)
    for negatives, budget in product([0, 8], budgets):
        with ahop.memory_budget(budget):
            table = Features(similarity, patterns, *seen, None, negatives, 64, 0)
            each = table.losses(u, torch.arange(256).flip(0))
            one = torch.nn.functional.one_hot(torch.tensor(255), 256).to(u)
            assert each.mean() == pytest.approx(table.loss_and_gradient(u)[0].item(), rel=1e-4)
            assert each[0] == pytest.approx(table.loss_and_gradient(u, shares=one)[0].item(), rel=1e-4)


@pytest.mark.slow
def test_streaming_the_features_changes_nothing(problem):
    patterns, seen, _ = problem
    kept = ahop.AdaptiveHopfield(patterns.double()).fit(*seen, smoothness=1e-2, negatives=0, steps=30)
    with ahop.memory_budget(2**20):
        streamed = ahop.AdaptiveHopfield(patterns.double()).fit(*seen, smoothness=1e-2, negatives=0, steps=30)
    torch.testing.assert_close(streamed.similarity.weight, kept.similarity.weight, atol=5e-3, rtol=5e-3)


def test_a_few_negatives_stand_for_all(problem):
    patterns, seen, test = problem
    whole = retrieval_accuracy(ahop.AdaptiveHopfield(patterns).fit(*seen), test)
    part = retrieval_accuracy(ahop.AdaptiveHopfield(patterns).fit(*seen, negatives=32), test)
    assert part == pytest.approx(whole, abs=0.06)


def test_many_dimensions_are_fitted_on_knots():
    patterns = uniform(60, 200)
    world = Mixed(0.8, 0.3, 0.0)
    memory = ahop.AdaptiveHopfield(patterns).fit(*world.sample(patterns, 100))
    u = memory.similarity.order_weights().detach()
    assert len((u.diff().diff().abs() > 1e-3 * u.abs().max()).nonzero()) <= 2 * 2 * 64
    test = world.sample(patterns, 300)
    assert retrieval_accuracy(memory, test) > retrieval_accuracy(ahop.UniversalHopfield(patterns), test)


def test_a_fit_that_was_cut_short_says_so(problem):
    patterns, seen, _ = problem
    with pytest.warns(ConvergenceWarning, match="still improving after 5 iterations of convex"):
        assert not ahop.AdaptiveHopfield(patterns).fit(*seen, smoothness=1e-3, steps=5).report.converged
    assert ahop.AdaptiveHopfield(patterns).fit(*seen, smoothness=1e-2, steps=500).report.converged


def test_fitting_repeats_bit_for_bit(problem):
    patterns, seen, _ = problem
    first, second = (ahop.AdaptiveHopfield(patterns).fit(*seen, negatives=16, seed=3) for _ in range(2))
    assert torch.equal(first.similarity.weight, second.similarity.weight)
    assert first.report == second.report


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_patterns_corrupted_each_in_their_own_way_gain_from_their_own_weights():
    # Noise hits one half of the patterns in the first dimensions, the other half in the last.
    patterns = uniform(8, 16)
    first = torch.cat([torch.full((8,), 3.0), torch.full((8,), 0.3)])
    generator = torch.Generator().manual_seed(0)

    def draw(n):
        origins = torch.randint(8, (n,), generator=generator)
        sigma = torch.where((origins < 4)[:, None], first, first.flip(0))
        return ahop.variants.Samples(patterns[origins] + sigma * torch.randn(n, 16, generator=generator), origins)

    seen, test = draw(800), draw(1000)
    accuracy = {
        isolated: retrieval_accuracy(
            ahop.AdaptiveHopfield(patterns, bases=["distance"], sort=False, isolated=isolated).fit(*seen), test
        )
        for isolated in (False, True)
    }
    assert accuracy[True] > accuracy[False] + 0.05


@pytest.mark.parametrize("count", [1, 3])
def test_very_few_samples_and_patterns_are_enough_to_run(count):
    patterns = uniform(count, 5)
    memory = ahop.AdaptiveHopfield(patterns).fit(*Biased(0.1).sample(patterns, 3))
    assert torch.isfinite(memory.scores(patterns)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "newton"}, "solver must be one of 'convex', 'adam', got 'newton'"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"smoothness": -1.0}, "smoothness must not be negative, got -1.0"),
        ({"negatives": -1}, "negatives must be at least 1, 0 for all patterns, or None; got -1"),
    ],
)
def test_bad_arguments_are_named(problem, options, message):
    patterns, seen, _ = problem
    with pytest.raises(ValueError, match=message):
        ahop.AdaptiveHopfield(patterns).fit(*seen, **options)


@pytest.mark.parametrize("options", [{}, {"solver": "adam", "steps": 5}, {"negatives": 8}])
@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_memories_in_half_precision_can_be_fitted(problem, options, isolated):
    patterns, seen, _ = problem
    memory = ahop.AdaptiveHopfield(patterns.bfloat16(), isolated=isolated).fit(*seen, **options)
    exact = ahop.AdaptiveHopfield(patterns, isolated=isolated).fit(*seen, **options)
    assert memory.similarity.weight.dtype == torch.float32
    assert memory.report.loss == pytest.approx(exact.report.loss, rel=0.1)


@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_a_fit_of_columns_that_are_all_the_same_still_goes_down():
    patterns = uniform(50, 1).expand(50, 16).contiguous()
    memory = ahop.AdaptiveHopfield(patterns, sort=False)
    seen = Noisy(0.1).sample(patterns, 50)
    before = gradient.retrieval_loss(memory.scores(seen.queries), seen.origins).item()
    report = memory.fit(*seen).report
    assert report.loss < before


@pytest.mark.parametrize("sort", [True, False])
def test_features_are_read_once_or_twice_to_the_same_end(monkeypatch, sort):
    patterns = uniform(300, 20)
    queries, origins = Noisy(0.3).sample(patterns, 40)
    similarity = ahop.similarity.Adaptive(20, sort=sort)
    with ahop.kernels.use("cpu"):
        table = Features(similarity, patterns, queries, origins, None, 0, 64, 0)
    u = uniform(40, seed=1)
    twice = table.loss_and_gradient(u, smoothness=0.1)
    assert not table._read_once
    monkeypatch.setattr(features, "_COMPILED_NUMBERS", 0)
    assert table._read_once
    once = table.loss_and_gradient(u, smoothness=0.1)
    torch.testing.assert_close(once, twice, rtol=1e-4, atol=1e-5)
    # Without a compiler, the long way is taken.
    monkeypatch.setattr(features, "_compiled", lambda: None)
    torch.testing.assert_close(table.loss_and_gradient(u, smoothness=0.1), twice)


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("negatives", [0, 8])
def test_footprints_are_learned_from_what_was_observed(sort, negatives):
    patterns = uniform(60, 16)
    seen, test = Mixed(0.3, 0.3, 0.0).sample(patterns, 200), Mixed(0.3, 0.3, 0.0).sample(patterns, 300)
    lost = torch.rand(seen.queries.shape, generator=torch.Generator().manual_seed(2)) < 0.4
    holed = seen.queries.masked_fill(lost, torch.nan)
    memory = ahop.AdaptiveHopfield(patterns, sort=sort).fit(
        holed, seen.origins, observed="not-nan", negatives=negatives
    )
    # The loss that was minimised is that of the memory's own scores of the same queries.
    if not negatives:
        scores = memory.scores(holed, observed="not-nan")
        assert memory.report.loss == pytest.approx(gradient.retrieval_loss(scores, seen.origins).item(), rel=1e-3)
    naive = ahop.AdaptiveHopfield(patterns, sort=sort).fit(holed.nan_to_num(5.0), seen.origins, negatives=negatives)
    assert retrieval_accuracy(memory, test) > retrieval_accuracy(naive, test)
    again = ahop.AdaptiveHopfield(patterns, sort=sort).fit(
        holed.nan_to_num(5.0), seen.origins, observed=~lost, negatives=negatives
    )
    assert torch.equal(again.similarity.weight, memory.similarity.weight)
