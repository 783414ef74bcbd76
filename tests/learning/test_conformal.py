import numpy as np
import pytest
import torch

from ahop.learning.conformal import realised, threshold


def test_sets_hold_the_origin_at_the_promised_rate_however_bad_the_model():
    generator = torch.Generator().manual_seed(0)
    for labels, coverage in ((10, 0.9), (50, 0.8), (20, 0.5)):
        held = []
        for _ in range(2000):
            given = torch.rand(labels + 50, generator=generator) ** 4
            least = threshold(given[:labels].sort().values, coverage)
            held.append(float((given[labels:] >= least).float().mean()))
        low, high = realised(labels, coverage)
        mean, inside = np.mean(held), np.mean([low - 0.05 <= one <= high + 0.05 for one in held])
        assert coverage - 0.01 < mean < coverage + 1 / labels + 0.01 and inside > 0.85


def test_a_rate_that_so_many_labels_cannot_promise_is_refused():
    some = torch.linspace(0.1, 0.9, 9)
    assert threshold(some, 0.9) == pytest.approx(0.1)
    with pytest.raises(
        ValueError, match=r"coverage must be at most 0\.900, which is what 9 labels can promise; got 0\.91"
    ):
        threshold(some, 0.91)
    with pytest.raises(
        ValueError, match=r"coverage must be at most 0\.800: 2 of 9 labelled queries come from no stored"
    ):
        threshold(torch.cat([torch.full((2,), -torch.inf), some[2:]]), 0.85)
    assert threshold(some, 0.0) == pytest.approx(0.9) and realised(9, 0.95) == (0.0, 1.0)


def test_mapie_takes_the_same_sets():
    classification = pytest.importorskip("mapie.classification")

    class Known:
        """A classifier of which the probabilities are the input."""

        classes_ = np.arange(4)
        n_features_in_, is_fitted_ = 4, True

        def fit(self, x, y):
            return self

        def predict_proba(self, x):
            return np.asarray(x)

        def predict(self, x):
            return np.asarray(x).argmax(1)

        def __sklearn_is_fitted__(self):
            return True

        def __sklearn_tags__(self):
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression().__sklearn_tags__()

    generator = np.random.default_rng(0)
    rows = generator.dirichlet(np.full(4, 0.5), 160)
    origins = np.array([generator.choice(4, p=0.7 * row + 0.075) for row in rows])
    theirs = classification.SplitConformalClassifier(
        Known(), confidence_level=0.85, conformity_score="lac", prefit=True
    ).conformalize(rows[:100], origins[:100])
    _, sets = theirs.predict_set(rows[100:])
    least = threshold(torch.tensor(rows[np.arange(100), origins[:100]]).sort().values, 0.85)
    assert (sets[:, :, 0] == (rows[100:] >= least)).all()
