"""The fast kernels against the reference in float64, on any shape; those of the GPU where there is one."""

import importlib
import importlib.util
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop import kernels
from ahop.kernels import operators
from ahop.kernels.backend import Pairs

FAST = [
    name
    for name, there in (
        ("cpu", importlib.util.find_spec("numba") is not None),
        ("cuda", torch.cuda.is_available()),
    )
    if there
]
needs_numba = pytest.mark.skipif("cpu" not in FAST, reason="needs numba")
DIMS = [1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 127, 200]
BASES = st.lists(st.sampled_from(["distance", "dot", "manhattan"]), min_size=1, max_size=4)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def smooth(*shape):
    """Weights without jumps, so that terms which change places change nothing."""
    heights = torch.linspace(0.5, 1.5, math.prod(shape[:-1])).reshape(*shape[:-1], 1)
    return 1 + heights * torch.cos(2 * torch.linspace(0, 1, shape[-1]))


def close(ours, reference, tolerance, floor=1e-6):
    """Relative to the size of the whole: a single entry may be a difference of large numbers."""
    ours, reference = ours.detach().cpu().double(), reference.detach()
    assert ours.shape == reference.shape
    assert torch.isfinite(ours).all()
    assert (ours - reference).norm() <= tolerance * reference.norm() + floor


@st.composite
def problems(draw):
    """Patterns, queries, weights, bases, mask: from smooth numbers or from few different ones, so that terms tie."""
    dim, count, rows = draw(st.sampled_from(DIMS)), draw(st.integers(1, 70)), draw(st.integers(0, 12))
    groups, bases, seed = draw(st.integers(0, 3)), draw(BASES), draw(st.integers(0, 99))
    lead = (2, groups) if groups else ()
    patterns, queries = normal(*lead, count, dim, seed=seed), normal(*lead, rows, dim, seed=seed + 1)
    ties = draw(st.booleans())
    if ties:
        patterns, queries = patterns.round(), queries.round()
    if draw(st.booleans()):
        # Not contiguous.
        patterns, queries = patterns.mT.contiguous().mT, queries.repeat_interleave(2, -1)[..., ::2]
    weights = smooth(*([groups] if groups else []), len(bases), dim)
    observed = None
    if draw(st.booleans()):
        observed = normal(*lead, rows, dim, seed=seed + 2) < draw(st.sampled_from([-9.0, 0.0, 1.0]))
    return patterns, queries, weights, bases, observed, ties


def on(backend, *tensors):
    return [tensor if tensor is None else tensor.to(backend) for tensor in tensors]


def doubled(*tensors):
    return [tensor.double() for tensor in tensors]


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems())
def test_scores_are_those_of_the_reference(backend, problem):
    patterns, queries, weights, bases, observed, _ = problem
    expected = kernels.scores(*doubled(patterns, queries, weights), bases, observed=observed)
    if observed is not None:
        # What was not observed may be anything.
        queries = queries.masked_fill(~observed, torch.inf)
    with kernels.use(backend):
        p, q, u, mask = on(backend, patterns, queries, weights, observed)
        found = kernels.scores(p, q, u, bases, observed=mask)
    assert kernels.last_used() == backend
    close(found, expected, 1e-5)


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems())
def test_gradients_are_those_of_the_reference(backend, problem):
    patterns, queries, weights, bases, observed, ties = problem
    slopes = normal(*queries.shape[:-1], patterns.shape[-2], seed=5)
    exact = [tensor.double().requires_grad_() for tensor in (patterns, queries, weights)]
    scores = kernels.scores(*exact, bases, observed=observed)
    expected = torch.autograd.grad(scores, exact, slopes.double())
    with kernels.use(backend):
        leaves = [tensor.to(backend).requires_grad_() for tensor in (patterns, queries, weights)]
        scores = kernels.scores(*leaves, bases, observed=None if observed is None else observed.to(backend))
        found = torch.autograd.grad(scores, leaves, slopes.to(backend))
    close(found[2], expected[2], 1e-4)
    if not ties:
        # Where terms tie, any of their orders gives a gradient.
        close(found[0], expected[0], 2e-3)
        close(found[1], expected[1], 2e-3)


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems(), excluded=st.booleans())
def test_retrieval_and_its_gradients_are_those_of_the_reference(backend, problem, excluded):
    patterns, queries, weights, bases, observed, ties = problem
    values, bias = normal(*patterns.shape[:-1], 5, seed=6), normal(*patterns.shape[:-1], seed=7)
    if excluded:
        bias[..., 0] = -torch.inf
    slopes = normal(*queries.shape[:-1], 5, seed=8)
    weights = 0.1 * weights

    def run(tensors, mask, slopes):
        patterns, queries, weights, values, bias = (tensor.requires_grad_() for tensor in tensors)
        blend = kernels.retrieve(patterns, queries, weights, bases, values, bias=bias, observed=mask)
        return blend, *torch.autograd.grad(blend, [patterns, queries, weights, values, bias], slopes)

    inputs = (patterns, queries, weights, values, bias)
    expected = run(doubled(*inputs), observed, slopes.double())
    with kernels.use(backend):
        found = run([tensor.to(backend) for tensor in inputs], *on(backend, observed, slopes))
    tolerances = (1e-4, 2e-2, 2e-2, 1e-3, 1e-4, 1e-3)
    for place, (ours, reference, tolerance) in enumerate(zip(found, expected, tolerances, strict=True)):
        if not (ties and place in (1, 2)):
            # Where one pattern has all the weight, gradients are differences of nearly equal numbers.
            close(ours, reference, tolerance, floor=1e-4)


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems(), k=st.integers(1, 40))
def test_recall_ranks_by_the_scores(backend, problem, k):
    patterns, queries, weights, bases, observed, _ = problem
    k, bias = min(k, patterns.shape[-2]), normal(*patterns.shape[:-1], seed=7)
    scores = (
        kernels.scores(*doubled(patterns, queries, weights), bases, observed=observed) + bias[..., None, :].double()
    )
    with kernels.use(backend):
        p, q, u, mask, b = on(backend, patterns, queries, weights, observed, bias)
        best = kernels.recall(p, q, u, bases, k, observed=mask, bias=b)
    close(best.scores, scores.topk(k).values, 1e-5)
    close(best.log_sums, scores.logsumexp(-1), 1e-5)
    # Ties may come in any order, so the scores found under the indices are compared, not the indices.
    close(scores.gather(-1, best.indices.cpu()), scores.topk(k).values, 1e-5)
    assert all(len(set(row)) == k for row in best.indices.reshape(-1, k).tolist())


@pytest.mark.parametrize("backend", FAST)
@given(problem=problems())
def test_sorted_terms_are_those_of_the_reference(backend, problem):
    patterns, queries, _, bases, _, _ = problem
    expected = kernels.sorted_terms(*doubled(patterns, queries), bases)
    with kernels.use(backend):
        close(kernels.sorted_terms(*on(backend, patterns, queries), bases), expected, 1e-6)


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize(
    ("dim", "count", "rows"),
    [
        (1000, 9, 3),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((784, 300, 40), (64, 1500, 65), (16, 4000, 130))),
    ],
)
def test_larger_problems(backend, dim, count, rows):
    bases, weights = ["distance", "dot"], smooth(2, dim) / dim
    patterns, queries, values = normal(count, dim), normal(rows, dim, seed=1), normal(count, 33, seed=2)
    inputs = (patterns, queries, weights)
    with kernels.use(backend):
        scores = kernels.scores(*on(backend, *inputs), bases)
        blend = kernels.retrieve(*on(backend, *inputs), bases, values.to(backend))
    close(scores, kernels.scores(*doubled(*inputs), bases), 1e-5)
    close(blend, kernels.retrieve(*doubled(*inputs), bases, values.double()), 1e-4)


@needs_numba
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("wanted", [[True, True, True], [False, False, True], [True, False, False]])
def test_gradients_on_the_cpu_keep_to_the_memory_budget(masked, wanted, monkeypatch, threads):
    threads(4)
    patterns, queries, weights = normal(30, 200), normal(900, 200, seed=1), smooth(2, 200)
    observed = normal(900, 200, seed=2) < 1 if masked else None
    calls = []
    cpu = importlib.import_module("ahop.kernels.cpu")
    prepare = cpu._prepare
    monkeypatch.setattr(cpu, "_prepare", lambda *problem: calls.append(len(problem[1][0])) or prepare(*problem))

    def slopes():
        leaves = [t.clone().requires_grad_(need) for t, need in zip((patterns, queries, weights), wanted, strict=True)]
        scores = kernels.scores(*leaves, ["distance", "dot"], observed=observed)
        calls.clear()
        return torch.autograd.grad(scores, [leaf for leaf in leaves if leaf.requires_grad], scores.detach())

    with kernels.use("cpu"):
        whole = slopes()
        assert calls == [900]
        with ahop.memory_budget(2**20):
            pieces = slopes()
    assert len(calls) > 1
    assert sum(calls) == 900
    assert 4 * torch.get_num_threads() * max(calls) * 200 * (3 if masked else 1) <= 2**20
    for ours, expected in zip(pieces, whole, strict=True):
        close(ours, expected.double(), 1e-5)


@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_float32(backend, dtype):
    patterns, queries, weights = normal(20, 33).to(dtype), normal(4, 33, seed=1).to(dtype), smooth(1, 33)
    expected = kernels.scores(*doubled(patterns, queries, weights), ["distance"])
    with kernels.use(backend):
        found = kernels.scores(*on(backend, patterns, queries, weights), ["distance"])
    assert found.dtype == torch.float32
    close(found, expected, 1e-5)


@pytest.mark.parametrize("backend", ["reference", *FAST])
def test_a_query_without_any_pattern_left_reads_out_zero(backend):
    device = "cuda" if backend == "cuda" else "cpu"
    patterns = normal(5, 8).to(device).requires_grad_()
    bias = torch.full((5,), -torch.inf, device=device)
    with kernels.use(backend):
        blend = kernels.retrieve(patterns, patterns, smooth(1, 8).to(device), ["dot"], patterns, bias=bias)
        blend.sum().backward()
    assert (blend == 0).all()
    assert torch.isfinite(patterns.grad).all()


# --- through autograd and the compiler -----------------------------------------------------------------------

EVERY = ["distance", "dot", "manhattan"]


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_through_the_dispatcher(masked):
    patterns, queries, weights, values, bias = (
        tensor.double().requires_grad_()
        for tensor in (normal(2, 4, 5), normal(2, 3, 5, seed=1), normal(2, 3, 5, seed=2), normal(2, 4, 2), normal(2, 4))
    )
    observed = normal(2, 3, 5, seed=3) < 0.5 if masked else None
    torch.autograd.gradcheck(lambda *t: kernels.scores(*t, EVERY, observed=observed), (patterns, queries, weights))
    torch.autograd.gradcheck(
        lambda p, q, u, v, b: kernels.retrieve(p, q, u, EVERY, v, bias=b, observed=observed),
        (patterns, queries, weights, values, bias),
    )


@pytest.mark.slow
def test_the_operators_keep_pytorchs_rules():
    patterns, queries, weights = normal(1, 6, 5), normal(1, 3, 5, seed=1), normal(1, 1, 1, 5, seed=2)
    for tensor in (patterns, queries, weights):
        tensor.requires_grad_()
    values, bias = normal(1, 6, 2).requires_grad_(), normal(1, 6, seed=4).requires_grad_()
    torch.library.opcheck(operators.scores, (patterns, queries, weights, None, "dot"))
    torch.library.opcheck(operators.retrieve, (patterns, queries, weights, None, "dot", values, bias))
    fixed = [tensor.detach() for tensor in (patterns, queries, weights)]
    torch.library.opcheck(operators.recall, (*fixed, None, "dot", 2, None))


def test_gradients_lie_in_memory_as_the_compiler_was_told():
    patterns, queries, weights = normal(1, 5, 6).mT, normal(1, 5, 3, seed=1).mT, normal(1, 1, 1, 5, seed=2)
    values, slopes, log_slopes = normal(1, 2, 6).mT, normal(1, 3, 2), normal(1, 3)
    readout = operators.retrieve(patterns, queries, weights, None, "dot", values, None)
    given = (patterns, queries, weights, None, "dot", values, None, *readout, slopes, log_slopes)
    for needs in ([True, True, True, True, False], [False, True, False, False, False]):
        torch.library.opcheck(operators.retrieve_gradients, (*given, needs), test_utils="test_faketensor")


def test_every_operator_begins_with_the_fields_of_the_pairs():
    names = ("scores", "gradients", "retrieve", "retrieve_gradients", "recall")
    for name in names:
        schema = getattr(operators, name)._schema
        assert schema.name == f"ahop::footprint_{name}"
        assert tuple(argument.name for argument in schema.arguments)[:5] == Pairs._fields


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if "cuda" in FAST else [])])
def test_the_compiler_sees_one_graph(device):
    similarity = ahop.similarity.Adaptive(8).to(device)

    def loss(patterns, queries):
        scores = similarity(patterns, queries)
        return scores.logsumexp(-1).sum()

    patterns, queries = normal(6, 8).to(device), normal(3, 8, seed=1).to(device).requires_grad_()
    whole = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(whole(patterns, queries), queries)
    (expected,) = torch.autograd.grad(loss(patterns, queries), queries)
    torch.testing.assert_close(found, expected)


def test_second_derivatives_need_float64():
    patterns, weights = normal(4, 5), smooth(1, 5)
    queries = normal(2, 5, seed=1).requires_grad_()
    scores = kernels.scores(patterns, queries, weights, ["distance"])
    (slopes,) = torch.autograd.grad(scores.sum(), queries, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated once; use float64"):
        slopes.sum().backward()
    memory = ahop.AdaptiveHopfield(patterns.double())
    torch.autograd.functional.hessian(lambda x: memory.energy(x).sum(), queries.detach().double())


def test_a_ranking_has_no_gradient():
    patterns = normal(4, 5).requires_grad_()
    assert not kernels.recall(patterns, patterns, smooth(1, 5), ["dot"], 2).scores.requires_grad


def test_autocast_does_not_reach_the_scores_in_either_pass():
    patterns, weights = 10 * normal(40, 16), smooth(1, 16)
    queries = patterns[:5].clone().requires_grad_()

    def slopes():
        blend = kernels.retrieve(patterns, queries, weights, ["distance"], patterns)
        return torch.autograd.grad(blend.square().sum(), queries)[0]

    expected = slopes()
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(slopes(), expected)


@pytest.mark.parametrize("backend", ["reference", *FAST])
def test_no_groups_at_all(backend):
    device = "cuda" if backend == "cuda" else "cpu"
    patterns, weights = torch.empty(0, 4, 8, device=device, requires_grad=True), smooth(1, 8).to(device)
    with kernels.use(backend):
        scores = kernels.scores(patterns, patterns, weights, ["dot"])
        scores.sum().backward()
    assert scores.shape == (0, 4, 4)
    assert patterns.grad.shape == patterns.shape


@needs_numba
def test_numbers_that_are_not_finite_do_no_harm_on_the_way_back():
    patterns = normal(20, 100)
    patterns[0, 0] = 1e20
    patterns[1, 3] = torch.nan
    queries = normal(3, 100, seed=1).requires_grad_()
    with kernels.use("cpu"):
        kernels.scores(patterns, queries, smooth(1, 100), ["distance"]).sum().backward()
    assert queries.grad.shape == (3, 100)


# --- in a memory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", FAST)
def test_a_memory_gives_the_same_answers_on_every_backend(backend):
    patterns = normal(300, 24)
    seen = ahop.variants.Noisy(0.3).sample(patterns, 40)
    memory = ahop.AdaptiveHopfield(patterns, prior=torch.arange(1, 301)).fit(*seen)
    queries = normal(7, 24, seed=3)
    observed = normal(7, 24, seed=4) < 1
    with kernels.use("reference"):
        expected = memory.retrieve(queries, observed=observed), *memory.recall(queries, 3), memory.scores(queries)
    memory.to("cuda" if backend == "cuda" else "cpu")
    with kernels.use(backend):
        found = memory.retrieve(queries, observed=observed), *memory.recall(queries, 3), memory.scores(queries)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-4)


def test_what_a_subclass_replaces_is_not_passed_by():
    class Sharp(ahop.separation.Softmax):
        def forward(self, scores):
            return torch.softmax(100 * scores, dim=-1)

    class ShiftedByOne(ahop.similarity.Adaptive):
        def forward(self, patterns, queries, observed=None):
            return super().forward(patterns, queries, observed) + torch.arange(len(patterns))

    class Reversed(ahop.AdaptiveHopfield, abstract=True):
        def _scores(self, queries):
            return -super()._scores(queries)

    patterns, queries = normal(6, 8), normal(3, 8, seed=1)
    for memory in (
        ahop.AdaptiveHopfield(patterns, separation=Sharp()),
        ahop.AssociativeMemory(patterns, ShiftedByOne(8), "softmax"),
        Reversed(patterns),
    ):
        weights = memory.weights(queries)
        torch.testing.assert_close(memory.retrieve(queries), weights @ patterns)
        assert (memory.recall(queries).indices.squeeze(-1) == weights.argmax(-1)).all()
