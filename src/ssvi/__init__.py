"""Sparse Subspace Variational Inference: Bayesian networks that are sparse from the first training step to the last."""

from ssvi import allocation, baselines, criteria, flops, kernels, metrics, schedules
from ssvi.convert import to_bnn
from ssvi.elbo import ELBO
from ssvi.evaluate import Evaluation, evaluate
from ssvi.fixed import mean, sample
from ssvi.held import at_mean, at_sample
from ssvi.nn import kl, layers
from ssvi.predict import predict, predict_samples
from ssvi.saving import load, save
from ssvi.subspace import Move, Subspace, Update
from ssvi.summary import summary

__version__ = "0.1.0"

__all__ = [
    "ELBO",
    "Evaluation",
    "Move",
    "Subspace",
    "Update",
    "allocation",
    "at_mean",
    "at_sample",
    "baselines",
    "criteria",
    "evaluate",
    "flops",
    "kernels",
    "kl",
    "layers",
    "load",
    "mean",
    "metrics",
    "predict",
    "predict_samples",
    "sample",
    "save",
    "schedules",
    "summary",
    "to_bnn",
]
