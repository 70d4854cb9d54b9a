"""scikit-learn's own checks of estimators, and its tools: clone, pickle, pipelines and searches."""

import pickle

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_wine, make_regression
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import ssvi

SMALL = {"epochs": 8, "lr": 0.3, "hidden": (20,), "random_state": 0}

NOT_EXACT = (
    "rows with weights and repeated rows have the same bound, but other batches, and so other random steps towards it; "
    "test_weights.py compares the gradients of the bound"
)


def expected_failures(estimator):
    return {"check_sample_weight_equivalence_on_dense_data": NOT_EXACT}


@pytest.mark.filterwarnings("ignore::ssvi.TrainingWarning", "ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [ssvi.SSVIClassifier(batch_size=32, **SMALL), ssvi.SSVIRegressor(batch_size=32, **SMALL)],
    expected_failed_checks=expected_failures,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def line():
    return make_regression(120, 4, noise=5.0, random_state=0)


def networks():
    return {
        "own": torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
        ),
        "mlp": None,
    }


@pytest.mark.parametrize("module", ["own", "mlp"])
@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_a_stored_estimator_predicts_the_same_and_trains_on_the_same(line, tmp_path, module, way):
    X, y = line
    estimator = ssvi.SSVIRegressor(batch_size=32, module=networks()[module], epochs=3, random_state=0).fit(X, y)
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(estimator))
    else:
        joblib.dump(estimator, tmp_path / "estimator.joblib")
        copy = joblib.load(tmp_path / "estimator.joblib")
    assert np.array_equal(copy.predict(X), estimator.predict(X))
    assert np.array_equal(copy.partial_fit(X, y).predict(X), estimator.partial_fit(X, y).predict(X))


def test_clone_has_the_arguments_and_nothing_that_was_learnt(line):
    estimator = ssvi.SSVIRegressor(
        batch_size=32, density=0.3, likelihood=ssvi.likelihoods.StudentT(df=3.0), epochs=2
    ).fit(*line)
    copy = clone(estimator)
    assert copy.density == 0.3
    assert copy.likelihood == ssvi.likelihoods.StudentT(df=3.0)
    assert not hasattr(copy, "bnn_")


def test_a_pipeline_and_cross_validation(wine):
    pipeline = make_pipeline(PCA(5), ssvi.SSVIClassifier(batch_size=32, epochs=40, random_state=0))
    assert cross_val_score(pipeline, *wine, cv=3).mean() > 0.85


def log_likelihood(estimator, X, y):
    return estimator.log_likelihood(X, y)


def test_a_search_over_densities_by_log_likelihood(line):
    search = GridSearchCV(
        ssvi.SSVIRegressor(batch_size=32, hidden=(), epochs=30, random_state=0),
        {"density": [0.25, 1.0]},
        cv=3,
        scoring=log_likelihood,
    )
    search.fit(*line)
    assert search.best_params_ == {"density": 1.0}, "all four columns matter"
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
