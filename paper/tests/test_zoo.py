import importlib.util
import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.guards import Watch, apart, rows
from typer.testing import CliRunner

from ahop.memories import AssociativeMemory, ModernHopfield
from ahop.memories.names import known_names
from ahop.metrics import calibration_gap
from ahop.separation import Separation, Softmax
from ahop.variants import Masked, Samples
from ahop_paper import lineage, zoo, zoo_costs, zoo_memories, zoo_worlds
from ahop_paper.commands import app
from ahop_paper.pages import tables
from ahop_paper.pages.markdown import Grid
from ahop_paper.spread import with_interval
from ahop_paper.zoo_worlds import TRIALS, Size

SIZE = Size(patterns=40, dim=16, samples=40, queries=50, items=20, texts=40)
DRAWN = ("damaged .4", "damaged .5", "rounded", "masked", "rotated", "mixtures", "strangers", "replicates")


def small(*models, worlds=("damaged .4", "strangers"), **more):
    settings = {"size": SIZE, "most": 16, "runs": 2, **more}
    return zoo.Config(worlds, models, **settings)


@pytest.fixture(autouse=True)
def one_code(monkeypatch):
    """Which code a row depends on is for the tests of lineage, and takes seconds to find out."""
    monkeypatch.setattr(lineage, "fingerprint", lambda *roots: "code")


def test_every_network_and_every_separation_of_the_library_takes_part():
    everyone = zoo.Config().models
    assert set(known_names()) <= set(everyone)
    for name in ("softmax", "sparsemax", "entmax", "argmax", "exponential"):
        assert f"distance, {name}" in everyone
    assert {"dot, identity", "dot, power", "nearest by L2", "nearest by cosine", "b-hop*"} <= set(everyone)


def test_a_separation_joins_by_being_in_the_library_and_one_of_a_user_does_not(monkeypatch):
    for module in ("ahop.separation.new", "notebook"):
        new = type("New", (Softmax,), {"__module__": module, "name": f"new-{module}"})
        monkeypatch.setitem(Separation.members, new.name, new)
    found = zoo_memories.models()
    assert "distance, new-ahop.separation.new" in found and "distance, new-notebook" not in found


@pytest.mark.slow
def test_a_run_measures_every_world_and_goes_on_where_it_was_stopped(tmp_path):
    out = tmp_path / "zoo.json"
    first = zoo.run(small("m-hop"), out)
    both = zoo.run(small("m-hop", "hop", "nearest by L2"), out)
    assert both["done"][: len(first["done"])] == first["done"]
    assert json.loads(out.read_text())["rows"] == both["rows"]
    found = {(row["world"], row["model"]): row for row in both["rows"]}
    for model in ("m-hop", "hop", "nearest by L2"):
        assert (
            found["damaged .4", "oracle"]["first_choice"]["mean"] >= found["damaged .4", model]["first_choice"]["mean"]
        )
        assert 0 <= found["strangers", model]["strangers_auroc"]["mean"] <= 1
        assert 0 <= found["capacity", model]["capacity"]["mean"] <= 16
    assert "calibration_error" not in found["damaged .4", "nearest by L2"], "it does not say how sure it is"
    assert found["damaged .4", "hop"]["signs"] and not found["damaged .4", "m-hop"]["signs"]


@pytest.mark.slow
def test_two_processes_find_the_same_as_one():
    config = small("m-hop", worlds=("mixtures",))
    alone, shared = (zoo.run(config, workers=workers)["rows"] for workers in (1, 2))
    assert alone == shared


@pytest.mark.parametrize("world", DRAWN)
def test_nothing_is_asked_that_was_learned_from(world, monkeypatch):
    watch = Watch(monkeypatch).on(zoo_memories, "_taught", lambda memory, queries, origins: memory)
    watch.on(zoo, "answer")
    zoo.tried(world, "a-hop", 0, Size(patterns=40, samples=40, queries=50))
    apart(rows(*(call.queries for call in watch.of("_taught"))), rows(*(call.queries for call in watch.of("answer"))))


@pytest.mark.parametrize("world", ["digits", "tablets", "MS2", "text models"])
def test_no_measured_item_is_asked_that_was_learned_from(world):
    if not TRIALS[world].here():
        pytest.skip("its data are not here")
    trial = TRIALS[world].draw(1, SIZE)
    assert len(trial.train.origins) and len(trial.answers)
    assert not set(trial.train.origins.tolist()) & set(trial.answers.flatten().tolist())
    assert TRIALS[world].one_space == (trial.asked.shape[1] == trial.patterns.shape[1])


def test_a_mixture_is_the_mean_of_the_two_patterns_that_count_as_right(monkeypatch):
    monkeypatch.setattr(zoo_worlds, "BLUR", 0.0)
    trial = TRIALS["mixtures"].draw(0, SIZE)
    torch.testing.assert_close(trial.asked, trial.patterns[trial.answers].mean(1))
    assert (trial.answers[:, 0] != trial.answers[:, 1]).all()


def test_who_knows_that_queries_are_mixtures_is_right_at_least_as_often_as_the_nearest():
    size = Size(patterns=60, dim=16, queries=400)
    right = {model: zoo.tried("mixtures", model, 0, size)["first_choice"] for model in ("oracle", "nearest by L2")}
    assert right["oracle"] > right["nearest by L2"]


def test_the_likelihood_of_a_mixture_is_summed_over_who_may_be_the_other():
    patterns, queries = torch.rand(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    by_hand = torch.stack(
        [
            torch.logsumexp(
                torch.stack(
                    [-(queries - (patterns[i] + patterns[j]) / 2).square().sum(1) / 0.18 for j in range(5) if j != i]
                ),
                0,
            )
            for i in range(5)
        ],
        1,
    )
    # But for what belongs to the query alone.
    found = zoo_worlds.either_of_two(patterns, 0.3).score(patterns, queries)
    torch.testing.assert_close(found - found[:, :1], by_hand - by_hand[:, :1])


def test_one_query_in_five_is_a_stranger_and_no_stranger_is_stored():
    trial = TRIALS["strangers"].draw(0, SIZE)
    for origins in (trial.train.origins, trial.answers[:, 0]):
        assert int((origins < 0).sum()) == round(0.2 * len(origins))
    assert len(trial.patterns) == SIZE.patterns


def test_replicates_scatter_around_their_pattern_as_far_as_its_own_spread_says(monkeypatch):
    for none in ("Noisy", "Biased"):
        monkeypatch.setattr(zoo_worlds, none, lambda by: Masked(0.0))
    trial = TRIALS["replicates"].draw(0, Size(patterns=5, dim=4, samples=10_000))
    assert trial.train.spread.max() > 2 * trial.train.spread.min()
    for own, spread in enumerate(trial.train.spread):
        off = trial.train.queries[trial.train.origins == own] - trial.patterns[own]
        torch.testing.assert_close(off.square().mean(0).sqrt(), spread, rtol=0.1, atol=0)


def test_who_is_told_the_spread_of_replicates_is_ahead_and_near_the_ceiling():
    size = Size(patterns=60, dim=32, samples=100)
    right = {
        model: zoo.tried("replicates", model, 0, size)["first_choice"]
        for model in ("oracle", "g-hop, with spread", "g-hop", "nearest by L2")
    }
    assert right["oracle"] - 0.05 < right["g-hop, with spread"]
    assert right["g-hop, with spread"] > max(right["g-hop"], right["nearest by L2"]) + 0.2


def test_who_asks_for_a_spread_takes_part_where_there_is_one_and_nowhere_else():
    config = small("g-hop", "g-hop, with spread", worlds=("damaged .4", "replicates"), runs=1)
    asked = {(world, model) for world, model, _ in zoo._jobs(config) if model == "g-hop, with spread"}
    assert asked == {("replicates", "g-hop, with spread")}
    assert all(one.worlds_alone for one in zoo_memories.models().values() if one.spread)


def test_units_of_minus_one_and_one_store_signs_around_the_mean():
    patterns = torch.rand(8, 6, generator=torch.Generator().manual_seed(0)) + 5
    made = zoo_memories.network("hop", patterns, Samples(patterns, torch.arange(8)))
    assert made.centre is not None
    assert made.memory.patterns.equal(zoo_memories.signs(patterns - patterns.mean(0)))
    made.store(patterns[:2] + 1)
    assert made.memory.patterns[8:].eq(1).all() and len(made.memory) == 10


class Mean:
    """A network that keeps nothing but a sum, and reads out queries as they are."""

    def __init__(self, patterns):
        self.sum = patterns.sum(0)

    def add(self, patterns):
        self.sum = self.sum + patterns.sum(0)

    def remove(self, patterns):
        self.sum = self.sum - patterns.sum(0)

    def retrieve(self, queries):
        return queries

    def energy(self, queries):
        return queries.square().sum(1)


def test_a_network_that_keeps_no_patterns_is_asked_for_the_nearest_to_what_it_reads_out(monkeypatch):
    monkeypatch.setattr(zoo_memories, "create", lambda name, patterns: Mean(patterns))
    patterns = torch.rand(8, 6, generator=torch.Generator().manual_seed(0))
    made = zoo_memories.network("mean", patterns, Samples(patterns, torch.arange(8)))
    first, sure, familiar = zoo_memories.answer(made, patterns)
    assert first.equal(torch.arange(8)) and sure is None
    assert familiar.argmax() == patterns.norm(dim=1).argmin()
    made.store(patterns[:2])
    assert len(made.memory) == 10 and len(made.memory.remove(torch.arange(8))) == 2
    torch.testing.assert_close(made.memory.network.sum, patterns[:2].sum(0))
    assert made.memory.readouts.equal(patterns[:2])


def test_a_temperature_is_set_by_labels():
    trial = TRIALS["damaged .5"].draw(0, Size())
    tuned = zoo_memories.parts("distance", "softmax", trial.patterns, trial.train).memory
    gaps = []
    for memory in (tuned, AssociativeMemory(trial.patterns, "distance", "softmax")):
        first, sure = memory.recall(trial.asked)
        gaps.append(calibration_gap(sure.squeeze(1), (first == trial.answers).squeeze(1)))
    assert gaps[0] < gaps[1] / 2


def test_a_reach_that_answers_nothing_is_not_the_best():
    trial = TRIALS["damaged .4"].draw(0, SIZE)
    memory = zoo_memories.parts("distance", "epanechnikov", trial.patterns, trial.train).memory
    assert (memory.recall(trial.asked).indices >= 0).double().mean() > 0.5


@given(truth=st.integers(2, 5000))
def test_a_capacity_is_found_to_a_sixteenth(truth):
    found = zoo_costs.largest(lambda count: count <= truth, 4096)
    assert found <= min(truth, 4096) and found > min(truth, 4096) * 15 / 17 - 1


def test_a_classical_network_holds_the_least_and_a_modern_one_the_most():
    known = zoo_memories.models()
    hop, dense, modern = (zoo_costs.capacity(known[name], 0, 512) for name in ("hop", "d-hop", "m-hop"))
    assert 2 <= hop < dense < modern == 512


def test_a_peak_is_what_torch_and_numpy_hold_at_once():
    def work():
        scores = torch.ones(2**20)
        weights = torch.softmax(scores, 0)
        return scores, weights, weights.double().numpy().copy()

    def one_after_another():
        torch.ones(2**20)
        torch.ones(2**20)

    # 4 and 4 and 8 mebibytes by torch, 8 by numpy.
    assert zoo_costs._peak(work, "cpu") == pytest.approx(24 * 2**20, rel=0.01)
    assert zoo_costs._peak(one_after_another, "cpu") == pytest.approx(4 * 2**20, rel=0.01)


def test_a_ratio_is_that_of_times_by_turns_and_the_first_turns_are_left_out(monkeypatch):
    clock, order = [0.0], []

    def takes(name, seconds):
        def work():
            order.append(name)
            clock[0] += seconds * (len(order) if len(order) <= 2 * zoo_costs.LEFT_OUT else 1)

        return work

    monkeypatch.setattr(zoo_costs.time, "process_time", lambda: clock[0])
    assert zoo_costs.ratio(takes("one", 6.0), takes("other", 2.0), "cpu") == (3.0, (3.0, 3.0), 2.0)
    assert order == ["one", "other"] * (zoo_costs.LEFT_OUT + zoo_costs.FEWEST)


def test_a_ratio_lies_between_the_quartiles_of_its_turns(monkeypatch):
    clock, seconds = [0.0], iter([1.0] * 3 + [0.1, 0.2, 0.3, 0.4, 0.5] * 50)

    def one():
        clock[0] += next(seconds)

    def other():
        clock[0] += 0.1

    monkeypatch.setattr(zoo_costs.time, "process_time", lambda: clock[0])
    monkeypatch.setattr(zoo_costs, "REPETITIONS", 5)
    monkeypatch.setattr(zoo_costs, "ENOUGH", 100.0)
    found = zoo_costs.ratio(one, other, "cpu")
    assert (found.times, *found.quartiles, found.beside) == pytest.approx((3.0, 2.0, 4.0, 0.1))


def test_costs_are_those_of_one_thread_and_leave_the_number_as_it_was(threads, monkeypatch):
    threads(2)
    seen = []
    monkeypatch.setattr(
        ModernHopfield, "recall", lambda self, queries: seen.append((len(self), torch.get_num_threads()))
    )
    zoo_costs.cost(zoo_memories.models()["m-hop"], (300, 500), "cpu")
    assert set(seen) == {(300, 1), (500, 1)} and torch.get_num_threads() == 2


def benchmark():
    """``benchmarks/zoo_costs.py``, which is no module of a package."""
    path = Path(__file__).parents[2] / "benchmarks" / "zoo_costs.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_costs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("device", "report"), [("cpu", "zoo-costs.json"), ("meta", "zoo-costs-meta.json")])
def test_costs_are_measured_where_they_are_asked_for_and_each_device_has_its_report(device, report, monkeypatch):
    measured, written, costs = [], [], benchmark()
    network = zoo_memories.Model(zoo_memories.nearest)
    monkeypatch.setattr(costs, "models", lambda: {"m-hop": network, "b-hop*": network._replace(worlds_alone=True)})
    monkeypatch.setattr(costs, "cost", lambda *asked: measured.append(asked) or [])
    monkeypatch.setattr(costs.report, "write", lambda found, target: written.append((found, target)))
    costs.main(["--quick", "--device", device])
    assert measured == [(network, costs.FEW, device)] and not written
    costs.main(["--device", device])
    assert measured[1:] == [(network, costs.COUNTS, device)]
    found, target = written[0]
    assert target.name == report and found["config"]["device"] == device
    with pytest.raises(ValueError, match="device must be one that PyTorch can use here, got 'gpu'"):
        costs.main(["--device", "gpu"])


def report(rows, **config):
    return {"config": {"most": 64, "size": vars(Size()), **config}, "rows": rows}


def row(world, model, *, labels=False, **figures):
    spreads = {
        key: {"mean": value, "runs": [value, value], "low": value - 0.1, "high": value + 0.1}
        for key, value in figures.items()
    }
    return {"world": world, "model": model, "labels": labels, "signs": False, **spreads}


def test_who_is_right_as_often_everywhere_shares_a_line_below_the_ceiling():
    found = tables.zoo(
        report(
            [
                row("rounded", "distance, softmax", first_choice=0.5),
                row("rounded", "distance, argmax", first_choice=0.5),
                row("rounded", "a-hop", first_choice=0.6),
                row("rounded", "oracle", first_choice=0.9),
            ]
        )
    )
    lines = [["**ceiling**", ".900 ± .100"], ["a-hop", ".600 ± .100"], ["distance, softmax, argmax", ".500 ± .100"]]
    assert found == Grid(["", "rounded"], lines)


def test_who_was_in_one_world_alone_leaves_the_order_of_the_others_as_it_is():
    rows = [
        *(row("rounded", name, first_choice=value) for name, value in (("a-hop", 0.9), ("m-hop", 0.5))),
        *(row("replicates", name, first_choice=value) for name, value in (("a-hop", 0.2), ("m-hop", 0.3))),
        row("replicates", "g-hop, with spread", first_choice=0.6),
    ]
    assert [line[0] for line in tables.zoo(report(rows)).lines] == ["g-hop, with spread", "a-hop", "m-hop"]


def test_the_advice_names_the_best_with_labels_and_without():
    found = tables.zoo_advice(
        report(
            [
                row("MS2", "b-hop", labels=True, first_choice=0.8),
                row("MS2", "m-hop", first_choice=0.5),
                row("MS2", "nearest by L2", first_choice=0.5),
            ]
        )
    )
    assert found.lines == [["MS2", "", "**b-hop** .800", "nearest by L2 .500", ".500", ""]]


def test_what_may_be_chance_is_not_advised():
    rows = [
        row("text models", "b-hop", labels=True, first_choice=0.4),
        row("text models", "b-hop*", first_choice=0.002),
        row("MS2", "ridge", labels=True, first_choice=0.004),
        row("MS2", "m-hop", first_choice=0.02),
    ]
    assert tables.zoo_advice(report(rows)).lines == [
        ["text models", "", "**b-hop** .400", "none without labels", "", ""],
        ["MS2", "", "none with labels", "m-hop .020", "", ""],
    ]


def test_calibration_and_strangers_share_a_table():
    rows = [
        row("strangers", "m-hop", calibration_error=0.2, strangers_auroc=0.7),
        row("strangers", "ridge", strangers_auroc=0.6),
    ]
    assert tables.zoo_trust(report(rows)).lines == [
        ["m-hop", ".200 ± .100", ".700 ± .100"],
        ["ridge", "", ".600 ± .100"],
    ]


def test_capacities_say_where_the_search_ended_and_what_depends_on_the_seed():
    runs = {
        "m-hop": [64, 64],
        "k2-hop": [32, 64],
        "hop": [5, 5],
        "k-hop": [4, 8],
        "distance, softmax": [64, 64],
        "distance, argmax": [64, 64],
    }
    rows = [{"world": "capacity", "model": name, "capacity": with_interval(held)} for name, held in runs.items()]
    assert tables.zoo_capacity(report(rows)).lines == [
        ["hop", "5"],
        ["k-hop", "6 (4 to 8)"],
        ["k2-hop", "≥ 48 (32 to ≥ 64)"],
        ["m-hop; distance, softmax, argmax", "≥ 64"],
    ]


def test_the_cheapest_comes_first_and_less_than_a_kibibyte_is_not_none():
    costs = {
        "a-hop": [{"patterns": 10, "times": 1.25, "bytes": 2048}, {"patterns": 1000, "times": 12.4, "bytes": 10**7}],
        "m-hop": [{"patterns": 10, "times": 2.25, "bytes": 1024}, {"patterns": 1000, "times": 3.0, "bytes": 400}],
    }
    found = tables.zoo_costs(
        {"config": {"counts": [10, 1000]}, "rows": [{"model": name, "costs": one} for name, one in costs.items()]}
    )
    assert found.head == ["", "10 patterns: time", "10 patterns: KiB", "1,000 patterns: time", "1,000 patterns: KiB"]
    assert found.lines == [["m-hop", "2.2", "1", "3.0", "< 1"], ["a-hop", "1.2", "2", "12", "9,766"]]


def test_what_cannot_be():
    with pytest.raises(ValueError, match=r"unknown world 'nowhere'; known: 'damaged .4'"):
        zoo.Config(worlds=("nowhere",))
    with pytest.raises(ValueError, match=r"models must be one of .*'m-hop'.*, got 'cat-hop'"):
        zoo.Config(models=("cat-hop",))
    with pytest.raises(ValueError, match="worlds must name at least one, got none"):
        zoo.Config(worlds=())


def test_the_command_shows_its_tables(tmp_path):
    out = tmp_path / "zoo.json"
    asked = [
        "zoo",
        "--quick",
        "--world",
        "rounded",
        "--world",
        "strangers",
        "--model",
        "m-hop",
        "--model",
        "nearest by L2",
    ]
    result = CliRunner(env={"COLUMNS": "160"}).invoke(app, [*asked, "--out", str(out)])
    assert result.exit_code == 0, result.output
    for told in ("ceiling", "AUROC", "≥", "report:"):
        assert told in result.output.replace("\n", "")
    assert json.loads(out.read_text())["quick"] and math.isfinite(json.loads(out.read_text())["sittings"][0]["seconds"])
