"""Small networks of every shape with gates whose z is known; and the training of a gated network on the digits."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi import schedules
from ssvi.data import DataSet, load
from ssvi.nn.gates import Gate, gated, gates
from ssvi.nn.models import ResNet, lenet, mlp


class FixedGate(Gate):
    """z is random numbers that do not change."""

    spreads = True

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.z = nn.Parameter(0.2 + torch.rand(channels))

    @property
    def mean_of_all(self) -> torch.Tensor:
        return self.z

    def draw_all(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> torch.Tensor:
        return self.z.expand(shape)

    def kl(self) -> torch.Tensor:
        return self.z.new_zeros(())


def tied() -> nn.Sequential:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    net[2].weight = net[0].weight
    return net


NETS = {
    "mlp": (lambda: mlp(size=3, width=5, classes=3), (1, 3, 3)),
    "tanh": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), (4,)),
    "lenet": (lambda: lenet(size=4, width=2, classes=3), (1, 4, 4)),
    "residual": (lambda: ResNet((1, 1), classes=2, width=3, channels=2), (2, 4, 4)),
    "no norm": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)),
        (2, 2, 2),
    ),
    "pool of a small image": (
        lambda: nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, 2)),
        (1, 2, 2),
    ),
    "tied": (tied, (4,)),
}


def network(name: str, seed: int = 0) -> nn.Module:
    """A gated network in float64, neither initial nor small; a channel that gets nothing gives something positive, so
    that for some input every ReLU is open."""
    torch.manual_seed(seed)
    net = NETS[name][0]().double()
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.running_mean.uniform_(-2, -0.5)
                module.running_var.uniform_(0.5, 2)
                module.weight.uniform_(0.5, 2)
            elif isinstance(module, (nn.Linear, nn.Conv2d)):
                module.weight.normal_(mean=0.7)
            if getattr(module, "bias", None) is not None:
                module.bias.uniform_(0.1, 1)
    return gated(net, FixedGate).eval()


def inputs(name: str, n: int = 50) -> torch.Tensor:
    return 3 * torch.randn(n, *NETS[name][1], dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def close_some(net: nn.Module, seed: int = 2) -> None:
    """In every gate at least one channel is closed, and one stays."""
    generator = torch.Generator().manual_seed(seed)
    for _, gate in gates(net):
        order = torch.randperm(gate.channels, generator=generator)
        gate.alive[order[: max(1, gate.channels // 3)]] = False


def train_on_digits(net: nn.Module, kl: Callable, beta: Callable[[float], float], epochs: int) -> DataSet:
    """Train a gated network by Adam, its gates ten times as fast; `beta` is by the share of the steps. Returns the data."""
    data = load("digits")
    of_gates = [p for _, gate in gates(net) for p in gate.parameters()]
    rest = [p for p in net.parameters() if all(p is not q for q in of_gates)]
    optimizer = torch.optim.Adam([{"params": rest, "lr": 0.01}, {"params": of_gates, "lr": 0.1}])
    batches = data.batches(data.train, 64, drop_last=True)
    steps = epochs * len(batches)
    elbo = ssvi.ELBO(net, train_size=len(data.train), beta=lambda step: beta(step / steps), kl=kl)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, schedules.cosine(1.0, steps=steps))
    for epoch in range(epochs):
        for x, y in batches.epoch(epoch):
            optimizer.zero_grad()
            elbo(F.cross_entropy(net(x), y)).backward()
            optimizer.step()
            decay.step()
    return data


def removed_and_accuracy(small: nn.Module, data: DataSet) -> tuple[float, float]:
    """The share of weights that pruning removed, and the accuracy of five samples on the test images."""
    probs = ssvi.predict(small, data.normalise(data.test.x), 5, generator=torch.Generator().manual_seed(0))
    pruned = [layer.posterior for _, layer in ssvi.layers(small)]
    removed = 1 - sum(p.s for p in pruned) / sum(p.d for p in pruned)
    return removed, (probs.argmax(1) == data.test.y).double().mean().item()
