"""What is told while a network trains, in the user's own loop, and that a healthy training is told nothing."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

import ssvi
from ssvi.inference import watch
from ssvi.inference.watch import DivergenceWarning, TrainingWarning
from ssvi.nn.models import lenet


def digits(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """n of sklearn's digits 0 to 7."""
    x, y = load_digits(return_X_y=True)
    some = (y < 8).nonzero()[0][:n]
    return torch.tensor(x[some] / 16, dtype=torch.float32), torch.tensor(y[some])


def mlp(density: float, **options: float) -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    return ssvi.to_bnn(net, density, **options)


def train(bnn: nn.Module, n: int, steps: int, lr: float = 0.05, beta: float = 1.0) -> list[warnings.WarningMessage]:
    """SGD by local reparameterisation, batches of 50; what was told."""
    x, y = digits(n)
    elbo = ssvi.ELBO(bnn, train_size=n, beta=beta)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=lr, momentum=0.9)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(steps):
            batch = torch.randint(n, (50,))
            optimizer.zero_grad()
            elbo(F.cross_entropy(bnn(x[batch]), y[batch])).backward()
            optimizer.step()
    return told


def test_a_collapse_is_told_once_with_its_remedies():
    told = train(mlp(0.1, prior_sigma=0.1, sigma_init=0.01), n=800, steps=201)
    assert [w.category for w in told] == [TrainingWarning]
    assert told[0].filename == __file__
    message = str(told[0].message)
    assert "collapsed to the prior" in message
    assert all(remedy in message for remedy in ("prior_sigma", "more examples", "ssvi.IVON", "beta"))


def test_a_bound_is_told_once_with_layer_and_remedy():
    told = train(mlp(0.1, prior_sigma=1.0), n=150, steps=65, lr=0.5)
    bounds = [str(w.message) for w in told if "bound" in str(w.message)]
    assert len(bounds) == 1
    assert "layer '" in bounds[0]
    assert "learning rate of rho" in bounds[0]


def test_healthy_training_by_local_reparameterisation_is_told_nothing():
    bnn = mlp(1.0, prior_sigma=0.2)
    assert train(bnn, n=400, steps=201, beta=0.05) == []
    assert ssvi.kl(bnn) > 0


def test_healthy_training_by_ivon_is_told_nothing():
    bnn, (x, y) = mlp(1.0, prior_sigma=1.0), digits(400)
    optimizer = ssvi.IVON(bnn, 0.2, train_size=400, h0=0.5, rest_lr=0.1)
    for _ in range(201):  # a warning is an error in these tests
        batch = torch.randint(400, (50,))
        with optimizer.sampled():
            nll = F.cross_entropy(bnn(x[batch]), y[batch])
            nll.backward()
        optimizer.step()
    assert nll < 0.5


def small() -> nn.Module:
    torch.manual_seed(0)
    return ssvi.to_bnn(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), 1.0, prior_sigma=0.1)


@torch.no_grad()
def become_the_prior(bnn: nn.Module) -> None:
    for _, layer in ssvi.layers(bnn):
        layer.mu.zero_()
        layer.posterior.rho.copy_(layer.posterior.rho_of(torch.full_like(layer.mu, 0.1)))


def test_a_start_at_the_prior_is_no_collapse_and_neither_is_another_prior():
    begun_there, other_prior, collapsed = small(), small(), small()
    become_the_prior(begun_there)
    watches = [watch.TrainingWatch(begun_there, watch.BY_IVON)]
    watches.append(watch.TrainingWatch(other_prior, watch.BY_IVON, has_gaussian_prior=False))
    last = watch.TrainingWatch(collapsed, watch.BY_IVON)
    become_the_prior(other_prior)
    become_the_prior(collapsed)
    for _ in range(watch.EVERY):
        for silent in watches:
            silent.step()
    for _ in range(watch.EVERY - 1):
        last.step()
    with pytest.warns(TrainingWarning, match=r"collapsed.*100%.*h0"):
        last.step()


def test_ivon_tells_a_collapse_in_its_100th_step():
    """Ten examples whose labels are noise, and a narrow prior: there is nothing to learn."""
    bnn, told = small(), []
    x, y = torch.randn(10, 4), torch.randint(3, (10,))
    optimizer = ssvi.IVON(bnn, 0.5, train_size=10, warmup=0, betas=(0.9, 0.9))
    for _ in range(100):
        with warnings.catch_warnings(record=True) as now:
            warnings.simplefilter("always")
            with optimizer.sampled():
                F.cross_entropy(bnn(x), y).backward()
            optimizer.step()
        told.append([str(w.message) for w in now])
    assert not any(told[:-1])
    (message,) = told[-1]
    assert "collapsed to the prior" in message
    assert "h0" in message


def test_ivon_tells_a_divergence_and_its_layer():
    bnn = small()
    optimizer = ssvi.IVON(bnn, train_size=10)
    with optimizer.sampled():
        bnn(torch.ones(2, 4)).sum().backward()
    with torch.no_grad():
        bnn[1].mu[0] = torch.inf
    with pytest.warns(DivergenceWarning, match="mu of layer '1' is not finite"):
        optimizer.step()


def test_a_sigma_that_ivon_has_frozen_is_told_by_the_loss():
    """A dropped optimiser leaves rho without gradient, and the next one would train mu alone."""
    bnn = small()
    optimizer = ssvi.IVON(bnn, train_size=10)
    del optimizer
    with pytest.warns(TrainingWarning, match=r"layer '0': sigma stays.*bnn\.requires_grad_\(True\)"):
        ssvi.ELBO(bnn, train_size=10)(torch.tensor(1.0))
    bnn.requires_grad_(True)
    ssvi.ELBO(bnn, train_size=10)(torch.tensor(1.0)).backward()
    assert bnn[0].posterior.rho.grad is not None
    bnn.requires_grad_(False)
    ssvi.ELBO(bnn, train_size=10)(torch.tensor(1.0))  # a layer that is frozen on purpose, mu included


def test_the_error_of_the_loss_names_the_layer():
    bnn = small()
    elbo = ssvi.ELBO(bnn, train_size=10)
    with torch.no_grad():
        bnn[1].posterior.rho[2] = torch.nan
    with pytest.raises(FloatingPointError, match=r"at step 0.*rho of layer '1' is not finite since an earlier step"):
        elbo(torch.tensor(1.0))


def test_the_public_name():
    assert ssvi.TrainingWarning is TrainingWarning


def tuned_on(warmup: int) -> tuple[float, list[str]]:
    """A trained network, a tenth of whose weights IVON trains on, cold: its accuracy then, and what was told."""
    x, y = digits(800)
    x = x.view(-1, 1, 8, 8)
    torch.manual_seed(0)
    net = lenet(size=8, width=16)
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(150):
        batch = torch.randint(len(x), (32,))
        sgd.zero_grad()
        F.cross_entropy(net(x[batch]), y[batch]).backward()
        sgd.step()
    bnn = ssvi.to_bnn(net, 0.1, keep_dense=("0",), support="magnitude")
    optimizer = ssvi.IVON(bnn, 0.5, train_size=len(x), warmup=warmup, temperature=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(100):
            batch = torch.randint(len(x), (32,))
            with optimizer.sampled():
                F.cross_entropy(bnn(x[batch]), y[batch]).backward()
            optimizer.step()
    with ssvi.at_mean(bnn):
        return (bnn(x).argmax(1) == y).double().mean().item(), [str(w.message) for w in told]


def test_first_steps_that_are_too_long_are_told_with_the_layer_and_the_remedy():
    accuracy, told = tuned_on(warmup=0)
    (message,) = [text for text in told if "times as large in the first" in text]
    assert "layer '" in message
    assert "longer warmup or a lower lr" in message
    with_warmup, nothing = tuned_on(warmup=100)
    assert nothing == []
    assert with_warmup > accuracy + 0.2
