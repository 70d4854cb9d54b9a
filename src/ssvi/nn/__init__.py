"""What a layer is: sparse posteriors, Bayesian layers, gates, and how a network gets them and gives them back."""

from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.layers import TWINS, Conv1d, Conv2d, Conv3d, Linear, LinearMap, gaussians, kl, posteriors

__all__ = ["TWINS", "BayesLayer", "Conv1d", "Conv2d", "Conv3d", "Linear", "LinearMap", "gaussians", "kl", "posteriors"]
