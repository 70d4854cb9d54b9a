"""Estimators in scikit-learn's manner: a sparse Bayesian network behind `fit` and `predict`.

    regressor = ssvi.SSVIRegressor(density=0.5).fit(x, y)
    mean, std = regressor.predict(x_new, return_std=True)
    low, high = regressor.predict_interval(x_new, level=0.9)

They need scikit-learn, which is in the extra `table`.
"""

from ssvi.estimators.errors import EstimatorError, MissingPackageError

try:
    import sklearn  # noqa: F401 - only to see whether it is there
except ImportError as error:
    raise MissingPackageError(
        "SSVIClassifier and SSVIRegressor need scikit-learn, which is not installed: pip install 'ssvi[table]'"
    ) from error

from ssvi.estimators.classifier import SSVIClassifier
from ssvi.estimators.regressor import SSVIRegressor

__all__ = ["EstimatorError", "MissingPackageError", "SSVIClassifier", "SSVIRegressor"]
