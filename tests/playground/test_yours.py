import shlex
import subprocess
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
import torch

from ahop import linkage
from ahop.linkage.alternatives import NEAREST, RIDGE, by_ridge
from ahop.playground import upload, views, yours
from ahop.playground.sent import File, UploadError
from ahop.playground.tabs.yours import matched
from ahop.tables import Table

DRAW = np.random.default_rng(2)
PATTERNS = DRAW.uniform(-1, 1, (16, 5))
ORIGINS = torch.from_numpy(DRAW.integers(16, size=60))
QUERIES = PATTERNS[ORIGINS] + DRAW.normal(0.5, 0.05, (60, 5))


def written(values, sign):
    names = "id," + ",".join(f"x{place}" for place in range(values.shape[1]))
    return "\n".join([names, *(f"{sign}{row}," + ",".join(map(str, one)) for row, one in enumerate(values.tolist()))])


STORED, INCOMING = File("stored.csv", written(PATTERNS, "s").encode()), File("rows.csv", written(QUERIES, "r").encode())
PAIRS = File("known.csv", "\n".join(f"r{row},s{origin}" for row, origin in enumerate(ORIGINS.tolist())).encode())


@pytest.fixture(scope="module")
def found():
    return linkage.link(upload.table(STORED), upload.table(INCOMING), ORIGINS, verbose=False)


def test_no_origin_is_learned_from_and_scored():
    unknown = torch.where(torch.arange(60) < 10, -1, ORIGINS)
    halves = yours.split(unknown)
    learned, tested = (set(unknown[half].tolist()) for half in halves)
    assert learned and tested and not learned & tested and -1 not in learned | tested
    assert len(halves.learn) + len(halves.score) == 50


def test_no_more_rows_are_learned_from_and_scored_than_take_a_moment():
    learned, scored = yours.split(torch.arange(20_000))
    assert len(learned) == 2000 and len(scored) == 1000


def test_too_little_to_hold_out_is_refused_in_a_sentence():
    with pytest.raises(UploadError, match="of 12 queries"):
        yours.split(ORIGINS[:12])
    with pytest.raises(UploadError, match="here 0 are known, of 0 queries"):
        yours.split(torch.full((60,), -1))


def methods(*names):
    known = {method.name: method for method in yours.METHODS}
    return [known[name] for name in names]


@pytest.mark.slow
def test_every_method_has_a_line_and_b_hop_learns_the_shift(found):
    rows = {row.method.name: row for row in yours.rows(found, yours.split(ORIGINS))}
    assert list(rows) == [method.name for method in yours.METHODS] and not any(row.problem for row in rows.values())
    assert rows["b-hop"].right > 0.9 > rows["m-hop"].right
    for name, row in rows.items():
        assert np.isnan(row.calibration) if name in (NEAREST, RIDGE) else 0 <= row.calibration <= 1
        assert all(0 <= value <= 1.001 for point in row.curve for value in point)


def test_plain_methods_stand_beside_and_learn_from_the_first_half_alone(found, monkeypatch):
    monkeypatch.setattr(yours, "METHODS", methods(NEAREST, RIDGE))
    halves = yours.split(ORIGINS)
    nearest, ridge = yours.rows(found, halves)
    assert nearest.right > 0.9 and not nearest.problem and not ridge.problem
    # Wrong pairs in the half that is scored teach nothing.
    origins = ORIGINS.clone()
    origins[halves.score] = (origins[halves.score] + 1) % 16
    _, misled = yours.rows(replace(found, origins=origins), halves)
    choices = by_ridge(found.stored.values, found.incoming.values, ORIGINS, *halves)
    assert misled.right == float((choices == origins[halves.score]).double().mean())


def test_a_method_does_the_same_whatever_it_is_called(found, monkeypatch):
    known = methods(RIDGE, "m-hop")
    monkeypatch.setattr(yours, "METHODS", [*known, *(method._replace(name="something") for method in known)])
    one, two, *others = yours.rows(found, yours.split(ORIGINS))
    assert [row.right for row in others] == [one.right, two.right] and not any(row.problem for row in others)


def test_a_method_that_cannot_take_part_says_why_and_the_others_go_on(found, monkeypatch):
    def create(name, patterns):
        raise ValueError("it cannot") if name == "u-hop" else LookupError

    monkeypatch.setattr(yours, "METHODS", methods("u-hop", NEAREST))
    monkeypatch.setattr(yours, "create", create)
    first, second = yours.rows(found, yours.split(ORIGINS))
    assert first.problem == "it cannot" and not second.problem


def test_what_takes_long_with_many_stored_values_stays_out(found, monkeypatch):
    monkeypatch.setattr(yours, "_MAX_SLOW_VALUES", 79)
    monkeypatch.setattr(yours, "METHODS", methods("a-hop"))
    (row,) = yours.rows(found, yours.split(ORIGINS))
    assert row.problem == "left out: it takes long with more than 79 stored values"


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [None, PAIRS], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("once", [False, True])
def test_the_command_writes_what_the_page_gives_to_save(pairs, once, tmp_path):
    for file in filter(None, (STORED, INCOMING, pairs)):
        (tmp_path / file.name).write_bytes(file.content)
    held, asked = upload.table(STORED), upload.table(INCOMING)
    origins = None if pairs is None else upload.origins(pairs, held, asked)
    saved = yours.downloads(linkage.link(held, asked, origins, one_to_one=once, verbose=False))
    line = yours.command("stored.csv", "rows.csv", pairs and pairs.name, once=once)
    subprocess.run([sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, check=True, capture_output=True)
    assert [file.name for file in saved] == ["matches.csv", "report.html"]
    assert (tmp_path / "matches.csv").read_bytes() == saved[0].content


def test_the_example_has_gaps_and_decimal_commas_and_is_read():
    stored, incoming, pairs = yours.example()
    held, asked = upload.table(stored), upload.table(incoming)
    assert held.values.shape == (60, 64) and asked.values.shape == (240, 64) and np.isnan(asked.values).any()
    assert "decimal commas" in asked.dialect and int((upload.origins(pairs, held, asked) >= 0).sum()) == 120


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((File("x.csv", b""), INCOMING), "x.csv is empty."),
        ((STORED, INCOMING, File("p.csv", b"a,b\nc,d\n")), "p.csv names ids that rows.csv does not have: 'c'."),
        ((File("x.csv", b"x0\n1\n1\n"), INCOMING), "x"),
    ],
    ids=["empty", "pairs", "constant"],
)
def test_a_bad_file_is_a_message_and_no_error(files, said):
    *_, last = matched(*files)
    assert last.startswith('<p class="message" role="alert">') and said in unescape(last)


@pytest.mark.slow
def test_rows_are_matched_shown_and_saved_though_no_pair_is_known():
    *_, last = matched(STORED, INCOMING)
    assert "not checked" in last and "50 of 60; matches.csv has all" in last and last.count('class="spark"') == 50
    assert 'download="matches.csv"' in last and 'download="report.html"' in last and "here 0 are known" in last


def test_names_in_a_table_are_no_part_of_the_page(found):
    hostile = Table(np.array(["<b>${x}", *range(59)], dtype=object), found.incoming.columns, found.incoming.values)
    text = views.matches(replace(found, incoming=hostile, origins=torch.full((60,), -1)))
    assert "<b>" not in text and "${" not in text and "<b>${x}" in unescape(text)


@pytest.mark.parametrize("missing", [False, True])
def test_trust_is_drawn_from_the_pairs_that_are_scored_alone(found, missing):
    halves = yours.split(ORIGINS)
    values = found.incoming.values.copy()
    # Nothing of these rows may be looked at.
    values[halves.learn] = np.inf
    values[halves.score[:3], 0] = np.nan if missing else 0.0
    asked = replace(found, incoming=replace(found.incoming, values=values))
    reliability, risk = yours.curves(found.memory, asked, halves)
    assert f"{len(halves.score)} queries" in reliability and f"all {len(halves.score)} are answered" in risk
    assert views.trust([reliability, risk]).count("<svg") == 2 and not views.trust([])
