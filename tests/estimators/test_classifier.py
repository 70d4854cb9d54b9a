"""Classes: labels of any type, probabilities, uncertainty."""

import numpy as np
import pytest

import ssvi
from ssvi.estimators import EstimatorError


@pytest.fixture(scope="module")
def blobs():
    """Three groups of points in the plane."""
    generator = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    number = np.repeat([0, 1, 2], 40)
    return centres[number] + generator.normal(size=(120, 2)), np.array(["fox", "ant", "bee"])[number]


@pytest.fixture(scope="module")
def fitted(blobs):
    return ssvi.SSVIClassifier(epochs=100, random_state=0).fit(*blobs)


def test_labels_are_words_and_columns_follow_classes(blobs, fitted):
    X, y = blobs
    probabilities = fitted.predict_proba(X)
    assert fitted.classes_.tolist() == ["ant", "bee", "fox"]
    assert fitted.score(X, y) > 0.95
    assert (fitted.predict(X) == fitted.classes_[probabilities.argmax(1)]).all()
    assert np.allclose(probabilities.sum(1), 1)


def test_log_likelihood_is_the_mean_log_probability_of_the_labels(blobs, fitted):
    X, y = blobs
    column = [fitted.classes_.tolist().index(label) for label in y]
    logs = np.log(fitted.predict_proba(X)[range(len(y)), column])
    assert fitted.log_likelihood(X, y) == pytest.approx(logs.mean())
    weight = np.arange(len(y))
    assert fitted.log_likelihood(X, y, weight) == pytest.approx(np.average(logs, weights=weight))


def test_uncertainty_is_entropy_and_the_part_of_the_model(blobs, fitted):
    X, _ = blobs
    probabilities = fitted.predict_proba(X)
    uncertainty = fitted.predict_uncertainty(X)
    assert np.allclose(uncertainty.entropy, -(probabilities * np.log(probabilities)).sum(1), atol=1e-6)
    assert (uncertainty.mutual_information <= uncertainty.entropy + 1e-9).all()
    between, inside = fitted.predict_uncertainty([[2.0, 0.0], [4.0, 0.0]]).entropy
    assert between > 2 * inside, "between two groups nobody knows"


def test_an_unknown_label_is_named(blobs, fitted):
    with pytest.raises(EstimatorError, match="y has the class 'cow'"):
        fitted.log_likelihood(blobs[0][:1], ["cow"])


def test_weights_that_leave_one_class(blobs):
    X, y = blobs
    with pytest.raises(EstimatorError, match="one class, 'fox'"):
        ssvi.SSVIClassifier(epochs=1).fit(X, y, sample_weight=(y == "fox").astype(float))


def test_partial_fit_needs_the_classes_once_and_learns(blobs):
    X, y = blobs
    classifier = ssvi.SSVIClassifier(random_state=0)
    with pytest.raises(EstimatorError, match="classes=None in the first call"):
        classifier.partial_fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    classifier.partial_fit(X[order[:40]], y[order[:40]], classes=["ant", "bee", "cow", "fox"])
    before = classifier.log_likelihood(X, y)
    for _ in range(20):
        classifier.partial_fit(X[order], y[order])
    assert classifier.predict_proba(X).shape == (120, 4)
    assert classifier.log_likelihood(X, y) > before + 0.3
    with pytest.raises(EstimatorError, match="y has the class 'owl'"):
        classifier.partial_fit(X[:2], ["ant", "owl"])
