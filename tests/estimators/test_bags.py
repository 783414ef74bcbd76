import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from ahop.datasets import standard_check
from ahop.estimators import HopfieldBagClassifier
from ahop.estimators.bags import POOLINGS
from ahop.similarity import Adaptive, Decomposable
from ahop.similarity.mahalanobis import Mahalanobis


@pytest.mark.slow
@parametrize_with_checks([HopfieldBagClassifier(similarity="dot", epochs=6, learning_rate=4e-2, width=16)])
def test_it_is_an_estimator(estimator, check):
    check(estimator)


def bags(count=40, seed=0):
    draw = np.random.default_rng(seed)
    some = [draw.normal(size=(size, 4)) for size in draw.integers(1, 6, count)]
    labels = np.arange(count) % 2
    for bag, label in zip(some, labels, strict=True):
        bag[0, 0] = 4.0 if label else 0.0
    return some, np.array(["no", "yes"])[labels]


SMALL = {"width": 16, "num_heads": 2, "learning_rate": 1e-2, "random_state": 0}


class Absolute(Decomposable):
    """A similarity that nobody has told the library of."""

    name = "absolute of the test"

    def terms(self, patterns, queries):
        return -(patterns - queries).abs()


@pytest.mark.parametrize(
    "similarity",
    [
        "adaptive",
        Absolute(),
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("dot", "likelihood", "mahalanobis", "absolute of the test")
        ),
        pytest.param(Mahalanobis(8), marks=pytest.mark.slow),
    ],
)
def test_it_learns_what_makes_a_label_by_any_similarity(similarity):
    classifier = HopfieldBagClassifier(similarity=similarity, **SMALL).fit(*bags())
    assert classifier.score(*bags(seed=1)) > 0.9
    assert classifier.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(classifier.predict_proba(bags()[0]).sum(1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "scaling"),
    [
        ("hopfield", "quantile"),
        *(pytest.param(pooling, "standard", marks=pytest.mark.slow) for pooling in POOLINGS),
        pytest.param("hopfield", None, marks=pytest.mark.slow),
    ],
)
def test_it_learns_what_makes_a_label_by_any_pooling(pooling, scaling):
    settings = {**SMALL, "epochs": 60, "similarity": "dot"}
    classifier = HopfieldBagClassifier(pooling=pooling, scaling=scaling, **settings).fit(*bags())
    # Ranks hide how far out an instance lies.
    assert classifier.score(*bags(seed=1)) > (0.75 if scaling == "quantile" else 0.9)


def test_the_largest_values_stand_beside_what_was_pooled():
    for pooling in POOLINGS:
        for join_max in (True, False):
            settings = {**SMALL, "epochs": 1, "pooling": pooling, "join_max": join_max}
            network = HopfieldBagClassifier(**settings).fit(*bags()).network_
            assert (network.largest is not None) == (join_max and pooling != "max")


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_a_decision_and_a_probability_say_the_same(classes):
    some, _ = bags()
    labels = np.arange(len(some)) % classes
    classifier = HopfieldBagClassifier(**SMALL, epochs=3).fit(some, labels)
    odds, likely = classifier.decision_function(some), classifier.predict_proba(some)
    if classes == 2:
        # Two classes are told apart by one number.
        assert odds.shape == (40,)
        assert classifier.network_.head.out_features == 1
        np.testing.assert_allclose(odds, np.log(likely[:, 1] / likely[:, 0]), atol=1e-9)
    else:
        assert odds.shape == (40, classes)
        np.testing.assert_allclose(odds - odds[:, :1], np.log(likely / likely[:, :1]), atol=1e-9)


@pytest.mark.parametrize("scaling", ["standard", "quantile"])
def test_scaled_values_lie_within_bounds(scaling):
    some, labels = bags()
    classifier = HopfieldBagClassifier(scaling=scaling, epochs=1, random_state=0).fit(some, labels)
    rows = np.linspace(-1e6, 1e6, 40, dtype=np.float32).reshape(10, 4)
    (scaled,) = classifier._scaled(rows, np.array([10]))
    assert float(scaled.abs().max()) == {"standard": 5.0, "quantile": 3.0}[scaling]


@pytest.mark.parametrize("scaling", ["standard", "quantile"])
def test_an_answer_does_not_depend_on_the_bags_asked_beside_it(scaling):
    some, labels = bags()
    classifier = HopfieldBagClassifier(scaling=scaling, **SMALL, epochs=2).fit(some[:20], labels[:20])
    together = classifier.decision_function([*some[20:], 100 * some[0]])[:20]
    np.testing.assert_allclose([classifier.decision_function([bag])[0] for bag in some[20:]], together, atol=1e-9)


def test_a_feature_that_never_varied_says_nothing():
    some, labels = bags()
    for bag in some:
        bag[:, 3] = 7.0
    classifier = HopfieldBagClassifier(**SMALL, epochs=2).fit(some, labels)
    before = classifier.decision_function(some)
    for bag in some:
        bag[:, 3] = -100.0
    np.testing.assert_array_equal(classifier.decision_function(some), before)


def test_a_step_of_training_sees_a_part_of_a_large_bag(monkeypatch):
    some, labels = [np.arange(size, dtype=float)[:, None] for size in (10, 2)], [0, 1]
    seen, plain = [], HopfieldBagClassifier._answers
    monkeypatch.setattr(HopfieldBagClassifier, "_answers", lambda self, bags: seen.append(bags) or plain(self, bags))
    settings = {**SMALL, "scaling": None, "epochs": 6}
    classifier = HopfieldBagClassifier(max_instances=4, **settings).fit(some, labels)
    assert {len(bag) for step in seen for bag in step} == {4, 2}
    large = [tuple(bag[:, 0].tolist()) for step in seen for bag in step if len(bag) == 4]
    assert all(len(set(bag)) == 4 for bag in large)
    assert len(set(large)) > 1
    seen.clear()
    classifier.predict(some)
    HopfieldBagClassifier(max_instances=None, **settings).fit(some, labels)
    assert {len(bag) for step in seen for bag in step} == {10, 2}


def test_a_training_that_diverges_is_an_error():
    with pytest.raises(ValueError, match="training diverged, its loss is nan; try a smaller learning_rate"):
        HopfieldBagClassifier(scaling=None, random_state=0, epochs=1).fit(1e38 * np.ones((4, 2, 2)), [0, 1, 0, 1])


def test_it_learns_where_gradients_are_off():
    with torch.no_grad():
        inside = HopfieldBagClassifier(**SMALL, epochs=2).fit(*bags())
    outside = HopfieldBagClassifier(**SMALL, epochs=2).fit(*bags())
    np.testing.assert_array_equal(inside.decision_function(bags()[0]), outside.decision_function(bags()[0]))


def test_a_list_is_as_good_as_an_array_with_names():
    some, labels = bags()
    names = np.array([f"bag {index}" for index in range(len(some))])[::-1]
    flat, owner = np.concatenate(some), np.repeat(names, [len(bag) for bag in some])
    listed = HopfieldBagClassifier(epochs=3, random_state=0).fit(some, labels)
    named = HopfieldBagClassifier(epochs=3, random_state=0).fit(flat, labels, bags=owner)
    np.testing.assert_array_equal(listed.predict_proba(some), named.predict_proba(flat, bags=owner))
    mixed = np.random.default_rng(0).permutation(len(flat))
    # Rows of a bag need not be adjacent; bags come in the order of their first rows.
    shuffled = named.predict_proba(flat[mixed], bags=owner[mixed])
    first = list(dict.fromkeys(owner[mixed]))
    expected = dict(zip(names, named.predict_proba(flat, bags=owner), strict=True))
    np.testing.assert_allclose(shuffled, [expected[name] for name in first], atol=1e-6)


def test_bags_in_every_form():
    draw = np.random.default_rng(0)
    cube, labels = draw.normal(size=(12, 3, 4)), np.arange(12) % 2
    objects = np.empty(12, dtype=object)
    objects[:] = list(cube)
    classifier = HopfieldBagClassifier(epochs=2, random_state=0).fit(cube, labels)
    likely = classifier.predict_proba(list(cube))
    for form in (cube, objects, tuple(cube)):
        np.testing.assert_array_equal(classifier.predict_proba(form), likely)
    owner = np.repeat(np.arange(12), 3)
    right = classifier.score(cube.reshape(36, 4), labels, bags=owner)
    assert right == classifier.score(cube, labels) == (classifier.predict(cube) == labels).mean()


def test_what_the_caller_gave_does_not_learn():
    similarity = Adaptive(16)
    before = similarity.order_weights().detach().clone()
    classifier = HopfieldBagClassifier(similarity=similarity, epochs=2, random_state=0)
    first = classifier.fit(*bags()).predict_proba(bags()[0])
    assert similarity.weight.dtype == torch.float32
    torch.testing.assert_close(similarity.order_weights(), before)
    np.testing.assert_array_equal(classifier.fit(*bags()).predict_proba(bags()[0]), first)


def test_the_caller_keeps_its_random_numbers():
    torch.manual_seed(3)
    HopfieldBagClassifier(epochs=1, random_state=0).fit(*bags())
    after = torch.rand(())
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(()))


@pytest.mark.slow
def test_a_monotone_classifier_keeps_to_the_standard_assumption():
    train, test = standard_check(300, train=True), standard_check(300, train=False, seed=1)
    settings = {"dropout": 0.0, "similarity": "dot", "width": 32}
    settings |= {"epochs": 15, "batch_size": 16, "learning_rate": 1e-2}
    areas = []
    for monotone in (False, True):
        classifier = HopfieldBagClassifier(monotone=monotone, random_state=0, **settings)
        classifier.fit([bag.numpy() for bag in train.bags], train.labels.numpy())
        likely = classifier.predict_proba([bag.numpy() for bag in test.bags])[:, 1]
        areas.append(roc_auc_score(test.labels, likely))
    assert areas[0] < 0.5
    assert areas[1] > 0.8


def test_it_works_with_others(tmp_path):
    some, labels = bags()
    classifier = HopfieldBagClassifier(epochs=5, random_state=0)
    assert cross_val_score(classifier, some, labels, cv=2).shape == (2,)
    classifier.fit(some, labels)
    joblib.dump(classifier, tmp_path / "bags.joblib")
    again = joblib.load(tmp_path / "bags.joblib")
    np.testing.assert_array_equal(again.predict_proba(some), classifier.predict_proba(some))
    assert not hasattr(clone(classifier), "network_")


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({}, (bags()[0], bags()[1][:5]), "y must be one label a bag, 40; got 5"),
        ({}, ([np.ones((0, 4)), np.ones((2, 4))], [0, 1]), r"bag 0 of X must have shape \(n, 4\), with at least one"),
        ({}, ([np.ones((2, 4)), np.ones((2, 3))], [0, 1]), r"bag 1 of X must have shape \(n, 4\), .*; got \(2, 3\)"),
        ({"width": 30}, bags(), "width must be divisible by num_heads, 4; got 30"),
        ({}, (np.ones((4, 2)), [0, 1], [0, 1]), "bags must name the bag of each of 4 instances, got 2"),
        ({}, (bags()[0], bags()[1], [0]), "bags must be None where X is a list of bags"),
        ({"epochs": 0}, bags(), "epochs must be an integer of at least 1, got 0"),
        ({"num_heads": 0}, bags(), "num_heads must be an integer of at least 1, got 0"),
        ({"width": 8.0}, bags(), "width must be an integer of at least 1, got 8.0"),
        ({"dropout": None}, bags(), "dropout must be a number in 0 to 0.99, got None"),
        ({"device": "abacus"}, bags(), "device must be one that PyTorch can use here, got 'abacus'"),
        ({}, (bags()[0], [None, "a"] * 20), "y must have no missing values"),
        ({}, (bags()[0], np.array([1, "a"] * 20, dtype=object)), "y must hold labels of one kind"),
        ({}, (np.ones((4, 2)), [0, 1], [0, 0, np.nan, 1]), "bags must have no missing values"),
        ({}, (np.ones((2, 2)), [0, 1], np.array([0, "a"], dtype=object)), "bags must be names of one kind"),
        ({}, (np.ones((2, 2)), [0, 1], [0, "0"]), "bags must hold labels of one kind, got int, str"),
        ({"pooling": "min"}, bags(), "pooling must be one of 'hopfield', 'mean', 'max', 'attention', got 'min'"),
        ({"max_instances": 0}, bags(), "max_instances must be an integer of at least 1, got 0"),
        ({"scaling": "none"}, bags(), "scaling must be one of 'standard', 'quantile', got 'none'"),
        ({"monotone": True}, (np.eye(3), [0, 1, 2]), "monotone needs two classes, got 3"),
        ({"similarity": "guess"}, bags(), "unknown similarity 'guess'"),
    ],
)
def test_what_cannot_be(options, given, message):
    with pytest.raises(ValueError, match=message):
        HopfieldBagClassifier(**options).fit(*given)
