"""BatchNorm's statistics of single thetas: what they are, when they are used, and what keeps them."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.nn.at_theta import at_theta, theta_generator
from ssvi.nn.batchnorm import recompute_batchnorm
from ssvi.nn.layers import posteriors
from ssvi.nn.models import resnet18
from ssvi.nn.random_tensor import is_random
from ssvi.nn.theta_statistics import fitted, make_room, stored

K = 4


def network(seed: int = 0) -> nn.Module:
    """A small network in float64 with three BatchNorm layers, whose running statistics are some numbers."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU(),
        nn.Conv2d(5, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(),
        nn.Linear(24, 7), nn.BatchNorm1d(7, momentum=0.3), nn.Dropout(0.5), nn.Linear(7, 3),
    ).double()  # fmt: skip
    bnn = ssvi.to_bnn(net, 0.6, sigma_init=0.4)
    for norm in (bnn[1], bnn[4], bnn[8]):
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return bnn


def batches(count: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(16, 2, 6, 6, generator=generator, dtype=torch.float64) for _ in range(count)]


def fit(**options: int) -> nn.Module:
    bnn = network()
    ssvi.fit_batchnorm(bnn, batches(), K, **options)
    assert all(module.training for module in bnn.modules())
    return bnn.eval()


def recomputed(bnn: nn.Module, number: int | None, seed: int = 0) -> nn.Module:
    """The deterministic network of one theta (None: the mean), with statistics of its own from the same batches."""
    bare = network()
    bare.load_state_dict({key: value for key, value in bnn.state_dict().items() if "per_theta" not in key})
    net = ssvi.mean(bare) if number is None else ssvi.sample(bare, theta_generator(seed, number - number % 2))
    if number is not None and number % 2:  # the other side of the mean
        for of_net, of_bare in zip(posteriors(net).values(), posteriors(bare).values(), strict=True):
            of_net.mu.data = 2 * of_bare.mu.data - of_net.mu.data
    recompute_batchnorm(net, batches())
    return net.eval()


X = torch.randn(9, 2, 6, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.mark.parametrize("number", [None, 0, 2, 3])
def test_the_statistics_of_a_theta_are_those_of_its_deterministic_network(number):
    bnn = fit()
    net, row = recomputed(bnn, number), 0 if number is None else 1 + number
    for place in (1, 4, 8):
        torch.testing.assert_close(bnn[place].per_theta.mean[row], net[place].running_mean, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(bnn[place].per_theta.var[row], net[place].running_var, rtol=1e-12, atol=1e-12)


def test_a_prediction_is_the_mean_over_networks_with_statistics_of_their_own():
    bnn = fit()
    with torch.no_grad():
        alone = torch.stack([recomputed(bnn, number)(X).softmax(-1) for number in range(K)])
    torch.testing.assert_close(ssvi.predict_samples(bnn, X, K), alone, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(ssvi.predict(bnn, X, 3), alone[:3].mean(0), rtol=1e-12, atol=1e-13)
    other = fit(seed=7)
    with torch.no_grad():
        torch.testing.assert_close(
            ssvi.predict(other, X, 1), recomputed(bnn, 0, seed=7)(X).softmax(-1), rtol=1e-12, atol=1e-13
        )


def test_the_mean_has_statistics_of_its_own():
    bnn = fit()
    with torch.no_grad():
        alone = recomputed(bnn, None)(X)
        torch.testing.assert_close(ssvi.mean(bnn)(X), alone, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(ssvi.mean(bnn.train()).eval()(X), alone, rtol=1e-12, atol=1e-13)
        with ssvi.at_mean(bnn.eval()):
            torch.testing.assert_close(bnn(X), alone, rtol=1e-12, atol=1e-13)
    assert not stored(ssvi.mean(bnn))
    assert not stored(ssvi.sample(bnn, dense=True))


def test_nothing_else_is_touched():
    bnn, before = fit(), network()
    kept = {key: value for key, value in bnn.state_dict().items() if "per_theta" not in key}
    assert all(torch.equal(value, before.state_dict()[key]) for key, value in kept.items())
    ssvi.predict(bnn, X, K)
    with ssvi.at_mean(bnn):
        bnn(X)
    assert all(torch.equal(bnn.state_dict()[key], value) for key, value in kept.items())
    assert [bnn[place].momentum for place in (1, 4, 8)] == [0.1, 0.1, 0.3]


def test_a_step_of_training_ends_their_use():
    bnn = fit().train()
    F.cross_entropy(bnn(X), torch.arange(9) % 3).backward()
    assert fitted(bnn), "a forward pass in training moves the running statistics alone"
    torch.optim.SGD(bnn.parameters(), 1e-6).step()
    bare = network()
    bare.load_state_dict({key: value for key, value in bnn.state_dict().items() if "per_theta" not in key})
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match="call fit_batchnorm again"):
        stale = ssvi.predict(bnn.eval(), X, 2)
    torch.manual_seed(3)
    assert torch.equal(stale, ssvi.predict(bare.eval(), X, 2))
    with pytest.warns(UserWarning, match="changed since"), ssvi.at_mean(bnn), ssvi.at_mean(bare):
        assert torch.equal(bnn(X), bare(X))
    with pytest.warns(UserWarning, match="changed since"):
        ssvi.mean(bnn)
    ssvi.fit_batchnorm(bnn, batches(), 2)
    assert {statistics.samples for statistics in fitted(bnn).values()} == {2}


@pytest.mark.parametrize(
    "use", [lambda bnn: ssvi.predict(bnn, X, 2), ssvi.mean, lambda bnn: ssvi.at_mean(bnn).__enter__()]
)
def test_the_warning_points_at_the_line_of_the_user(use):
    bnn = fit()
    with torch.no_grad():
        bnn[0].mu.add_(1.0)
    with pytest.warns(UserWarning, match="changed since") as warned:
        use(bnn)
    assert [warning.filename for warning in warned] == [__file__]


def test_an_update_of_gamma_and_another_precision_end_their_use():
    moved = fit()
    posterior = moved[7].posterior
    absent = (~posterior.gamma).flatten().nonzero().flatten()[0]
    posterior.move_to(torch.cat([posterior.index[1:], absent[None].int()]).sort().values, 0.4)
    with pytest.warns(UserWarning, match="changed since"):
        assert not fitted(moved)
    with pytest.warns(UserWarning, match="changed since"):
        assert not fitted(fit().float())  # the same seed draws other thetas in float32


def test_training_moves_the_running_statistics_and_not_those_of_a_theta():
    bnn = fit().train()
    before = copy.deepcopy(bnn)
    with ssvi.at_mean(bnn):
        bnn(X)
    assert not torch.equal(bnn[1].running_mean, before[1].running_mean)
    assert torch.equal(bnn[1].per_theta.mean, before[1].per_theta.mean)


def test_copies_and_state_dicts_take_them_along():
    bnn = fit()
    expected = ssvi.predict(bnn, X, K)
    assert torch.equal(ssvi.predict(copy.deepcopy(bnn), X, K), expected)
    again = network(seed=5)
    with pytest.raises(RuntimeError, match=r"1\.per_theta\.mean"):
        again.load_state_dict(bnn.state_dict())
    make_room(again, bnn.state_dict())
    again.load_state_dict(bnn.state_dict())
    assert torch.equal(ssvi.predict(again.eval(), X, K), expected)
    again.load_state_dict(network(seed=5).state_dict(), strict=False)  # other weights, without statistics
    with pytest.warns(UserWarning, match="changed since"):
        assert not fitted(again)


def test_thetas_of_older_statistics_have_draws_of_their_own():
    """As in version 0.2, whose networks know nothing of pairs."""
    state = {key: value for key, value in fit().state_dict().items() if not key.endswith(".pairs")}
    bnn, bare = network().eval(), network().eval()
    make_room(bnn, state)
    bnn.load_state_dict(state)
    for number in range(K):
        alone = ssvi.sample(bare, theta_generator(0, number))
        with torch.no_grad(), at_theta(bnn, number, fitted(bnn)):
            for name, posterior in posteriors(bnn).items():
                assert torch.equal(posterior.theta, posteriors(alone)[name].mu)


def test_the_fused_kernels_use_them():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(resnet18(width=8), 0.1, sigma_init=0.3).eval()
    x = torch.randn(4, 3, 16, 16)
    ssvi.fit_batchnorm(bnn, [torch.randn(32, 3, 16, 16)], 2)
    fused = ssvi.predict(bnn, x, 2)
    with ssvi.kernels.use("dense"):
        torch.testing.assert_close(fused, ssvi.predict(bnn, x, 2), rtol=1e-3, atol=1e-4)
    running = ssvi.predict_samples(bnn, x, 1, generator=theta_generator(0, 0))
    assert not torch.allclose(running, ssvi.predict_samples(bnn, x, 1), atol=1e-2)  # the same theta, other statistics


def test_networks_that_have_nothing_to_fit_stay_as_they_are():
    plain, points = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)), ssvi.to_bnn(nn.Linear(4, 3), 0.5, sigma_init=0.1)
    before_of_points = copy.deepcopy(points)
    for net in (plain, points, ssvi.mean(fit())):
        before = copy.deepcopy(net)
        ssvi.fit_batchnorm(net, [], 3)
        assert net.state_dict().keys() == before.state_dict().keys()
        assert is_random(net) == is_random(before)
    drawn = []
    for net in (points, before_of_points):
        torch.manual_seed(1)
        drawn.append(ssvi.predict(net, torch.ones(2, 4), 3))
    assert torch.equal(*drawn)


def test_what_cannot_be_done_is_said():
    with pytest.raises(ValueError, match="samples=0"):
        ssvi.fit_batchnorm(network(), batches(), 0)
    with pytest.raises(TypeError, match=r"samples=2\.5 must be a whole number"):
        ssvi.fit_batchnorm(network(), batches(), 2.5)
    with pytest.raises(TypeError, match=r"input of type tuple \(.*give the inputs alone, .*for x, y in loader"):
        ssvi.fit_batchnorm(network(), [(x, x.sum(1)) for x in batches()], 2)
    with pytest.raises(ValueError, match="no batch"):
        ssvi.fit_batchnorm(network(), [], 2)
    with pytest.raises(ValueError, match=r"samples=5 are more than the 4 .*samples=5"):
        ssvi.predict(fit(), X, 5)
