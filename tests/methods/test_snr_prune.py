"""SNR pruning against sorting by hand, training on after it, and BatchNorm's statistics against their definition."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from updates import OPTIMIZERS, batch, net

import ssvi
from ssvi import allocation
from ssvi.methods import snr_prune
from ssvi.nn.batchnorm import recompute_batchnorm
from ssvi.nn.models import resnet20


def spread(density: float = 1.0, seed: int = 0) -> nn.Module:
    """A network whose sigma differ, and their level from layer to layer."""
    torch.manual_seed(seed)
    bnn = ssvi.to_bnn(net().double(), density)
    for i, (_, layer) in enumerate(ssvi.layers(bnn)):
        nn.init.normal_(layer.posterior.rho, mean=0.05 * i, std=0.1)
    return bnn


def ranked(bnn: nn.Module, names) -> list[tuple[float, int, int]]:
    """(-|mu| / sigma, layer, position) of all weights of these layers, the best first."""
    ratios = []
    for i, name in enumerate(names):
        p = bnn.get_submodule(name).posterior
        rows = zip(p.mu.tolist(), p.sigma.tolist(), p.index.tolist(), strict=True)
        ratios += [(-abs(mu) / sigma, i, position) for mu, sigma, position in rows]
    return sorted(ratios)


def support(bnn: nn.Module) -> dict[str, list[int]]:
    return {name: layer.index.tolist() for name, layer in ssvi.layers(bnn)}


@pytest.mark.parametrize("density", [0.013, 0.1, 0.37, 1.0])
@pytest.mark.parametrize("dense", [(), ("0",)])
def test_each_layer_keeps_its_best(density, dense):
    bnn = spread()
    names = [name for name, _ in ssvi.layers(bnn) if name not in dense]
    counts = allocation.same_density([bnn.get_submodule(name).posterior.shape for name in names], density)
    want = support(bnn)
    for name, s in zip(names, counts, strict=True):
        want[name] = sorted(position for _, _, position in ranked(bnn, [name])[:s])
    snr_prune.prune(bnn, density, dense=dense)
    assert support(bnn) == want
    assert sum(len(want[name]) for name in names) == round(
        density * sum(bnn.get_submodule(name).posterior.d for name in names)
    )


@pytest.mark.parametrize("density", [0.05, 0.1, 0.37, 1.0])
@pytest.mark.parametrize("dense", [(), ("0",)])
def test_all_layers_together_keep_the_best(density, dense):
    bnn = spread()
    names = [name for name, _ in ssvi.layers(bnn) if name not in dense]
    total = round(density * sum(bnn.get_submodule(name).posterior.d for name in names))
    want = support(bnn) | {name: [] for name in names}
    for _, i, position in ranked(bnn, names)[:total]:
        want[names[i]].append(position)
    assert all(want.values())
    snr_prune.prune(bnn, density, scope="global", dense=dense)
    assert support(bnn) == {name: sorted(index) for name, index in want.items()}


def test_a_layer_of_noise_keeps_its_best_weight_and_the_total_is_exact():
    bnn = spread()
    with torch.no_grad():
        bnn[2].posterior.mu *= 1e-9
    best = ranked(bnn, ["2"])[0][2]
    others = ranked(bnn, ["0", "4"])[: round(0.1 * 700) - 1]
    snr_prune.prune(bnn, 0.1, scope="global")
    assert bnn[2].index.tolist() == [best]
    assert bnn[0].index.tolist() == sorted(position for _, i, position in others if i == 0)
    assert bnn[4].index.tolist() == sorted(position for _, i, position in others if i == 1)
    assert sum(layer.posterior.s for _, layer in ssvi.layers(bnn)) == round(0.1 * 700)


def test_of_equal_ratios_the_lower_position_stays():
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 4)), 1.0)
    with torch.no_grad():
        for layer in bnn:
            layer.posterior.mu.copy_(torch.tensor([0.1, -0.2, 0.2, 0.2, 0.0, -0.2, 0.1, 0.3]))
    by_layer, together = copy.deepcopy(bnn), copy.deepcopy(bnn)
    snr_prune.prune(by_layer, 3 / 8)
    assert support(by_layer) == {"0": [1, 2, 7], "1": [1, 2, 7]}
    snr_prune.prune(together, 7 / 16, scope="global")
    assert support(together) == {"0": [1, 2, 3, 5, 7], "1": [1, 7]}


def test_a_sparse_network_can_be_pruned_further():
    bnn = spread(density=0.5)
    want = {name: sorted(position for _, _, position in ranked(bnn, [name])[: layer.posterior.d // 4])
            for name, layer in ssvi.layers(bnn)}  # fmt: skip
    snr_prune.prune(bnn, 0.25)
    assert support(bnn) == want


def test_what_cannot_be_pruned_is_an_error_and_changes_nothing():
    bnn = spread(density=0.5)
    before = copy.deepcopy(bnn.state_dict())
    with pytest.raises(ValueError, match=r"density=0\.6 leaves layer '0' with s=65 of its 54 live weights"):
        snr_prune.prune(bnn, 0.6)
    with pytest.raises(ValueError, match=r"density=0\.001 leaves layer '0' with s=0"):
        snr_prune.prune(bnn, 0.001)
    with pytest.raises(ValueError, match="leaves s=1 of 350 live weights for 3 layers"):
        snr_prune.prune(bnn, 0.001, scope="global")
    with pytest.raises(ValueError, match="scope='all'"):
        snr_prune.prune(bnn, 0.1, scope="all")
    with pytest.raises(ValueError, match="density=0"):
        snr_prune.prune(bnn, 0)
    with pytest.raises(ValueError, match="dense='3' matches no Bayesian layer"):
        snr_prune.prune(bnn, 0.1, dense=("3",))
    with pytest.raises(TypeError, match="dense='0' must be a sequence"):
        snr_prune.prune(bnn, 0.1, dense="0")
    with pytest.raises(ValueError, match="leaves no Gaussian layer"):
        snr_prune.prune(bnn, 0.1, dense=("*",))
    assert all(torch.equal(before[key], value) for key, value in bnn.state_dict().items())
    with torch.no_grad():
        bnn[4].posterior.mu[3] = torch.nan
    with pytest.raises(FloatingPointError, match="layer '4'; nothing was changed"):
        snr_prune.prune(bnn, 0.1)
    assert bnn[0].posterior.s == 54


def test_an_optimizer_whose_state_cannot_be_cut_is_an_error_and_changes_nothing():
    bnn = spread()
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    optimizer.state[bnn[4].posterior.mu]["rows"] = torch.zeros(7)
    before = support(bnn)
    with pytest.raises(ValueError, match="SGD keeps 'rows' in another shape"):
        snr_prune.prune(bnn, 0.2, optimizer=optimizer)
    assert support(bnn) == before


@pytest.mark.parametrize("name", ["momentum", "adam", "adam, fused", "amsgrad", "rmsprop"])
def test_training_goes_on_as_if_the_other_weights_were_held_at_zero(name, dense_kernel):
    bnn = spread()
    optimizer = OPTIMIZERS[name](bnn.parameters())
    for seed in range(3):
        step(bnn, optimizer, seed)
    twin = copy.deepcopy(bnn)
    theirs = OPTIMIZERS[name](twin.parameters())
    theirs.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    gradient = {layer: (layer.posterior.mu.grad, layer.posterior.rho.grad) for _, layer in ssvi.layers(bnn)}
    objects = [id(p) for p in bnn.parameters()]
    snr_prune.prune(bnn, 0.2, scope="global", optimizer=optimizer)
    assert [id(p) for p in bnn.parameters()] == objects
    for layer, (of_mu, of_rho) in gradient.items():
        assert torch.equal(layer.posterior.mu.grad, of_mu[layer.index.long()])
        assert torch.equal(layer.posterior.rho.grad, of_rho[layer.index.long()])
    for seed in range(3, 7):
        hold_at_zero(twin, bnn)
        step(twin, theirs, seed)
        step(bnn, optimizer, seed)
    for (_, layer), (_, full) in zip(ssvi.layers(bnn), ssvi.layers(twin), strict=True):
        torch.testing.assert_close(layer.mu, full.mu[layer.index.long()])
        torch.testing.assert_close(layer.sigma, full.sigma[layer.index.long()])


def step(bnn, optimizer, seed) -> None:
    x, y = batch(seed)
    torch.manual_seed(seed)
    optimizer.zero_grad()
    F.cross_entropy(bnn(x.double()), y).backward()
    optimizer.step()


@torch.no_grad()
def hold_at_zero(twin, pruned) -> None:
    """mu = sigma = 0 for every weight that the pruned network has not."""
    for (_, full), (_, layer) in zip(ssvi.layers(twin), ssvi.layers(pruned), strict=True):
        gone = ~layer.gamma.flatten()
        full.posterior.mu[gone] = 0.0
        full.posterior.rho[gone] = -1000.0


def with_norms() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4), nn.BatchNorm1d(4, momentum=0.2)
    ).double()


def by_hand(layers, batches) -> list[torch.Tensor]:
    """Mean and variance of both norms' inputs, averaged over the batches, where the first normalises by its batch."""
    per_batch = []
    for x, (first, norm, second) in zip(batches, layers, strict=True):
        a = first(x)
        b = second(((a - a.mean(0)) / (a.var(0, correction=0) + norm.eps).sqrt() * norm.weight + norm.bias).relu())
        per_batch.append([a.mean(0), a.var(0), b.mean(0), b.var(0)])
    return [torch.stack(values).mean(0) for values in zip(*per_batch, strict=True)]


def statistics(net) -> list[torch.Tensor]:
    return [net[1].running_mean, net[1].running_var, net[5].running_mean, net[5].running_var]


@pytest.mark.parametrize("count", [1, 5])
def test_the_statistics_are_the_average_over_the_batches(count):
    net = with_norms()
    with torch.no_grad():
        net[1].running_mean.fill_(7.0)
        nn.init.normal_(net[1].weight)
    x = 3 * torch.randn(60, 6, dtype=torch.float64) + 1
    batches = list(x.split(60 // count))
    recompute_batchnorm(net, iter(batches))
    torch.testing.assert_close(statistics(net), by_hand([(net[0], net[1], net[4])] * count, batches))
    torch.testing.assert_close(net[1].running_mean, net[0](x).mean(0))
    if count == 1:
        torch.testing.assert_close(net[1].running_var, net[0](x).var(0))


def test_every_batch_has_its_own_weights():
    bnn = ssvi.to_bnn(with_norms(), 0.5, sigma_init=0.3)
    batches = list(torch.randn(40, 6, dtype=torch.float64).split(10))
    state, generator = torch.get_rng_state(), torch.Generator().manual_seed(3)
    recompute_batchnorm(bnn, batches, generator=generator)
    assert torch.equal(torch.get_rng_state(), state)
    generator.manual_seed(3)
    drawn = [ssvi.sample(bnn, generator) for _ in batches]
    torch.testing.assert_close(statistics(bnn), by_hand([(n[0], n[1], n[4]) for n in drawn], batches))


def test_modes_and_momentum_are_given_back_even_after_an_error():
    net = with_norms().train()
    net[1].eval()
    net[3].eval()
    modes, x = [m.training for m in net.modules()], torch.randn(10, 6, dtype=torch.float64)
    recompute_batchnorm(net, [x])
    with pytest.raises(RuntimeError):
        recompute_batchnorm(net, [x, x[:, :3]])
    assert [m.training for m in net.modules()] == modes
    assert (net[1].momentum, net[5].momentum) == (0.1, 0.2)
    before = copy.deepcopy(net.state_dict())
    with pytest.raises(ValueError, match="no batch"):
        recompute_batchnorm(net, [])
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())


def test_a_network_without_batchnorm_is_not_even_run():
    plain, x = net(), batch(0)[0]
    left = iter([x])
    recompute_batchnorm(plain, left)
    assert next(left) is x


def test_fused_normalisation_gives_the_same_statistics():
    torch.manual_seed(0)
    fused = ssvi.to_bnn(resnet20(width=4), 0.5)
    plain = copy.deepcopy(fused)
    for bnn, kernel in ((fused, "auto"), (plain, "dense")):
        with ssvi.kernels.use(kernel):
            batches = torch.randn(3, 4, 3, 16, 16, generator=torch.Generator().manual_seed(1))
            recompute_batchnorm(bnn, batches, generator=torch.Generator().manual_seed(2))
    a, b = fused.state_dict(), plain.state_dict()
    running = [key for key in a if "running" in key]
    assert len(running) == 2 * 21
    torch.testing.assert_close([a[key] for key in running], [b[key] for key in running], rtol=1e-3, atol=1e-4)


def test_new_statistics_repair_what_pruning_shifts():
    """After the cut BatchNorm's old statistics are those of another network: its output is off in mean and spread."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(with_norms(), 1.0, sigma_init=0.05)
    x = torch.randn(500, 6, dtype=torch.float64)
    recompute_batchnorm(bnn, x.split(50))
    snr_prune.prune(bnn, 0.3)

    def offset() -> float:
        with ssvi.at_mean(bnn.eval()):
            return bnn(x).mean(0).abs().max().item() + (bnn(x).std(0) - 1).abs().max().item()

    before = offset()
    recompute_batchnorm(bnn, x.split(50))
    assert offset() < 0.2 * before
