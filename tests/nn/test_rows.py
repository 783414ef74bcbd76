import pytest
import torch

from ahop.nn import RowEmbedding


def rows(count=6):
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    return numbers, torch.stack([torch.arange(count) % 4, torch.arange(count) % 2], 1)


@pytest.mark.parametrize("kind", ["periodic", "linear", "columns"])
@pytest.mark.parametrize("columns", [(3, [4, 2]), (3, []), (0, [4, 2])])
def test_a_vector_is_the_sum_of_what_columns_contribute(kind, columns):
    numbers, codes = rows()
    numbers, codes = numbers[:, : columns[0]], codes[:, : len(columns[1])]
    embed = RowEmbedding(*columns, width=5, kind=kind).double()
    parts = embed.parts(numbers, codes, range(columns[0] + len(columns[1])))
    assert parts.shape == (6, columns[0] + len(columns[1]), embed.width)
    torch.testing.assert_close(parts.sum(1) + embed.bias, embed(numbers, codes))
    torch.testing.assert_close(embed.parts(numbers, codes, [0]), parts[:, :1])
    torch.testing.assert_close(embed.parts(numbers, codes, [parts.shape[1] - 1]), parts[:, -1:])


def test_columns_are_numbers_and_a_one_for_each_known_category():
    embed = RowEmbedding(1, [3, 2], kind="columns")
    vectors = embed(torch.tensor([[5.0], [6.0]]), torch.tensor([[1, 0], [2, 1]]))
    assert vectors.tolist() == [[5, 0, 1, 0, 0, 0], [6, 0, 0, 1, 0, 1]]
    assert not list(embed.parameters())


@pytest.mark.parametrize("kind", ["periodic", "linear"])
def test_gradients_are_right(kind):
    numbers, codes = rows()
    embed = RowEmbedding(3, [4, 2], width=3, kind=kind, frequencies=2, size=2, blocks=1).double()
    torch.autograd.gradcheck(lambda n: embed(n, codes), numbers.requires_grad_())


def test_what_is_not_known_brings_nothing_and_then_the_average():
    numbers, codes = rows()
    embed = RowEmbedding(3, [5, 2], width=5).double()
    unknown = torch.zeros(1, 2, dtype=torch.long)
    assert not embed.parts(numbers[:1], unknown, [3, 4]).any()
    known = codes.clamp_min(1)
    expected = embed.parts(numbers, known, [3, 4]).mean(0)
    embed.settle(known)
    torch.testing.assert_close(embed.parts(numbers[:1], unknown, [3, 4])[0], expected)
    # Nor was code 4 of the first column ever learned.
    torch.testing.assert_close(embed.parts(numbers[:1], torch.tensor([[4, 1]]), [3])[0], expected[:1])


def test_blocks_let_columns_act_together():
    numbers, codes = rows()
    embed = RowEmbedding(3, [4, 2], width=5, blocks=2, dropout=0.5).double().eval()
    assert not torch.allclose(embed(numbers, codes), embed.add(numbers, codes))
    torch.testing.assert_close(embed.mix(embed.add(numbers, codes)), embed(numbers, codes))


def test_columns_are_left_out_while_learning_alone():
    numbers, codes = rows(2000)
    embed = RowEmbedding(3, [4, 2], kind="columns", column_dropout=0.25).double()
    learning, settled = embed(numbers, codes), embed.eval()(numbers, codes)
    torch.testing.assert_close(settled, RowEmbedding(3, [4, 2], kind="columns").double()(numbers, codes))
    there = settled != 0
    shares = learning[there] / settled[there]
    left = shares == 0
    torch.testing.assert_close(shares[~left], torch.full_like(shares[~left], 4 / 3))
    assert 0.2 < left.double().mean() < 0.3
    # Each row has its own columns left out.
    assert 0.2 < (learning[:, 0] == 0).double().mean() < 0.3
    assert ((learning[:, 0] == 0) & (learning[:, 1] != 0)).any()


def test_a_column_is_left_out_as_a_whole():
    numbers, codes = rows(50)
    embed = RowEmbedding(3, [4, 2], width=5, column_dropout=0.5).double()
    rest = embed.add(numbers, codes) - embed.bias
    # What is left of a row is twice what some of its columns contribute.
    parts = embed.parts(numbers, codes, range(5))
    choices = torch.cartesian_prod(*[torch.tensor([0.0, 2.0], dtype=torch.float64)] * 5)
    sums = torch.einsum("cp,npw->ncw", choices, parts)
    assert (sums - rest[:, None]).abs().amax(-1).amin(1).max() < 1e-9
    with pytest.raises(ValueError, match="column_dropout must be a number of at least 0 and below 1, got nan"):
        RowEmbedding(1, column_dropout=float("nan"))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be one of 'periodic', 'linear', 'columns', got 'fourier'"):
        RowEmbedding(1, kind="fourier")


@pytest.mark.parametrize(
    ("numbers", "codes", "message"),
    [
        (
            torch.zeros(2, 1),
            torch.zeros(2, 1, dtype=torch.long),
            r"must be \(n, 1\) and \(n, 2\), got",
        ),
        (torch.zeros(2, 3), torch.zeros(2, 2, dtype=torch.long), r"got \(2, 3\) and \(2, 2\)"),
        (
            torch.zeros(1, 1),
            torch.tensor([[3, 0]]),
            r"codes must lie below the number .*, \(3, 2\)",
        ),
        (torch.zeros(1, 1), torch.tensor([[-1, 0]]), "and not below 0"),
    ],
)
def test_what_cannot_be(numbers, codes, message):
    with pytest.raises(ValueError, match=message):
        RowEmbedding(1, [3, 2])(numbers, codes)
