import numpy as np
import pytest
import torch
from tests.linkage.data import drawn
from typer.testing import CliRunner

import ahop
from ahop import linkage, tables
from ahop.cli import app
from ahop.estimators import transfer
from ahop.linkage import adapt, gaps
from ahop.tables import read, write


def adapted(folder, stored, incoming, out, *options, pairs=True):
    files = [str(folder / name) for name in (stored, incoming, "known.csv", out)]
    known = ["--pairs", files[2]] if pairs else []
    result = CliRunner().invoke(app, ["adapt", *files[:2], *known, "--out", files[3], *options])
    return result.exit_code, result.output


@pytest.fixture
def instruments(tmp_path):
    """30 samples by a second instrument, of 60 by the first, which are returned; four pairs are known."""
    draw = np.random.default_rng(0)
    first = draw.normal(size=(60, 5)).cumsum(1)
    names = list("abcde")
    second = 3 + 1.2 * first[:30] + 0.01 * draw.normal(size=(30, 5))
    write({"sample": [f"s{row}" for row in range(60)], **dict(zip(names, first.T, strict=True))}, tmp_path / "1.csv")
    write({"run": [f"r{row}" for row in range(30)], **dict(zip(names, second.T, strict=True))}, tmp_path / "2.csv")
    write({"run": [f"r{row}" for row in range(4)], "sample": [f"s{row}" for row in range(4)]}, tmp_path / "known.csv")
    return first


def test_rows_of_a_second_instrument_are_corrected_and_the_error_of_held_out_pairs_is_told(
    tmp_path, instruments, monkeypatch
):
    monkeypatch.setattr(transfer, "_RANKS", (1,))
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv")
    assert code == 0 and "30 rows as the stored ones were measured" in text
    assert "RMSE of held-out pairs, in the units of the data:" in text and "4 known pairs, by cross-validation" in text
    assert all(f"{name} " in text for name in ("none", "slope and bias", "PDS", "DS", "b-hop, 1 hidden cause"))
    table = read(tmp_path / "corrected.csv", "run")
    assert table.columns == tuple("abcde") and np.abs(table.values - instruments[:30]).max() < 0.1


@pytest.mark.parametrize("name", ["1.csv", "2.csv", "known.csv"])
def test_what_is_read_is_never_written_over(tmp_path, instruments, name):
    before = (tmp_path / name).read_bytes()
    code, text = adapted(tmp_path, "1.csv", "2.csv", name)
    assert code == 2 and f"error: --out would write over {tmp_path / name}, which is read here" in text
    assert (tmp_path / name).read_bytes() == before


def test_answers_that_somebody_gave_are_never_written_over(tmp_path, instruments):
    (tmp_path / "m-check.csv").write_text("id,answer\nr1,s1\n")
    code, text = adapted(tmp_path, "1.csv", "2.csv", "m-check.csv")
    assert code == 2 and f"{tmp_path / 'm-check.csv'}, in which somebody has given 1 answer: give --out" in text
    assert (tmp_path / "m-check.csv").read_text() == "id,answer\nr1,s1\n"


def test_a_name_that_is_none_is_refused_in_one_sentence(tmp_path, instruments, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, text = adapted(tmp_path, "1.csv", "2.csv", ".")
    assert code == 2 and text == f"error: {tmp_path} must end in .csv or .parquet or .npy\n"


@pytest.mark.slow
def test_without_a_pair_rows_are_corrected_and_nobody_says_how_well(tmp_path, instruments):
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.npy", pairs=False)
    assert code == 0 and "unknown: too few pairs are known" in text
    assert np.abs(np.load(tmp_path / "corrected.npy") - instruments[:30]).max() < 0.5


def without_a_value(path):
    """The file without the last value of its fourth line, which is that of r2."""
    lines = path.read_text().splitlines()
    lines[3] = lines[3][: lines[3].rindex(",") + 1]
    path.write_text("\n".join(lines))


def test_a_row_that_misses_a_value_is_corrected_by_the_pairs_as_the_others_are(tmp_path, instruments, monkeypatch):
    monkeypatch.setattr(transfer, "_RANKS", ())
    without_a_value(tmp_path / "2.csv")
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv")
    assert code == 0 and "3 known pairs, by cross-validation" in text
    assert "incomplete     1 row with 1 missing value: estimated from the others" in text
    errors = np.abs(read(tmp_path / "corrected.csv", "run").values - instruments[:30])
    assert np.isnan(errors[2, 4]) and np.nanmax(errors) < 0.2


def test_pairs_that_miss_values_are_learned_from_where_the_other_columns_tell_these(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "_RANKS", ())
    draw = np.random.default_rng(0)
    first = draw.normal(size=(40, 6)) @ draw.normal(size=(6, 20)) + 0.05 * draw.normal(size=(40, 20))
    lost = draw.random(first.shape) < 0.08
    second = np.where(lost, np.nan, first @ (np.eye(20) + 0.1 * draw.normal(size=(20, 20))))
    for name, rows in (("1.csv", first), ("2.csv", second)):
        columns = {str(1000 + place): column for place, column in enumerate(rows.T)}
        write({"sample": [f"s{row}" for row in range(40)], **columns}, tmp_path / name)
    write({"run": [f"s{row}" for row in range(30)], "sample": [f"s{row}" for row in range(30)]}, tmp_path / "known.csv")
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv")
    assert code == 0 and "30 known pairs, by cross-validation" in text
    assert np.nanmax(np.abs(read(tmp_path / "corrected.csv", "sample").values - first)) < 0.1 * first.std()


def test_missing_values_are_filled_in_by_what_the_other_columns_say():
    """Rows that a factor explains: a tenth of the values is missing and comes back far nearer than a mean would."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(40, 1)) @ draw.normal(size=(1, 12)) + 0.01 * draw.normal(size=(40, 12))
    lost = draw.random(rows.shape) < 0.1
    filled = gaps.filled(np.where(lost, np.nan, rows))
    assert (filled[~lost] == rows[~lost]).all() and np.abs(filled - rows)[lost].max() < 0.1 * rows.std()


@pytest.mark.slow
def test_a_row_that_misses_a_value_is_corrected_without_a_pair_and_what_it_misses_is_not_made_up(tmp_path, instruments):
    without_a_value(tmp_path / "2.csv")
    code, _ = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv", pairs=False)
    errors = np.abs(read(tmp_path / "corrected.csv", "run").values - instruments[:30])
    assert code == 0 and np.nanmax(errors) < 0.5 and np.argwhere(np.isnan(errors)).tolist() == [[2, 4]]
    assert (tmp_path / "corrected.csv").read_text().splitlines()[3].endswith(",")


def test_corrected_rows_keep_the_name_of_their_ids_and_no_digits_of_the_computer(tmp_path, instruments, monkeypatch):
    monkeypatch.setattr(transfer, "_RANKS", ())
    assert adapted(tmp_path, "1.csv", "2.csv", "corrected.csv")[0] == 0
    head, *lines = (tmp_path / "corrected.csv").read_text().splitlines()
    assert head == "run,a,b,c,d,e"
    cells = [cell for line in lines for cell in line.split(",")[1:]]
    assert max(len(cell.partition(".")[2]) for cell in cells) <= 7


def test_rows_with_decimal_commas_are_corrected_with_decimal_commas(tmp_path, instruments, monkeypatch):
    monkeypatch.setattr(transfer, "_RANKS", ())
    table = read(tmp_path / "2.csv")
    columns = {"run": table.ids.tolist(), **dict(zip("abcde", table.values.T.tolist(), strict=True))}
    write(columns, tmp_path / "2.csv", decimal=",")
    assert adapted(tmp_path, "1.csv", "2.csv", "corrected.csv")[0] == 0
    assert "." not in (tmp_path / "corrected.csv").read_text()
    assert np.abs(read(tmp_path / "corrected.csv", "run").values - instruments[:30]).max() < 0.1


def test_the_next_batch_is_corrected_by_what_pairs_taught_before(tmp_path, instruments, monkeypatch):
    monkeypatch.setattr(transfer, "_RANKS", (1,))
    kept, names = str(tmp_path / "kept"), list("abcde")
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv", "--save", kept)
    assert code == 0 and "kept (the correction)" in text
    further = 3 + 1.2 * instruments[30:]
    further[4, 2] = np.nan
    cells = ([None if np.isnan(cell) else cell for cell in column] for column in further.T)
    batch = {"run": [f"n{row}" for row in range(30)], **dict(zip(names, cells, strict=True))}
    write(batch, tmp_path / "next.csv")
    asked = [str(tmp_path / "next.csv"), "--model", kept, "--out", str(tmp_path / "next-corrected.csv")]
    result = CliRunner().invoke(app, ["adapt", *asked])
    assert result.exit_code == 0 and "as saved in" in result.output, result.output
    table = read(tmp_path / "next-corrected.csv", "run")
    gap = np.isnan(further)
    assert np.isnan(table.values[gap]).all() and table.ids.tolist() == [f"n{row}" for row in range(30)]
    assert np.abs(table.values - instruments[30:])[~gap].max() < 0.1
    # The same rows are corrected in the same way once more.
    again = [str(tmp_path / "2.csv"), "--model", kept, "--out", str(tmp_path / "again.csv")]
    assert CliRunner().invoke(app, ["adapt", *again]).exit_code == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "corrected.csv").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "cosine"], "--metric must be left out: --model holds a correction, which is used as it is"),
        (["--pairs", "known.csv"], "--pairs must be left out"),
        (["damaged"], "correction.safetensors is damaged"),
        (["1.csv", "2.csv"], "files must be INCOMING alone, since --model corrects it"),
        (["fewer.csv"], "fewer.csv lacks columns that the model was made with: 'e'"),
    ],
)
def test_what_a_kept_correction_cannot_take_is_refused_in_one_line_and_nothing_written(
    tmp_path, instruments, monkeypatch, options, message
):
    monkeypatch.setattr(transfer, "_RANKS", (1,))
    monkeypatch.chdir(tmp_path)
    assert adapted(tmp_path, "1.csv", "2.csv", "corrected.csv", "--save", str(tmp_path / "kept"))[0] == 0
    write({"run": ["x"], **{name: [1.0] for name in "abcd"}}, tmp_path / "fewer.csv")
    files = [option for option in options if option.endswith(".csv") and "--pairs" not in options] or ["2.csv"]
    if options == ["damaged"]:
        (tmp_path / "kept" / "correction.safetensors").write_bytes(b"no numbers")
    rest = options if options[0].startswith("--") else []
    result = CliRunner().invoke(app, ["adapt", *files, "--model", "kept", "--out", "more.csv", *rest])
    assert result.exit_code == 2 and message in result.output and not (tmp_path / "more.csv").exists()


def test_a_correction_without_pairs_is_not_kept(tmp_path, instruments):
    kept = tmp_path / "kept"
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv", "--save", str(kept), pairs=False)
    assert code == 2 and "--save keeps corrections that known pairs have taught: give --pairs" in text
    assert not kept.exists() and not (tmp_path / "corrected.csv").exists()


def test_columns_with_units_of_their_own_count_alike_where_a_transfer_is_chosen(tmp_path, monkeypatch):
    """What doubles the small column and adds noise to nothing is undone, though the large one is as it was."""
    monkeypatch.setattr(transfer, "_RANKS", ())
    draw = np.random.default_rng(0)
    grams, degrees = 1e4 * draw.normal(size=60), draw.normal(size=60)
    write({"sample": range(60), "grams": grams, "degrees": degrees}, tmp_path / "1.csv")
    seen = {"grams": grams[:30] + 100 * draw.normal(size=30), "degrees": 3 + 2 * degrees[:30]}
    write({"sample": range(30), **seen}, tmp_path / "2.csv")
    write({"run": range(12), "sample": range(12)}, tmp_path / "known.csv")
    code, text = adapted(tmp_path, "1.csv", "2.csv", "corrected.csv", "--id", "sample")
    assert code == 0 and "RMSE of held-out pairs, in standard deviations of each column: " in text
    assert np.abs(read(tmp_path / "corrected.csv", "sample").values[:, 1] - degrees[:30]).max() < 0.05


@pytest.mark.slow
def test_an_index_finds_adapted_queries_though_it_stays_as_it_is(tmp_path):
    turned(tmp_path)
    patterns = np.load(tmp_path / "stored.npy")
    code, text = adapted(tmp_path, "stored.npy", "incoming.npy", "adapted.csv")
    assert code == 0 and "60 queries for an index by cosine" in text and "what happened  a moved space" in text
    assert (
        "of 60 first choices were right (90 % confidence interval" in text and "known pairs that were held out" in text
    )
    assert "in the index   100 % of first choices are the same" in text
    table = read(tmp_path / "adapted.csv", "id")
    vectors, stored = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (table.values, patterns))
    assert ((vectors @ stored.T).argmax(1) == np.arange(60)).mean() > 0.95


def turned(folder, rows=60):
    """Two files of vectors, of which the second are those of the first in another space, and all pairs."""
    draw = np.random.default_rng(0)
    patterns = draw.normal(size=(rows, 6))
    np.save(folder / "stored.npy", patterns)
    queries = patterns @ np.linalg.qr(draw.normal(size=(8, 6)))[0].T + 0.01 * draw.normal(size=(rows, 8))
    np.save(folder / "incoming.npy", queries)
    write({"incoming": range(rows), "stored": range(rows)}, folder / "known.csv")
    return queries


def by_model(folder, command, *options):
    return CliRunner().invoke(app, [command, *map(str, options[:1]), "--model", str(folder), *map(str, options[1:])])


@pytest.mark.parametrize("command", ["adapt", pytest.param("match", marks=pytest.mark.slow)])
def test_the_next_batch_is_adapted_by_the_model_of_the_first_as_it_is(tmp_path, command):
    queries = turned(tmp_path)
    out = {"adapt": "first.npy", "match": "matches.csv"}[command]
    files = [str(tmp_path / name) for name in ("stored.npy", "incoming.npy", "known.csv", out, "model")]
    options = [*files[:2], "--pairs", files[2], "--out", files[3], "--save", files[4]]
    assert CliRunner().invoke(app, [command, *options]).exit_code == 0
    np.save(tmp_path / "next.npy", queries[40:])
    result = by_model(tmp_path / "model", "adapt", tmp_path / "next.npy", "--out", tmp_path / "next-adapted.npy")
    assert result.exit_code == 0 and "20 queries for an index by cosine" in result.output
    assert "none of these rows has been checked; of the batch learned from, " in result.output
    memory = ahop.load(tmp_path / "model")
    wanted = memory.query_adapter("cosine")(torch.from_numpy(queries[40:]).float())
    np.testing.assert_array_equal(np.load(tmp_path / "next-adapted.npy"), wanted.numpy())
    # Another batch, of which the model knows nothing, is told so.
    np.save(tmp_path / "other.npy", 10 + 3 * np.random.default_rng(1).normal(size=(40, 8)))
    result = by_model(tmp_path / "model", "adapt", tmp_path / "other.npy", "--out", tmp_path / "other-adapted.npy")
    assert result.exit_code == 0 and "this batch is another" in " ".join(result.output.split())


def test_what_a_given_model_cannot_take_is_refused_in_one_line_and_nothing_written(tmp_path, instruments):
    before = sorted(path.name for path in tmp_path.iterdir())
    code, text = adapted(tmp_path, "1.csv", "2.csv", "out.csv", "--model", str(tmp_path))
    assert code == 2 and "files must be INCOMING alone, since --model holds what is stored" in text
    result = by_model(tmp_path, "adapt", tmp_path / "2.csv", "--out", tmp_path / "out.csv")
    assert result.exit_code == 2 and "holds no model of ahop match" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_given_model_learns_no_more(tmp_path):
    stored = tables.Table.of({"x": [1.0, 2.0], "y": [0.0, 1.0]})
    model = linkage.Model(ahop.BayesianHopfield(torch.eye(2)), stored, ("x", "y"), named=True, shared=True)
    with pytest.raises(ValueError, match="a given model learns no more"):
        linkage.adapted(model, stored, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="nothing was found between"):
        linkage.adapted(model, stored)


@pytest.mark.parametrize("metric", ["cosine", "inner", "l2"])
def test_an_index_agrees_with_a_memory_where_vectors_are_those_that_it_holds(metric):
    patterns = torch.nn.functional.normalize(torch.randn(40, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    memory = ahop.BayesianHopfield(patterns)
    assert adapt._agreement(memory, patterns, patterns, metric) == 1
    assert adapt._agreement(memory, patterns, patterns.roll(1, 0), metric) == 0


@pytest.mark.slow
def test_where_no_space_was_moved_that_is_said_and_nothing_written(tmp_path):
    stored, incoming, origins = drawn()
    write(stored, tmp_path / "stored.csv")
    write(incoming, tmp_path / "incoming.csv")
    write({"order": incoming["order"], "sku": [stored["sku"][row] for row in origins]}, tmp_path / "known.csv")
    code, text = adapted(tmp_path, "stored.csv", "incoming.csv", "adapted.npy", "--metric", "cosine")
    assert code == 2 and "error: no moved space was found between" in text and "ahop match can" in text
    assert not (tmp_path / "adapted.npy").exists()


def test_a_file_that_is_none_of_vectors_is_refused_before_the_work(tmp_path):
    code, text = adapted(tmp_path, "nothing.csv", "nothing.csv", "adapted.txt")
    assert code == 2 and "adapted.txt must end in .csv or .parquet or .npy" in text


@pytest.mark.parametrize("width", [pytest.param(4, marks=pytest.mark.slow), 5])
def test_data_that_have_nothing_to_do_with_each_other_are_refused_in_one_line(tmp_path, width):
    draw = np.random.default_rng(0)
    for name, columns in (("1.csv", "abcd"), ("2.csv", "abcd" if width == 4 else "vwxyz")):
        rows = draw.normal(size=(40, len(columns)))
        write({"sample": [f"s{row}" for row in range(40)], **dict(zip(columns, rows.T, strict=True))}, tmp_path / name)
    code, text = adapted(tmp_path, "1.csv", "2.csv", "out.csv", pairs=False)
    assert code == 2 and "Warning" not in text and not (tmp_path / "out.csv").exists()
    words = [line.split()[0] for line in text.splitlines() if not line.startswith("learning a corruption")]
    assert words == ["stored", "incoming", "error:"]
