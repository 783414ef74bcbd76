import sys

import matplotlib
import numpy as np
import pytest
import torch

import ahop
from ahop._extras import MissingExtraError
from ahop.comparison import Comparison, Row
from ahop.learning.report import clopper_pearson
from ahop.memories import evidence_by_column
from ahop.metrics import calibration_error
from ahop.plot import canvas
from ahop.similarity import Floor, Gain, Likelihood, Moved, Regimes, Transformed

matplotlib.use("Agg")
from matplotlib import colors, pyplot
from matplotlib.figure import Figure

WORLD = ahop.variants.Mixed(mask=0.4, noise=0.4, bias=0.3)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


PATTERNS = noise(30, 8).clamp(-1, 1)
QUERIES, ORIGINS = WORLD.sample(PATTERNS, 200)
MEMORY = ahop.BayesianHopfield(PATTERNS)
FOUND = Comparison((Row("nearest by L2", ORIGINS < 20), Row("b-hop", ORIGINS < 29, 0.9, 0.1, 1.0)), patterns=30)
DRAWN = {
    "comparison": lambda ax=None: ahop.plot.comparison(FOUND, ax=ax),
    "confidence": lambda ax=None: ahop.plot.confidence(MEMORY, QUERIES, ax=ax),
    "corruption": lambda ax=None: ahop.plot.corruption(MEMORY, ax=ax),
    "energy": lambda ax=None: ahop.plot.energy(MEMORY, QUERIES[:3], ax=ax),
    "evidence": lambda ax=None: ahop.plot.evidence(MEMORY, QUERIES[0], ax=ax),
    "matches": lambda ax=None: ahop.plot.matches(MEMORY, QUERIES, ax=ax),
    "reliability": lambda ax=None: ahop.plot.reliability(MEMORY, QUERIES, ORIGINS, ax=ax),
    "risk_coverage": lambda ax=None: ahop.plot.risk_coverage(MEMORY, QUERIES, ORIGINS, ax=ax),
}


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def own():
    """Axes that pyplot knows nothing of."""
    return Figure().subplots()


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_drawn_in_the_axes_that_are_given_and_opens_no_figure(name):
    ax = own()
    assert DRAWN[name](ax) is ax and ax.has_data()
    assert not pyplot.get_fignums()
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", DRAWN)
def test_without_axes_one_figure_is_made_that_reads_on_white_and_on_black(name):
    ax = DRAWN[name]()
    assert pyplot.get_fignums() == [ax.figure.number]
    assert colors.to_rgba(ax.figure.get_facecolor())[3] == 0 and colors.to_rgba(ax.get_facecolor())[3] == 0
    ax.figure.canvas.draw()
    texts = [text for text in ax.findobj(matplotlib.text.Text) if text.get_text() and text.get_visible()]
    assert texts and {colors.to_hex(text.get_color()) for text in texts} == {canvas.GREY}


@pytest.mark.parametrize("colour", [canvas.BLUE, canvas.ORANGE, canvas.GREY])
def test_colours_have_contrast_enough_on_a_white_and_on_a_black_page(colour):
    def luminance(values):
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
        return sum(part * value for part, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    own = luminance(colors.to_rgb(colour)) + 0.05
    assert 1.05 / own >= 3 and own / 0.05 >= 3


def test_axes_that_are_given_keep_their_style():
    with matplotlib.rc_context({"text.color": "red", "axes.labelcolor": "red"}):
        ax = own()
    ahop.plot.evidence(MEMORY, QUERIES[0], ax=ax)
    assert {text.get_color() for text in ax.texts} == {"red"}


def test_bars_of_evidence_begin_where_the_last_ended_and_end_at_the_log_odds():
    ax, found = ahop.plot.evidence(MEMORY, QUERIES[0], columns=3, ax=own()), evidence_by_column(MEMORY, QUERIES[0])
    *bars, total = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    end = 0.0
    for start, width in bars:
        assert min(start, start + width) == pytest.approx(min(end, end + width))
        end += width
    assert end == pytest.approx(found.total) and total == pytest.approx((0, found.total))
    sizes = [width for _, width in bars[:3]]
    assert sizes == pytest.approx(sorted(found.columns.tolist(), key=abs, reverse=True)[:3])
    assert bars[3][1] == pytest.approx(float(found.columns.sum()) - sum(sizes))


def test_evidence_can_be_that_for_any_two_patterns():
    found = evidence_by_column(MEMORY, QUERIES[0])
    ax, turned = own(), own()
    ahop.plot.evidence(MEMORY, QUERIES[0], columns=3, ax=ax)
    ahop.plot.evidence(MEMORY, QUERIES[0], columns=3, pair=(found.second, found.first), ax=turned)
    there, back = ([bar.get_width() for bar in one.patches] for one in (ax, turned))
    assert back == pytest.approx([-width for width in there], abs=1e-4)
    assert turned.get_xlabel() == f"nats for pattern {found.second} against pattern {found.first}"
    scores = MEMORY.scores(QUERIES[0])
    ahop.plot.evidence(MEMORY, QUERIES[0], pair=(4, 7), ax=(third := own()))
    assert third.patches[-1].get_width() == pytest.approx(float(scores[4] - scores[7]), abs=1e-3)


def test_bars_of_evidence_have_the_names_of_their_columns_and_the_colour_of_their_sign():
    names = [f"sensor {letter}" for letter in "abcdefgh"]
    ax, found = ahop.plot.evidence(MEMORY, QUERIES[0], names, ax=own()), evidence_by_column(MEMORY, QUERIES[0])
    order = found.columns.abs().argsort(descending=True).tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == [*(names[place] for place in order), "log odds"]
    for bar in ax.patches[:-1]:
        assert bar.get_facecolor() == colors.to_rgba(canvas.BLUE if bar.get_width() >= 0 else canvas.ORANGE)


def by_hand():
    found = MEMORY.recall(QUERIES)
    return found.probabilities[:, 0].double(), found.indices[:, 0] == ORIGINS


def test_points_of_the_reliability_diagram_are_shares_of_right_answers_with_their_intervals():
    ax = ahop.plot.reliability(MEMORY, QUERIES, ORIGINS, bins=5, ax=own())
    sure, right = by_hand()
    (points,) = ax.containers[1:]
    line, _, (whiskers,) = points
    places = [(place / 5, (place + 1) / 5) for place in range(5)]
    inside = [(sure >= low) & (sure < high) if high < 1 else sure >= low for low, high in places]
    filled = [mask for mask in inside if mask.any()]
    assert len(filled) > 2
    assert line.get_xdata() == pytest.approx([float(sure[mask].mean()) for mask in filled])
    assert line.get_ydata() == pytest.approx([float(right[mask].double().mean()) for mask in filled])
    for mask, ((_, low), (_, high)) in zip(filled, whiskers.get_segments(), strict=True):
        assert (low, high) == pytest.approx(clopper_pearson(int(right[mask].sum()), int(mask.sum())))
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([float(mask.double().mean()) for mask in inside])
    assert f"{100 * calibration_error(MEMORY, (QUERIES, ORIGINS), 5):.1f} %" in ax.get_title()


def test_the_risk_coverage_curve_is_the_error_among_the_surest_and_ends_at_that_of_all():
    line = ahop.plot.risk_coverage(MEMORY, QUERIES, ORIGINS, ax=own()).lines[1]
    sure, right = by_hand()
    for share, risk in zip(*line.get_data(), strict=True):
        surest = sure.sort(descending=True).values[round(share * len(sure)) - 1]
        assert risk == pytest.approx(float((~right[sure >= surest]).double().mean()), abs=1e-6)
    assert line.get_xdata()[-1] == 1 and line.get_ydata()[-1] == pytest.approx(float((~right).double().mean()))


def test_queries_that_are_equally_sure_make_one_point_of_the_curve():
    memory = ahop.UniversalHopfield(PATTERNS)
    line = ahop.plot.risk_coverage(memory, QUERIES, ORIGINS, ax=own()).lines[1]
    wrong = 1 - ahop.metrics.first_choice_accuracy(memory, (QUERIES, ORIGINS))
    assert list(zip(*line.get_data(), strict=True)) == [(1.0, pytest.approx(wrong))]


def test_the_histogram_of_confidence_counts_every_query_and_says_whether_labels_have_checked_it():
    memory = ahop.BayesianHopfield(PATTERNS)
    ax = ahop.plot.confidence(memory, QUERIES, ax=own())
    assert sum(bar.get_height() for bar in ax.patches) == len(QUERIES)
    assert ax.lines[0].get_xdata()[0] == pytest.approx(float(by_hand()[0].mean()))
    assert "not checked" in ax.get_title()
    memory.verify(QUERIES[:60], ORIGINS[:60])
    assert "not checked" not in ahop.plot.confidence(memory, QUERIES, ax=own()).get_title()


def test_a_match_is_the_query_over_its_first_choice_and_the_runner_up():
    ax = ahop.plot.matches(MEMORY, QUERIES, rows=[7, 3], ax=own())
    assert len(ax.lines) == 6
    for place, (second, first, query) in zip([7, 3], zip(*[iter(ax.lines)] * 3, strict=True), strict=True):
        indices = MEMORY.recall(QUERIES[place], 2).indices.tolist()
        shift = query.get_ydata()[0] - float(QUERIES[place, 0])
        for line, row in ((first, PATTERNS[indices[0]]), (second, PATTERNS[indices[1]]), (query, QUERIES[place])):
            assert line.get_ydata() - shift == pytest.approx(row.numpy(), abs=1e-5)
        assert f"pattern {indices[0]}," in ax.get_yticklabels()[[7, 3].index(place)].get_text()


def test_a_query_that_misses_values_is_drawn_with_gaps_on_the_scale_of_the_others():
    lost = QUERIES[:4].clone()
    lost[1, 2:4] = torch.nan
    ax = ahop.plot.matches(MEMORY, lost, observed="not-nan", ax=own())
    second, first, query = (line.get_ydata() for line in ax.lines[3:6])
    assert np.isnan(query[2:4]).all() and np.isfinite(np.delete(query, [2, 3])).all()
    assert np.isfinite(first).all() and np.isfinite(second).all()
    ahop.plot.confidence(MEMORY, lost, observed="not-nan", ax=own())
    for origins in (None, ORIGINS[:4]):
        assert len(MEMORY.plot(lost, origins, observed="not-nan").axes) > 1


@pytest.mark.parametrize(
    ("similarity", "unit"),
    [
        (Likelihood(8), "in the units of the data"),
        (Gain(8), "factor"),
        (Floor(8), "share of values"),
        (Transformed(Likelihood(8), scale="square root"), "in the scale that is compared"),
    ],
)
def test_axes_of_a_corruption_say_what_they_show(similarity, unit):
    for names in (None, list("abcdefgh")):
        ax = ahop.plot.corruption(ahop.BayesianHopfield(PATTERNS, similarity=similarity), names, ax=own())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("column", unit)


def test_a_query_that_no_pattern_reaches_is_drawn_alone():
    memory = parts(PAIR, "distance", ahop.separation.Epanechnikov(4.0))
    near, far = (ahop.plot.matches(memory, PAIR[:1] + by, ax=own()) for by in (0.1, 9.0))
    assert [line.get_linestyle() for line in near.lines] == ["-", "--"]
    assert [line.get_linestyle() for line in far.lines] == ["--"]
    assert far.get_yticklabels()[0].get_text() == "query 0\na stranger"


def test_the_corruption_is_what_the_likelihood_tells_of_each_column():
    ax = ahop.plot.corruption(MEMORY, list("abcdefgh"), ax=own())
    (_, shift, _), (_, spread, _), _ = MEMORY.similarity.parts()[0][1].curves()
    assert ax.lines[1].get_ydata() == pytest.approx(shift.detach().numpy())
    assert ax.lines[2].get_ydata() == pytest.approx(spread.detach().numpy())
    assert [label.get_text() for label in ax.get_xticklabels()] == list("abcdefgh")


def test_of_many_columns_those_are_named_for_which_there_is_room():
    names = [str(1100 + 5 * place) for place in range(100)]
    memory = ahop.BayesianHopfield(torch.rand(20, 100), similarity=Likelihood(100))
    for ax in (
        ahop.plot.corruption(memory, names, ax=own()),
        ahop.plot.matches(memory, torch.rand(2, 100), names=names, ax=own()),
    ):
        assert [label.get_text() for label in ax.get_xticklabels()] == names[::3]
        assert ax.get_xticks().tolist() == list(range(0, 100, 3))


def test_of_several_kinds_of_queries_the_most_common_is_drawn():
    kinds = [Likelihood(8), Likelihood(8)]
    with torch.no_grad():
        kinds[1].bias.fill_(2.0)
        mixture = Regimes(kinds)
        mixture.log_rho.copy_(torch.tensor([0.2, 0.8]).log())
    ax = ahop.plot.corruption(ahop.BayesianHopfield(PATTERNS, similarity=mixture), ax=own())
    assert ax.lines[1].get_ydata() == pytest.approx([2.0] * 8) and "80 % of queries" in ax.get_title()


def test_a_moved_space_shows_one_value_a_column_and_not_its_stretch():
    ax = ahop.plot.corruption(ahop.BayesianHopfield(PATTERNS, similarity=Moved(8, query_dim=5)), ax=own())
    assert [len(line.get_xdata()) for line in ax.lines[1:]] == [5, 5]


def test_the_energy_of_two_dimensions_is_drawn_as_it_is_and_every_way_goes_downhill():
    patterns, starts = noise(5, 2), noise(4, 2, seed=1)
    memory = ahop.ModernHopfield(patterns, beta=4.0)
    ax = ahop.plot.energy(memory, starts, ax=own())
    stored, *ways, asked, _ = ax.lines
    assert stored.get_xydata() == pytest.approx(patterns.numpy())
    assert asked.get_xydata() == pytest.approx(starts.numpy())
    for start, way in zip(starts, ways, strict=True):
        places = torch.tensor(way.get_xydata(), dtype=torch.float32)
        torch.testing.assert_close(places[0], start)
        assert bool((memory.energy(places).diff() <= 1e-5).all()) and memory.energy(places[-1]) < memory.energy(start)


def lowest(ax):
    """Where the shade is strongest."""
    (picture,) = ax.images
    left, right, bottom, top = picture.get_extent()
    shade = picture.get_array()[..., 3]
    row, column = divmod(int(shade.argmax()), shade.shape[1])
    across, up = column / (shade.shape[1] - 1), row / (shade.shape[0] - 1)
    return torch.tensor([left + (right - left) * across, bottom + (top - bottom) * up])


PAIR, CORNERS = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])


def parts(patterns, similarity, separation):
    return ahop.AssociativeMemory(patterns, similarity, separation)


@pytest.mark.parametrize(
    ("memory", "wells"),
    [
        (ahop.ModernHopfield(PAIR, beta=8.0), PAIR),
        (ahop.GaussianHopfield(PAIR, spread=[[0.2, 0.2], [0.5, 0.5]]).fit(PAIR, [0, 1]), PAIR[:1]),
        (parts(PAIR, "distance", ahop.separation.Epanechnikov(4.0)), PAIR),
        (parts(PAIR, "dot", ahop.separation.Normmax(beta=8.0)), PAIR),
        # What is read out is the sum of a set.
        (parts(CORNERS, "dot", ahop.separation.KSubsets(2, 8.0)), CORNERS.sum(0) - CORNERS),
        (ahop.FourierHopfield(2, beta=8.0).add(PAIR), PAIR),
    ],
    ids=["m-hop", "g-hop", "epanechnikov", "normmax", "ksubsets", "f-hop"],
)
def test_the_shade_is_strongest_where_the_energy_is_lowest(memory, wells):
    given = {"patterns": PAIR} if isinstance(memory, ahop.FourierHopfield) else {}
    found = lowest(ahop.plot.energy(memory, ax=own(), **given))
    assert float((found - wells).norm(dim=1).min()) < 0.1


def test_the_boundary_of_two_basins_lies_halfway_between_their_patterns():
    ax = ahop.plot.energy(ahop.ModernHopfield(PAIR, beta=8.0), ax=own())
    dashed = [lines for lines in ax.collections if any(style[1] for style in lines.get_linestyles())]
    places = np.concatenate([path.vertices for lines in dashed for path in lines.get_paths()])
    assert np.abs(places[:, 0]).max() < 0.1 and np.ptp(places[:, 1]) > 0.2
    assert "basins" in [text.get_text() for text in ax.get_legend().get_texts()]
    alone = ahop.plot.energy(ahop.ModernHopfield(PAIR, beta=0.5), ax=own())
    assert "basins" not in [text.get_text() for text in alone.get_legend().get_texts()]


def test_a_query_that_no_pattern_reaches_stays_where_the_energy_is_flat():
    memory = parts(PAIR, "distance", ahop.separation.Epanechnikov(4.0))
    ax = ahop.plot.energy(memory, [[0.0, 1.5], [0.9, 0.3]], ax=own())
    _, stranger, near, *_ = (torch.tensor(line.get_xydata()).float() for line in ax.lines)
    assert bool((stranger == stranger[0]).all()) and float((near[-1] - PAIR[0]).norm()) < 0.1
    assert float(ax.images[0].get_array()[-1, 0, 3]) == 0


def test_more_dimensions_are_drawn_on_the_plane_of_the_first_two_principal_components():
    flat = torch.zeros(6, 5)
    flat[:, [1, 3]] = noise(6, 2) * torch.tensor([3.0, 1.0])
    stored = torch.tensor(ahop.plot.energy(ahop.ModernHopfield(flat), ax=own()).lines[0].get_xydata())
    torch.testing.assert_close(torch.cdist(stored, stored).float(), torch.cdist(flat, flat), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    "name", ["hop", "d-hop", "e-hop", "m-hop", "u-hop", "s-hop", "a-hop", "k-hop", "k2-hop", "g-hop", "b-hop"]
)
def test_every_memory_has_a_picture_of_its_energy(name):
    assert ahop.plot.energy(ahop.create(name, PATTERNS.sign()), QUERIES[:2], ax=own()).images


def test_a_first_look_shows_what_there_is_to_see():
    titles = [[ax.get_xlabel() for ax in MEMORY.plot(*given).axes] for given in ((), (QUERIES,), (QUERIES, ORIGINS))]
    sure = "probability of the first choice"
    assert titles == [["column"], ["column", sure], ["column", sure, "share of queries answered"]]
    (ax,) = ahop.ModernHopfield(PATTERNS).plot(QUERIES).axes
    assert ax.get_xlabel() == "first principal component"
    assert len(pyplot.get_fignums()) == 4


WIDE = ahop.BayesianHopfield(PATTERNS, similarity=Moved(8, query_dim=5))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: ahop.plot.corruption(ahop.ModernHopfield(PATTERNS)), "memory must have learned a likelihood.*'dot'"),
        (lambda: ahop.plot.corruption(MEMORY, ["a"]), "names must be 8, one for each column of the queries; got 1"),
        (lambda: ahop.plot.evidence(MEMORY, QUERIES[0], "abcdefgh"), "names must be 8.*got the text 'abcdefgh'"),
        (
            lambda: ahop.plot.evidence(MEMORY, QUERIES[0], pair=(3, 3)),
            r"pair must be two patterns.*0 to 29; got \(3, 3\)",
        ),
        (lambda: ahop.plot.evidence(MEMORY, QUERIES[0], pair=(3, 30)), r"pair must be two patterns.*; got \(3, 30\)"),
        (lambda: ahop.plot.evidence(MEMORY, QUERIES[0], columns=0), "columns must be an integer of at least 1"),
        (lambda: ahop.plot.reliability(MEMORY, QUERIES, ORIGINS[:3]), "origins must be one index per query"),
        (lambda: ahop.plot.reliability(MEMORY, QUERIES, ORIGINS, bins=0), "bins must be an integer of at least 1"),
        (lambda: ahop.plot.risk_coverage(MEMORY, QUERIES[:0], ORIGINS[:0]), "queries must be a non-empty matrix"),
        (lambda: ahop.plot.confidence(MEMORY, QUERIES[0]), "queries must be a non-empty matrix"),
        (
            lambda: ahop.plot.matches(MEMORY, QUERIES, rows=[200]),
            r"rows must be .* from 0 to 199; got \[200\]",
        ),
        (
            lambda: ahop.plot.matches(MEMORY, QUERIES, rows=[]),
            r"rows must be at least one row .*got \[\]",
        ),
        (lambda: ahop.plot.matches(WIDE, QUERIES[:, :5]), "memory must have queries as wide as its patterns, got 5"),
        (lambda: ahop.plot.energy(WIDE), "memory must have queries as wide as its patterns, got 5 for 8 values"),
        (lambda: ahop.plot.energy(ahop.ModernHopfield([[1.0]])), "memory must have at least two dimensions"),
        (lambda: ahop.plot.energy(MEMORY, patterns=PATTERNS), "patterns must be None: this memory keeps its own"),
        (lambda: ahop.plot.energy(ahop.FourierHopfield(2)), "patterns must be given: a memory that keeps none"),
        (lambda: ahop.plot.energy(ahop.FourierHopfield(2), patterns=PATTERNS), "patterns must have 2 values each"),
        (lambda: MEMORY.plot(origins=ORIGINS), "queries must be given with origins"),
        (lambda: MEMORY.plot(QUERIES, ORIGINS + 99), "origins must be between 0 and 29"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_leaves_no_figure(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
    assert not pyplot.get_fignums()


def test_a_comparison_shows_every_row_with_its_interval_and_the_best_in_blue():
    rows = (*FOUND.rows, Row("hop", note="patterns must be -1 or +1"))
    ax = Comparison(rows, 30).plot(ax=own())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b-hop", "nearest by L2"]
    for (line, _, (whisker,)), row in zip(ax.containers, FOUND.rows[::-1], strict=True):
        assert line.get_xdata()[0] == pytest.approx(row.accuracy)
        assert whisker.get_segments()[0][:, 0] == pytest.approx(row.interval)
    assert [container[0].get_color() for container in ax.containers] == [canvas.BLUE, canvas.GREY]
    assert ax.lines[-1].get_xdata() == pytest.approx([0.9])
    with pytest.raises(TypeError, match=r"found must be what ahop\.compare returns, got str"):
        ahop.plot.comparison("found")


def test_axes_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="ax must be the axes of a matplotlib figure or None, got Figure"):
        ahop.plot.confidence(MEMORY, QUERIES, ax=Figure())


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"matplotlib is not installed: pip install 'ahop\[plot\]'"):
        MEMORY.plot()
