import pytest
import torch
from tests.guards import Watch, apart, rows

import ahop
from ahop._queries import Queries
from ahop.comparison import comparing
from ahop.comparison.plain import BASELINES, Fold
from ahop.linkage.alternatives import regressed
from ahop.memories import BayesianHopfield
from ahop.memories.names import known_names

DRAW = torch.Generator().manual_seed(0)
PATTERNS = torch.randn(12, 5, generator=DRAW)
ORIGINS = torch.arange(12).repeat(2)
QUERIES = PATTERNS[ORIGINS] + 0.3 * torch.randn(24, 5, generator=DRAW) + 2


@pytest.fixture
def few(monkeypatch):
    """Three memories alone, to save time."""
    monkeypatch.setattr(comparing, "known_names", lambda: ["b-hop", "hop", "m-hop"])


def named(found):
    return {row.name: row for row in found.rows}


def test_baselines_come_first_then_b_hop_then_the_other_memories_and_each_query_judges_once(few):
    found = ahop.compare(PATTERNS, QUERIES, ORIGINS)
    assert [row.name for row in found.rows] == [
        *(one.name for one in BASELINES),
        "b-hop",
        "b-hop, no labels",
        "hop",
        "m-hop",
    ]
    assert all(len(row.right) == 24 for row in found.judged)
    by_name = named(found)
    assert by_name["b-hop"].accuracy > by_name["nearest by L2"].accuracy and by_name["b-hop"].confidence > 0
    assert "must be -1 or +1" in by_name["hop"].note and not len(by_name["hop"].right)


def test_no_memory_is_judged_by_an_origin_that_it_has_learned_from(few, monkeypatch):
    watch = Watch(monkeypatch).on(BayesianHopfield, "fit", lambda self, *_, **__: self).on(BayesianHopfield, "recall")
    ahop.compare(PATTERNS, QUERIES, ORIGINS)
    origin = {row.numpy().tobytes(): int(place) for row, place in zip(QUERIES, ORIGINS, strict=True)}
    fits = watch.of("fit")
    # Without labels as with them.
    assert len(fits) == 4
    judged = []
    for fit in fits:
        recall = next(call for call in watch.after(fit) if call.what == "recall")
        learned, asked = ({origin[row] for row in rows(call.queries.numpy())} for call in (fit, recall))
        apart(learned, asked)
        judged += sorted(asked)
    assert sorted(judged) == sorted(2 * list(range(12)))


def test_patterns_that_are_stored_twice_count_as_one(monkeypatch):
    monkeypatch.setattr(comparing, "known_names", list)
    twice = torch.cat([PATTERNS, PATTERNS])
    found = ahop.compare(twice, PATTERNS[ORIGINS], ORIGINS + 12)
    assert named(found)["nearest by L2"].accuracy == 1


def test_no_answer_is_not_the_last_pattern(monkeypatch):
    def mute(patterns):
        return ahop.AssociativeMemory(patterns, "distance", ahop.separation.Epanechnikov(1e9))

    monkeypatch.setattr(comparing, "known_names", lambda: ["mute"])
    monkeypatch.setattr(comparing, "create", lambda name, patterns: mute(patterns))
    assert named(ahop.compare(PATTERNS, QUERIES, ORIGINS))["mute"].accuracy == 0


@pytest.mark.parametrize("name", ["m-hop", pytest.param("b-hop", marks=pytest.mark.slow)])
def test_queries_of_another_width_leave_what_maps_them(name, monkeypatch):
    monkeypatch.setattr(comparing, "known_names", lambda: [name])
    wide = QUERIES @ torch.randn(5, 9, generator=DRAW)
    found = named(ahop.compare(PATTERNS, wide, ORIGINS))
    assert found["nearest by cosine"].note == "queries have another width than patterns"
    assert len(found["ridge regression, cosine"].right) == 24
    assert len(found[name].right) == 24 * (name == "b-hop") and bool(found[name].note) == (name == "m-hop")


def test_missing_values_are_means_to_baselines():
    rows, seen = torch.tensor([[1.0, 0.0], [3.0, 8.0]]), torch.tensor([[True, False], [True, True]])
    fold = Fold(PATTERNS[:, :2], Queries(rows, seen), ORIGINS[:2], Queries(rows + 1, ~seen))
    assert fold.train.tolist() == [[1.0, 8.0], [3.0, 8.0]] and fold.wanted.tolist() == [[2.0, 1.0], [2.0, 8.0]]
    whole = Fold(PATTERNS[:, :2], Queries(rows), ORIGINS[:2], Queries(rows + 1))
    assert whole.train is rows and whole.wanted.equal(rows + 1)


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("nearest by L2", lambda: torch.cdist(QUERIES, PATTERNS).argmin(1)),
        (
            "nearest by correlation",
            lambda: torch.corrcoef(torch.cat([QUERIES, PATTERNS]))[:24, 24:].argmax(1),
        ),
        (
            "nearest by centred cosine",
            lambda: torch.cosine_similarity(
                (QUERIES - QUERIES.mean(0))[:, None], (PATTERNS - PATTERNS.mean(0))[None], dim=-1
            ).argmax(1),
        ),
    ],
)
def test_a_baseline_is_what_its_name_says(name, truth):
    fold = Fold(PATTERNS, Queries(QUERIES), ORIGINS, Queries(QUERIES))
    (baseline,) = (one for one in BASELINES if one.name == name)
    assert baseline.answer(fold).equal(truth())


@pytest.mark.slow
def test_every_memory_has_a_row():
    found = ahop.compare(PATTERNS.sign(), QUERIES - 2, ORIGINS, seed=1)
    assert {row.name for row in found.rows} == {*(one.name for one in BASELINES), *known_names(), "b-hop, no labels"}
    assert all(
        len(row.right) == 24 for row in found.rows if row.name not in ("d-hop", "e-hop", "f-hop", "hop", "q-hop")
    )


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="queries must be a matrix, one row each, got shape"):
        ahop.compare(PATTERNS, QUERIES[0], [0])
    with pytest.raises(ValueError, match="origins must be between 0 and 11"):
        ahop.compare(PATTERNS, QUERIES, ORIGINS - 1)
    with pytest.raises(ValueError, match="origins must include at least 2 patterns, for some to be held out; got 1"):
        ahop.compare(PATTERNS, QUERIES, 0 * ORIGINS)


def test_csls_takes_from_each_pattern_how_near_it_is_to_queries():
    draw = torch.Generator().manual_seed(3)
    patterns, queries = torch.randn(40, 6, generator=draw), torch.randn(30, 6, generator=draw)
    origins = torch.arange(20)
    fold = Fold(patterns, Queries(queries[:20]), origins, Queries(queries[20:]))
    plain, corrected = (one.answer for one in BASELINES if one.name.startswith("ridge regression"))
    centre = patterns.mean(0)
    predicted = regressed(queries[:20], patterns[origins], queries[20:]) - centre
    cosines = torch.cosine_similarity(predicted[:, None], (patterns - centre)[None], dim=-1)
    hubness = cosines.topk(10, 0).values.mean(0)
    assert plain(fold).equal(cosines.argmax(1)) and corrected(fold).equal((2 * cosines - hubness).argmax(1))
    assert not plain(fold).equal(corrected(fold))


def test_without_labels_b_hop_learns_from_the_same_queries_and_no_origins(few, monkeypatch):
    watch = Watch(monkeypatch).on(BayesianHopfield, "fit", lambda self, *_, **__: self)
    ahop.compare(PATTERNS, QUERIES, ORIGINS)
    with_labels, without = watch.of("fit")[:2], watch.of("fit")[2:]
    assert all(one.queries.equal(other.queries) for one, other in zip(with_labels, without, strict=True))
    assert all(one.origins is None for one in without) and all(one.origins is not None for one in with_labels)
