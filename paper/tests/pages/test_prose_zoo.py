"""What the page of every memory advises is what its table says."""

from paper.tests.pages.sentences import one, rows, says

from ahop_paper.zoo_memories import NEAREST

PAGE = "docs/results/zoo.md"


def right(world):
    """Right first choices of every memory in a world."""
    found = rows("zoo", world=world)
    return {row["model"]: row["first_choice"]["mean"] for row in found if row["model"] != "oracle"}


def worlds():
    return dict.fromkeys(row["world"] for row in rows("zoo") if "first_choice" in row)


def test_with_labels_nobody_is_clearly_ahead_of_b_hop():
    assert says(PAGE, "**You can label a few hundred queries**: [`b-hop`]")
    for world in worlds():
        assert right(world)["b-hop"] > max(right(world).values()) - 0.03, world


def test_without_labels_b_hop_misses_what_the_page_says_it_misses():
    assert says(
        PAGE,
        "loses to the nearest pattern on rounded values, gains nothing on a rotation, and finds nothing in 500 texts",
    )
    assert right("rounded")["b-hop*"] < right("rounded")["nearest by L2"] - 0.05
    assert right("rotated")["b-hop*"] < max(right("rotated")[name] for name in NEAREST) + 0.05
    assert right("text models")["b-hop*"] < 0.1
    for world in worlds().keys() - {"rounded", "rotated", "text models"}:
        fixed = [row["first_choice"]["mean"] for row in rows("zoo", world=world, labels=False)]
        assert right(world)["b-hop*"] > max(fixed) - 0.03, world


def test_strangers_are_detected_by_familiarity_far_better_than_by_probabilities():
    assert says(PAGE, "The first probability of the others tells strangers far less well")
    told = {row["model"]: row["strangers_auroc"]["mean"] for row in rows("zoo") if "strangers_auroc" in row}
    ours = min(told.pop("b-hop"), told.pop("b-hop*"))
    assert ours > max(told.values()) + 0.05


def test_where_nothing_is_learned_no_network_is_better_than_the_nearest():
    assert says(PAGE, "No network that learns nothing is better")
    for world in ("rounded", "mixtures"):
        fixed = {name: value for name, value in right(world).items() if name not in ("b-hop*", *NEAREST)}
        learned = {row["model"] for row in rows("zoo", world=world, labels=True)}
        best = max(value for name, value in fixed.items() if name not in learned)
        assert best <= max(right(world)[name] for name in NEAREST) + 0.01, world


def test_a_classical_network_holds_least_and_an_exponential_one_all():
    assert says(PAGE, "**Bits, and a network as the textbooks have it**: `e-hop`")
    hop, dense, exponential = (
        one("zoo", "capacity", world="capacity", model=name) for name in ("hop", "d-hop", "e-hop")
    )
    assert hop < 12 < dense < exponential == 2**17


def whole(way):
    """The share of whole sets by how many patterns a query is the mean of."""
    return [one("blends", "whole", way=way, size=size) for size in (2, 3, 4)]


def test_the_best_of_one_step_find_a_set_and_at_rest_ksubsets_keep_it_and_softmax_forgets_it():
    assert says(PAGE, "the likelihood that was learned is a little better")
    assert says(PAGE, "softmax forgets the set and ends at one pattern or at a blur, and `ksubsets` keeps it")
    ours, plain, kept, sparse, forgot = map(
        whole,
        ("b-hop, best k", "softmax, best k", "ksubsets at rest", "support of sparsemax", "softmax at rest"),
    )
    for learned, best, rests, support, lost in zip(ours, plain, kept, sparse, forgot, strict=True):
        assert best < learned < best + 0.05 and best - 0.05 < rests < best and support < rests - 0.1
        assert lost < 0.02


def test_among_a_million_an_index_and_a_sum_are_cheaper_than_dot_products():
    assert says(PAGE, "Among a million patterns, `b-hop` is cheaper than dot products")
    assert says(PAGE, "`normmax` and `g-hop` cost most")
    times = {row["model"]: row["costs"][-1]["times"] for row in rows("zoo-costs")}
    order = sorted(times, key=times.__getitem__)
    assert {name for name, time in times.items() if time < 1} == {"b-hop", "f-hop"}
    assert set(order[-2:]) == {"distance, normmax", "g-hop"}
