"""The log-uniform prior p(|w|) ~ 1 / |w| against a Gaussian N(mu, alpha mu^2): the KL of variational dropout."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

K1, K2, K3 = 0.63576, 1.87320, 1.48695

CLIP = 8.0
"""log alpha lies within +-CLIP: the weight is all signal, or all noise."""


def log_uniform_kl(log_alpha: Tensor) -> Tensor:
    """KL(N(mu, alpha mu^2) || p), p(|w|) ~ 1 / |w|, of each weight, up to the constant that makes it 0 at alpha = inf.

    -KL = k1 sigmoid(k2 + k3 log alpha) - 1/2 log(1 + 1 / alpha) - k1   (Eq. 14 of Molchanov et al. 2017), within 0.009
    nats of the integral; here with 1 - sigmoid(x) = sigmoid(-x), so that nothing cancels where the KL is small.
    """
    return K1 * torch.sigmoid(-(K2 + K3 * log_alpha)) + 0.5 * F.softplus(-log_alpha)
