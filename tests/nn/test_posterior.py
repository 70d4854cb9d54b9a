"""Sigma learns: Bayesian linear regression, where the mean-field posterior is known."""

import pytest
import torch
from torch import nn

import ssvi

N, D, NOISE, PRIOR = 256, 8, 0.5, 1.0


def problem() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Data, and the analytic mean-field posterior: mu = Lambda^-1 X'y / noise^2, sigma_i^2 = 1 / Lambda_ii."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=generator)
    weight = torch.randn(D, generator=generator)
    weight += weight.sign()  # none so close to 0 that 2 % of it is nothing
    y = x @ weight + NOISE * torch.randn(N, generator=generator)
    precision = x.T @ x / NOISE**2 + torch.eye(D) / PRIOR**2
    return x, y, torch.linalg.solve(precision, x.T @ y / NOISE**2), precision.diagonal().rsqrt()


def train(optimizer, start: float, sigma_map: str = "exp", steps: int = 1500) -> tuple[float, float]:
    """The largest relative error of mu and of sigma after training from `start` times the right sigma."""
    x, y, mu, sigma = problem()
    torch.manual_seed(0)
    net = nn.Linear(D, 1, bias=False)
    bnn = ssvi.to_bnn(net, 1.0, prior_sigma=PRIOR, sigma_init=start * sigma.mean().item(), sigma_map=sigma_map)
    optimizer = optimizer(bnn.parameters())
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    elbo = ssvi.ELBO(bnn, train_size=N)
    for _ in range(steps):
        nll = 0.5 * (y - bnn(x).squeeze(1)).square().mean() / NOISE**2
        optimizer.zero_grad()
        elbo(nll).backward()
        optimizer.step()
        decay.step()
    return relative(bnn.mu, mu), relative(bnn.sigma, sigma)


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    return ((got - want) / want).abs().max().item()


@pytest.mark.parametrize("start", [10.0, 0.1])
@pytest.mark.parametrize(
    "optimizer",
    [lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), lambda p: torch.optim.Adam(p, lr=0.01)],
    ids=["sgd", "adam"],
)
def test_training_reaches_the_analytic_posterior(optimizer, start):
    of_mu, of_sigma = train(optimizer, start)
    assert of_mu < 0.02
    assert of_sigma < 0.05


@pytest.mark.parametrize("start", [10.0, 0.1])
def test_the_authors_settings_do_not(start):
    """softplus with SGD at 0.01: mu arrives, sigma is still far off."""
    of_mu, of_sigma = train(lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), start, sigma_map="softplus")
    assert of_mu < 0.05
    assert of_sigma > 0.1


def test_weight_decay_on_everything_leaves_sigma_near_its_start():
    """rho is 0 at the start, so decay pulls sigma back to it and not towards 1."""
    bnn = ssvi.to_bnn(nn.Linear(10, 10), 0.5, sigma_init=0.01)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1, weight_decay=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        (0.0 * bnn(torch.randn(4, 10)).sum()).backward()
        optimizer.step()
    assert torch.allclose(bnn.sigma, torch.tensor(0.01))


@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
def test_the_map_and_its_inverse(sigma_map):
    bnn = ssvi.to_bnn(nn.Linear(3, 3).double(), 1.0, prior_sigma=3.0, sigma_init=0.02, sigma_map=sigma_map)
    sigma = torch.tensor([1e-7, 6e-4, 0.02, 1.0, 30.0, 3e-3, 0.1, 5.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(bnn.sigma, torch.full((9,), 0.02, dtype=torch.float64))
    with torch.no_grad():
        bnn.posterior.rho.copy_(bnn.posterior.rho_of(sigma))
    torch.testing.assert_close(bnn.sigma, sigma)
