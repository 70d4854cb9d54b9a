"""A small network, a batch for it, and a step of IVON in a loop of the user's own."""

import torch
import torch.nn.functional as F
from torch import nn

import ssvi


def network() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    return ssvi.to_bnn(net, 0.5, prior_sigma=0.5, sigma_init=0.05)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(32, 6, generator=generator)
    return x, (x[:, 0] > 0).long()


def step(bnn: nn.Module, optimizer: ssvi.IVON) -> None:
    x, y = batch()
    with optimizer.sampled():
        F.cross_entropy(bnn(x), y).backward()
    optimizer.step()
