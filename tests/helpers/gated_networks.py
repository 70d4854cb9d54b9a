"""Small networks of every shape with gates whose z is known, for the tests of gates and of reach."""

import torch
from torch import nn

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
