"""What every network of another package must pass: converted, trained, saved, loaded, and predicting alike."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

import ssvi
from ssvi.nn.layers import posteriors

STEPS = 20


def share_converted(net: nn.Module, bnn: nn.Module) -> float:
    """The Bayesian share of all parameters, biases and normalisation included."""
    return sum(p.d for p in posteriors(bnn).values()) / sum(p.numel() for p in net.parameters())


def assert_converted_trained_and_saved(
    net: nn.Module, loss: Callable[[nn.Module], Tensor], output: Callable[[nn.Module], Tensor], folder: Path
) -> nn.Module:
    """At least 95 % Bayesian; 20 steps of IVON and of the ELBO with updates of gamma; a file gives the same outputs."""
    bnn = ssvi.to_bnn(net, 0.3, seed=0)
    assert share_converted(net, bnn) >= 0.95
    for use_ivon in (True, False):
        losses = train(bnn, loss, use_ivon)
        assert all(torch.isfinite(torch.tensor(losses)))
    ssvi.save(bnn, folder / "model.safetensors")
    loaded = ssvi.load(folder / "model.safetensors", net)
    bnn.eval()
    for network in (bnn, loaded):
        assert all(torch.isfinite(output(network)).all() for _ in range(2))
    assert torch.equal(at_one_theta(bnn, output), at_one_theta(loaded, output))
    torch.testing.assert_close(at_one_theta(ssvi.mean(bnn, dense=True), output), at_the_mean(bnn, output), **ROUNDING)
    return bnn


ROUNDING = {"rtol": 1e-3, "atol": 1e-3}
"""Between torch's dense product and the native kernels, in float32 and through many layers."""


def train(bnn: nn.Module, loss_of: Callable[[nn.Module], Tensor], use_ivon: bool) -> list[float]:
    bnn.requires_grad_(True)  # an IVON before has frozen rho
    ivon = ssvi.IVON(bnn, lr=0.05, train_size=10_000) if use_ivon else None
    optimizer = ivon or torch.optim.Adam(bnn.parameters(), lr=1e-3)
    elbo, losses = ssvi.ELBO(bnn, train_size=10_000), []
    subspace = ssvi.Subspace(bnn, optimizer, every=10, rate=0.1)
    bnn.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        with ivon.sampled() if ivon else nullcontext():
            loss = loss_of(bnn)
            (loss if ivon else elbo(loss)).backward()
        optimizer.step()
        subspace.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def at_one_theta(bnn: nn.Module, output: Callable[[nn.Module], Tensor]) -> Tensor:
    with ssvi.at_sample(bnn, torch.Generator().manual_seed(5)):
        return output(bnn)


@torch.no_grad()
def at_the_mean(bnn: nn.Module, output: Callable[[nn.Module], Tensor]) -> Tensor:
    with ssvi.at_mean(bnn):
        return output(bnn)
