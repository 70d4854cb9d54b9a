"""From an array to a network, and the outputs of the network for each theta."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ssvi.estimators.examples import Array
from ssvi.inference.predict import predict_samples
from ssvi.nn.theta_statistics import fitted

ROWS = 4096
"""Examples that go through the network at once, so that memory is bounded."""


def tensor_for(net: nn.Module, values: Array) -> Tensor:
    """The values on the device of the network; floating-point numbers in its type."""
    like = next((p for p in net.parameters() if p.is_floating_point()), torch.empty(0))
    tensor = torch.as_tensor(np.ascontiguousarray(values))
    return tensor.to(like.device, like.dtype if tensor.is_floating_point() else tensor.dtype)


def drawn_outputs(bnn: nn.Module, x: Tensor, samples: int, seed: int) -> Tensor:
    """The outputs under each theta, (samples, n, outputs), on the CPU: the same thetas for every x and in every call."""
    return torch.cat([_drawn(bnn, rows, samples, seed) for rows in x.split(ROWS)], 1).cpu()


def _drawn(bnn: nn.Module, x: Tensor, samples: int, seed: int) -> Tensor:
    # the thetas of fit_batchnorm are the same in every call, and need no generator
    generator = None if fitted(bnn) else torch.Generator(x.device).manual_seed(seed)
    drawn = predict_samples(bnn, x, samples=samples, link="identity", generator=generator)
    assert isinstance(drawn, Tensor)
    return drawn
