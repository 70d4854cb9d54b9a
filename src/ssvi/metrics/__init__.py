"""Metrics of predictions and of their uncertainty: tensors in, numbers out.

`probs` is (examples, classes), every row a distribution; `labels` is (examples,), integers in 0..classes-1. For a
Bayesian network `probs` is the average of the samples' probabilities (not of their logits). Predicted numbers and their
intervals are compared with the true `y`, (examples,). Everything is computed in float64 on the CPU, whatever comes in.
A metric is a plain function of a whole data set; `Predictions` collects one batch by batch, and `bootstrap` gives the
interval of any of them.
"""

from .calibration import Reliability, adaptive_ece, ece, marginal_calibration_error, reliability
from .classification import accuracy, brier, entropy, mutual_information, nll, predictive_entropy
from .predictions import Predictions
from .ranking import aupr, aurc, auroc, fpr_at_95_tpr, risk_coverage
from .regression import average, central_coverage, coverage, interval_width, mae, pit_error, pit_histogram, rmse
from .resampling import bootstrap

__all__ = [
    "Predictions",
    "Reliability",
    "accuracy",
    "adaptive_ece",
    "aupr",
    "aurc",
    "auroc",
    "average",
    "bootstrap",
    "brier",
    "central_coverage",
    "coverage",
    "ece",
    "entropy",
    "fpr_at_95_tpr",
    "interval_width",
    "mae",
    "marginal_calibration_error",
    "mutual_information",
    "nll",
    "pit_error",
    "pit_histogram",
    "predictive_entropy",
    "reliability",
    "risk_coverage",
    "rmse",
]
