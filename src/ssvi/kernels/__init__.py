"""Kernels: (x, mu, sigma^2, support) -> y. The layers call `draw` and `fixed` here and never know which kernel ran."""

from ssvi.kernels.dense import draw, fixed, moments

__all__ = ["draw", "fixed", "moments"]
