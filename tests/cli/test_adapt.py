import numpy as np
import pytest
from tests.linkage.data import drawn
from typer.testing import CliRunner

from ahop.cli import app
from ahop.tables import read, write


def adapted(folder, stored, incoming, out):
    files = [str(folder / name) for name in (stored, incoming, "known.csv", out)]
    result = CliRunner().invoke(app, ["adapt", *files[:2], "--pairs", files[2], "--out", files[3]])
    return result.exit_code, result.output


def test_an_index_finds_adapted_queries_though_it_stays_as_it_is(tmp_path):
    draw = np.random.default_rng(0)
    patterns = draw.normal(size=(60, 6))
    turned = patterns @ np.linalg.qr(draw.normal(size=(8, 6)))[0].T
    np.save(tmp_path / "stored.npy", patterns)
    np.save(tmp_path / "incoming.npy", turned + 0.01 * draw.normal(size=(60, 8)))
    write({"incoming": range(60), "stored": range(60)}, tmp_path / "known.csv")
    code, text = adapted(tmp_path, "stored.npy", "incoming.npy", "adapted.csv")
    assert code == 0 and "60 queries for an index by cosine" in text
    table = read(tmp_path / "adapted.csv", "id")
    vectors, stored = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (table.values, patterns))
    assert ((vectors @ stored.T).argmax(1) == np.arange(60)).mean() > 0.95


@pytest.mark.slow
def test_where_no_space_was_moved_that_is_said_and_nothing_written(tmp_path):
    stored, incoming, origins = drawn()
    write(stored, tmp_path / "stored.csv")
    write(incoming, tmp_path / "incoming.csv")
    write({"order": incoming["order"], "sku": [stored["sku"][row] for row in origins]}, tmp_path / "known.csv")
    code, text = adapted(tmp_path, "stored.csv", "incoming.csv", "adapted.npy")
    assert code == 2 and "error: no moved space was found between" in text and "ahop match can" in text
    assert not (tmp_path / "adapted.npy").exists()


def test_a_file_that_is_none_of_vectors_is_refused_before_the_work(tmp_path):
    code, text = adapted(tmp_path, "nothing.csv", "nothing.csv", "adapted.txt")
    assert code == 2 and "adapted.txt must end in .csv or .parquet or .npy" in text
