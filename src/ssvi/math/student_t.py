"""Student's t with df degrees of freedom: density, entropy, distribution function, and mean distances.

torch has no incomplete beta function, so the distribution function is scipy's. Everything is in float64.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ssvi.errors import UserError

NODES = 20
"""Nodes of Gauss and Legendre for each of the four parts of an integral: its error is below 2e-7 for every df > 2."""
TAIL = 1e-8
"""The probability of the tails that the integral leaves out."""


def log_density(df: float, z: Tensor) -> Tensor:
    """log Gamma((df+1)/2) - log Gamma(df/2) - log(df pi)/2 - (df+1)/2 log(1 + z^2/df)."""
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return constant - (df + 1) / 2 * torch.log1p(z.square() / df)


def entropy(df: float) -> float:
    """(df+1)/2 (psi((df+1)/2) - psi(df/2)) + log(sqrt(df) B(df/2, 1/2)), in nats."""
    low, high = torch.tensor([df / 2, (df + 1) / 2], dtype=torch.float64).digamma().tolist()
    log_beta = math.lgamma(df / 2) + math.lgamma(0.5) - math.lgamma((df + 1) / 2)
    return (df + 1) / 2 * (high - low) + 0.5 * math.log(df) + log_beta


def cdf(df: float, z: Tensor) -> Tensor:
    """P(T <= z)."""
    stdtr, _ = _scipy()
    return torch.as_tensor(stdtr(df, z.double().cpu().numpy()), device=z.device)


def quantile(df: float, p: float) -> float:
    """z with P(T <= z) = p."""
    _, stdtrit = _scipy()
    return float(stdtrit(df, p))


def mean_abs(df: float, location: Tensor, scale: Tensor) -> Tensor:
    """E|location + scale T| = |location| + scale excess(location / scale)."""
    return location.abs() + scale * excess(df, location / scale)


def excess(df: float, z: Tensor) -> Tensor:
    """E|T + z| - |z| = 2 (p(z) (df + z^2) / (df - 1) - |z| P(T > |z|)): what |z| misses. It falls as |z|^(1 - df)."""
    z = z.double().abs()
    density = log_density(df, z).exp()
    return 2 * (density * (df + z.square()) / (df - 1) - z * cdf(df, -z)).clamp_min(0)


def mean_abs_difference(df: float, location: Tensor, scale: Tensor, other_scale: Tensor) -> Tensor:
    """E|location + a T - b T'| for independent T and T', which has no closed form.

    With a <= b in units of b, and d = |location| in the same units, it is
        E|d + a T| + integral p(x) excess(d + a x) dx.
    The first part is closed, the second one is small where d is large. p is large around 0 and the excess around -d/a, so
    the line is cut at both and halfway between, and each part is integrated by Gauss and Legendre in u, x = cut +- sinh(u).
    """
    b = torch.maximum(scale, other_scale)
    a, d = torch.minimum(scale, other_scale) / b, location.abs() / b
    other = -d / a
    far = torch.full_like(d, math.asinh(-quantile(df, TAIL)))
    near = torch.asinh(other.abs() / 2).minimum(far)  # beyond `far` p is nothing, wherever the excess is
    total = mean_abs(df, d, a)
    for cut, side, length in ((0.0, 1, far), (0.0, -1, near), (other, 1, near), (other, -1, far)):
        total = total + _integral(df, d, a, cut, side, length)
    return b * total


def _integral(df: float, d: Tensor, a: Tensor, cut: float | Tensor, side: int, length: Tensor) -> Tensor:
    """The integral of p(x) excess(d + a x) from the cut to one side, over u from 0 to `length`."""
    total = torch.zeros_like(d)
    for node, weight in zip(*np.polynomial.legendre.leggauss(NODES), strict=True):
        u = length * (node + 1) / 2
        x = cut + side * u.sinh()
        total += weight / 2 * length * u.cosh() * log_density(df, x).exp() * excess(df, d + a * x)
    return total


def _scipy():  # type: ignore[no-untyped-def] # scipy has no types
    try:
        from scipy.special import stdtr, stdtrit
    except ImportError as error:
        raise UserError("Student's t needs scipy, which is not installed: pip install 'ssvi[table]'") from error
    return stdtr, stdtrit
