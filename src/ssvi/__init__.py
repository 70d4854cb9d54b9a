"""Sparse Subspace Variational Inference: Bayesian networks that are sparse from the first training step to the last.

The public names are imported when they are first used, so that `import ssvi` and `ssvi --help` are instant: neither loads
torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssvi import (
        allocation,
        baselines,
        criteria,
        decisions,
        families,
        flops,
        kernels,
        likelihoods,
        metrics,
        schedules,
        structures,
        zoo,
    )
    from ssvi.estimators import SSVIClassifier, SSVIRegressor
    from ssvi.evaluation.load_run import load_run
    from ssvi.evaluation.loaded_run import LoadedRun
    from ssvi.evaluation.loaded_table import LoadedTable
    from ssvi.hub import from_pretrained, push_to_hub, save_pretrained
    from ssvi.inference.evaluate import Evaluation, NumberEvaluation, evaluate
    from ssvi.inference.ivon import IVON
    from ssvi.inference.loss import ELBO
    from ssvi.inference.predict import predict, predict_samples
    from ssvi.inference.subspace import Move, Subspace, Update
    from ssvi.inference.watch import TrainingWarning
    from ssvi.nn.at_theta import at_mean
    from ssvi.nn.conversion_warning import ConversionWarning
    from ssvi.nn.convert import to_bnn
    from ssvi.nn.deterministic import mean, sample
    from ssvi.nn.fit_batchnorm import fit_batchnorm
    from ssvi.nn.layers import kl, layers
    from ssvi.nn.random_tensor import at_sample
    from ssvi.nn.summary import summary
    from ssvi.nn.trained_support import curvature_importance
    from ssvi.training.model_file import load, save

__version__ = "0.2.0"

__all__ = [
    "ELBO",
    "IVON",
    "ConversionWarning",
    "Evaluation",
    "LoadedRun",
    "LoadedTable",
    "Move",
    "NumberEvaluation",
    "SSVIClassifier",
    "SSVIRegressor",
    "Subspace",
    "TrainingWarning",
    "Update",
    "allocation",
    "at_mean",
    "at_sample",
    "baselines",
    "criteria",
    "curvature_importance",
    "decisions",
    "evaluate",
    "families",
    "fit_batchnorm",
    "flops",
    "from_pretrained",
    "kernels",
    "kl",
    "layers",
    "likelihoods",
    "load",
    "load_run",
    "mean",
    "metrics",
    "predict",
    "predict_samples",
    "push_to_hub",
    "sample",
    "save",
    "save_pretrained",
    "schedules",
    "structures",
    "summary",
    "to_bnn",
    "zoo",
]

_HOME = {
    "estimators": ("SSVIClassifier", "SSVIRegressor"),
    "evaluation.load_run": ("load_run",),
    "evaluation.loaded_run": ("LoadedRun",),
    "evaluation.loaded_table": ("LoadedTable",),
    "hub": ("from_pretrained", "push_to_hub", "save_pretrained"),
    "inference.ivon": ("IVON",),
    "inference.loss": ("ELBO",),
    "inference.evaluate": ("Evaluation", "NumberEvaluation", "evaluate"),
    "inference.predict": ("predict", "predict_samples"),
    "inference.subspace": ("Move", "Subspace", "Update"),
    "nn.at_theta": ("at_mean",),
    "inference.watch": ("TrainingWarning",),
    "nn.conversion_warning": ("ConversionWarning",),
    "nn.convert": ("to_bnn",),
    "nn.deterministic": ("mean", "sample"),
    "nn.fit_batchnorm": ("fit_batchnorm",),
    "nn.layers": ("kl", "layers"),
    "nn.random_tensor": ("at_sample",),
    "nn.summary": ("summary",),
    "nn.trained_support": ("curvature_importance",),
    "training.model_file": ("load", "save"),
}
"""Where each public name lives; those that are not here are modules of their own name."""


def __getattr__(name: str) -> Any:
    """A public name, imported at its first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'ssvi' has no attribute {name!r}")
    home = next((module for module, names in _HOME.items() if name in names), None)
    value = import_module(f"ssvi.{name}") if home is None else getattr(import_module(f"ssvi.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)
