"""IVON: the analytic posterior, an independent reference, the exact Hessian, the start, and mistakes."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import ssvi


def regression(n: int = 200, d: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of different scales, so that the weights have different curvatures."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64) * torch.tensor([0.5, 1.0, 2.0, 4.0])[:d]
    y = x @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]], dtype=torch.float64)[:d]
    return x, y + torch.randn(n, 1, generator=generator, dtype=torch.float64)


def linear(x: torch.Tensor, prior_sigma: float = 1.0, **options: float) -> nn.Module:
    torch.manual_seed(1)
    return ssvi.to_bnn(nn.Linear(x.shape[1], 1, bias=False).double(), 1.0, prior_sigma=prior_sigma, **options)


def gaussian_nll(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean negative log-likelihood with noise 1, up to a constant."""
    return 0.5 * (output - y).square().mean()


@pytest.mark.parametrize("factor", [10.0, 1.0, 0.1])
def test_the_analytic_posterior_of_linear_regression(factor):
    """The mean-field optimum: mu is the posterior mean, sigma_i^2 = 1 / (sum_n x_ni^2 + 1 / prior_sigma^2).

    One setting, from one sigma for all weights, whose right sigmas differ by a factor of 8: ten times too large for their
    mean, right, and ten times too small. With larger inputs no start is below the least h.
    """
    x, y = regression()
    x = 4 * x
    precision = x.T @ x + torch.eye(4)
    mean, sigma = torch.linalg.solve(precision, x.T @ y).flatten(), precision.diagonal().rsqrt()
    bnn = linear(x, sigma_init=factor * sigma.mean().item())
    optimizer = ssvi.IVON(bnn, lr=0.03, train_size=len(x), betas=(0.9, 0.998))
    torch.testing.assert_close(bnn.sigma.mean(), factor * sigma.mean(), rtol=1e-6, atol=0.0)
    steps = 5000
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        with optimizer.sampled():
            gaussian_nll(bnn(x), y).backward()
        optimizer.step()
        decay.step()
    torch.testing.assert_close(bnn.mu.detach(), mean, rtol=0.02, atol=0.0)
    torch.testing.assert_close(bnn.sigma.detach(), sigma, rtol=0.05, atol=0.0)


@pytest.mark.parametrize("thetas", [1, 3])
@pytest.mark.parametrize("h0", [0.3, None])
@pytest.mark.parametrize("warmup", [0, 12])
def test_step_for_step_against_an_independent_dense_reference(warmup, h0, thetas):
    """The formulas again, on plain tensors with the same noise. Without h0, h starts above 2, and steps divide by less."""
    x, y = regression()
    bnn = linear(x, prior_sigma=0.7, sigma_init=0.02)
    n, lr, b1, b2, temperature = len(x), 0.05, 0.8, 0.99, 0.5
    optimizer = ssvi.IVON(bnn, lr=lr, train_size=n, warmup=warmup, h0=h0, betas=(b1, b2), temperature=temperature)
    delta = 1 / (n * 0.7**2)
    start = h0 or temperature / (n * 0.02**2) - delta
    excess = 0.0 if h0 else start - 2
    assert excess >= 0
    m, g, h = bnn.mu.detach().clone(), torch.zeros(4).double(), torch.full((4,), start).double()
    for t in range(1, 21):
        batch = slice(10 * (t % 10), 10 * (t % 10) + 50)
        torch.manual_seed(t)
        for _ in range(thetas):
            with optimizer.sampled():
                gaussian_nll(bnn(x[batch]), y[batch]).backward()
        optimizer.step()
        torch.manual_seed(t)
        sigma = 1 / (n / temperature * (h + delta)).sqrt()
        g_hats, h_hats = [], []
        for _ in range(thetas):
            theta = m + sigma * torch.randn(4, dtype=torch.float64)
            error = x[batch] @ theta[:, None] - y[batch]
            g_hats.append((x[batch] * error).mean(0))
            h_hats.append(g_hats[-1] * (theta - m) / sigma**2)
        g_hat, h_hat = torch.stack(g_hats).mean(0), torch.stack(h_hats).mean(0)
        g = b1 * g + (1 - b1) * g_hat
        h = b2 * h + (1 - b2) * h_hat + 0.5 * (1 - b2) ** 2 * (h - h_hat) ** 2 / (h + delta)
        divisor = torch.maximum(h - b2**t * excess, h.clamp(max=2)) + delta if excess else h + delta
        rate = lr * min(1, t / max(1, warmup))
        m = m - rate * (g / (1 - b1**t) + delta * m) / divisor
        torch.testing.assert_close(bnn.mu.detach(), m)
        torch.testing.assert_close(bnn.sigma.detach(), 1 / (n / temperature * (h + delta)).sqrt())


def test_a_schedule_of_the_temperature_sets_sigma_at_each_step_and_after_a_resume():
    x, y = regression()
    bnn = linear(x)
    schedule = ssvi.schedules.linear(0.8, steps=4, start=0.2)
    optimizer = ssvi.IVON(bnn, train_size=len(x), temperature=schedule)
    delta = 1 / len(x)
    for step in range(6):
        h = optimizer.state[bnn.mu]["h"]
        expected = (schedule(step) / (len(x) * (h + delta))).sqrt()
        torch.testing.assert_close(bnn.sigma.detach(), expected)
        with optimizer.sampled():
            gaussian_nll(bnn(x), y).backward()
        optimizer.step()
        if step == 1:
            saved = copy.deepcopy(optimizer.state_dict())
            optimizer = ssvi.IVON(bnn, train_size=len(x), temperature=schedule)
            optimizer.load_state_dict(saved)
    assert optimizer.temperature == 0.8


def test_a_schedule_that_reaches_0_is_an_error_that_names_the_step():
    x, y = regression()
    bnn = linear(x)
    optimizer = ssvi.IVON(bnn, train_size=len(x), temperature=ssvi.schedules.linear(0.0, steps=1, start=1.0))
    with optimizer.sampled():
        gaussian_nll(bnn(x), y).backward()
    with pytest.raises(ValueError, match=r"temperature=0\.0 at step 1 must be positive"):
        optimizer.step()


def test_h_is_the_diagonal_of_the_hessian():
    """With mu at rest in a minimum and a narrow q, h averages d^2 l / dtheta_i^2 at mu: of a network with a hidden layer."""
    torch.manual_seed(0)
    x = torch.randn(64, 3).double()
    y = (x[:, 0] * x[:, 1] > 0).long()
    net = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 2, bias=False)).double()

    def loss(first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        penalty = 0.005 * (first.square().sum() + last.square().sum())  # so that there is a minimum
        return F.cross_entropy((x @ first.T).tanh() @ last.T, y) + penalty

    search = torch.optim.LBFGS(net.parameters(), max_iter=500, line_search_fn="strong_wolfe")
    weights = (net[0].weight, net[2].weight)

    def closure() -> torch.Tensor:
        search.zero_grad()
        value = loss(*weights)
        value.backward()
        return value

    search.step(closure)
    hessian = torch.autograd.functional.hessian(loss, tuple(w.detach() for w in weights))
    exact = torch.cat([hessian[i][i].reshape(w.numel(), w.numel()).diagonal() for i, w in enumerate(weights)])
    bnn = ssvi.to_bnn(net, 1.0, prior_sigma=1.0)
    optimizer = ssvi.IVON(bnn, lr=0.0, train_size=64, h0=0.1, betas=(0.9, 0.999), temperature=0.01)
    total, layers = torch.zeros_like(exact), [layer for _, layer in ssvi.layers(bnn)]
    for step in range(3000):
        with optimizer.sampled():
            loss(*(layer.weight for layer in layers)).backward()
        optimizer.step()
        if step >= 1000:
            total += torch.cat([optimizer.state[layer.mu]["h"] for layer in layers]) / 2000
    assert (total - exact).abs().mean() < 0.15 * exact.abs().mean()
    assert torch.corrcoef(torch.stack([total, exact]))[0, 1] > 0.95


def test_two_thetas_average_and_two_parts_of_a_batch_add_up():
    x, y = regression()
    results = {}
    for kind in ("whole", "parts", "thetas"):
        bnn = linear(x)
        optimizer = ssvi.IVON(bnn, train_size=len(x))
        torch.manual_seed(5)
        with optimizer.sampled():
            if kind == "parts":
                (gaussian_nll(bnn(x[:100]), y[:100]) / 2).backward()
                (gaussian_nll(bnn(x[100:]), y[100:]) / 2).backward()
            else:
                gaussian_nll(bnn(x), y).backward()
        if kind == "thetas":
            with optimizer.sampled():
                gaussian_nll(bnn(x), y).backward()
        gradient = bnn.mu.grad.clone()
        optimizer.step()
        assert bnn.mu.grad is None, "a step uses the gradients up"
        results[kind] = (gradient, optimizer.state[bnn.mu]["g"].clone(), optimizer.state[bnn.mu]["h"].clone())
    for whole, parts in zip(results["whole"], results["parts"], strict=True):
        torch.testing.assert_close(whole, parts)
    total, g, _ = results["thetas"]
    torch.testing.assert_close(g, 0.1 * total / 2)


@pytest.mark.filterwarnings(
    "ignore::ssvi.inference.watch.TrainingWarning"
)  # a step of many orders of magnitude is told
@given(
    h=st.floats(1e-8, 1e3), h_hat=st.floats(-1e6, 1e6), delta=st.floats(1e-8, 1.0), b2=st.sampled_from([0.9, 0.999, 0.99999])
)  # fmt: skip
def test_h_stays_positive_whatever_the_estimate(h, h_hat, delta, b2):
    """(h + delta) (1 - r + r^2 / 2) with r = (1 - b2) (h - h_hat) / (h + delta) is at least half of h + delta."""
    bnn = linear(torch.ones(1, 1), prior_sigma=delta**-0.5)
    optimizer = ssvi.IVON(bnn, lr=0.0, train_size=1, h0=h, betas=(0.9, b2))
    with optimizer.sampled():
        sigma = optimizer.sigma(bnn.posterior)
        eps = (bnn.weight.detach().flatten() - bnn.mu.detach()) / sigma
        (bnn.weight.sum() * (h_hat * sigma / eps).item()).backward()  # g_hat = h_hat sigma / eps
    optimizer.step()
    assert optimizer.state[bnn.mu]["h"].item() + delta >= 0.5 * (h + delta) * (1 - 1e-6)


def test_at_the_mean_nothing_is_learnt_of_the_curvature():
    x, y = regression()
    bnn = linear(x)
    optimizer = ssvi.IVON(bnn, train_size=len(x), h0=0.3)
    with ssvi.at_mean(bnn), optimizer.sampled():
        gaussian_nll(bnn(x), y).backward()
    mu = bnn.mu.detach().clone()
    optimizer.step()
    assert not torch.equal(bnn.mu, mu)
    assert torch.equal(optimizer.state[bnn.mu]["h"], torch.full((4,), 0.3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_size": 0}, "train_size=0 must be"),
        ({"h0": 0.0}, r"h0=0.0 must be positive"),
        ({"lr": math.nan}, "lr=nan must be a finite number"),
        ({"betas": (0.9, 1.0)}, r"betas\[1\]=1.0 must be in \[0, 1\)"),
        ({"temperature": -1.0}, "temperature=-1.0 must be positive"),
        ({"temperature": ssvi.schedules.linear(1.0, steps=9)}, "temperature=0.0 must be positive"),
    ],
)
def test_mistakes_are_named(changes, message):
    bnn = ssvi.to_bnn(nn.Linear(4, 2), 0.5)
    with pytest.raises(ValueError, match=message):
        ssvi.IVON(bnn, **({"train_size": 10} | changes))
    with pytest.raises(ValueError, match="no Gaussian posterior"):
        ssvi.IVON(ssvi.to_bnn(nn.Linear(4, 2), 0.5, point=True), train_size=10)


def test_the_start_of_sigma_is_that_of_h0():
    bnn = ssvi.to_bnn(nn.Linear(4, 2), 0.5, prior_sigma=0.5)
    ssvi.IVON(bnn, train_size=100, h0=0.2)
    start = (100 * (0.2 + 1 / (100 * 0.25))) ** -0.5
    torch.testing.assert_close(bnn.sigma, torch.full((4,), start))
    assert bnn.posterior.sigma_init.item() == pytest.approx(start), "as `ssvi inspect` and the log have it"
