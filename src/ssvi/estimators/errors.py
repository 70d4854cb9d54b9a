"""The errors of the estimators."""

from __future__ import annotations

from ssvi.errors import UserError


class EstimatorError(UserError, ValueError):
    """An argument of an estimator, or data, that cannot be used; the message names it and the remedy."""


class MissingPackageError(UserError, ImportError):
    """The estimators were asked for, and scikit-learn is not installed."""
