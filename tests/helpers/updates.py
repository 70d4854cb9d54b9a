"""Small networks and training steps for the tests of updates of gamma."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

import ssvi

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "momentum, no foreach": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam, foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adam, fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}


def net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2), nn.Flatten(), nn.Linear(8 * 4, 5)
    )


def batch(seed: int, n: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 2, 6, 6, generator=generator), torch.randint(5, (n,), generator=generator)


def train_step(bnn, optimizer, seed: int, elbo=None) -> torch.Tensor:
    x, y = batch(seed)
    torch.manual_seed(seed)
    nll = F.cross_entropy(bnn(x), y)
    loss = elbo(nll) if elbo else nll
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def dense_gradients(bnn: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """|dl/dmu| at all d positions, by giving every position a weight: the obviously right twin of the addition score."""
    full = copy.deepcopy(bnn)
    for _, layer in ssvi.layers(full):
        p = layer.posterior
        mu, sigma = p.dense(p.mu).detach(), p.dense(p.sigma).detach().clamp_min(1e-20)
        p._buffers["index"] = torch.arange(p.d, dtype=torch.int32)
        p.mu, p.rho = nn.Parameter(mu.flatten()), nn.Parameter(p.rho_of(sigma.flatten()))
    x, y = batch(seed)
    torch.manual_seed(seed)
    F.cross_entropy(full(x), y).backward()
    return {name: layer.mu.grad.abs() for name, layer in ssvi.layers(full)}


def dense_gradients_at_mean(bnn: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """The same with theta = mu."""
    plain = ssvi.mean(bnn, dense=True)
    x, y = batch(seed)
    F.cross_entropy(plain(x), y).backward()
    return {name: plain.get_submodule(name).weight.grad.abs().flatten() for name, _ in ssvi.layers(bnn)}
