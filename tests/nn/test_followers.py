"""Which layers are followed by normalisation."""

import pytest
import torch
from torch import nn

from ssvi.nn.followers import followed_by_normalisation
from ssvi.nn.models import lenet, mlp, resnet18


def names(net: nn.Module) -> set[str]:
    """The names of the layers that are said to be followed by normalisation."""
    found = followed_by_normalisation(net)
    return {name for name, module in net.named_modules() if module in found}


class Block(nn.Module):
    """Registers its modules in the order of use, and an attribute that is None."""

    def __init__(self):
        super().__init__()
        self.conv, self.nothing, self.norm = nn.Conv2d(3, 8, 3), None, nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 2)


def test_the_networks_of_the_package():
    assert names(lenet()) == {"0", "4"}
    assert names(mlp()) == set()
    net = resnet18(width=4)
    convolutions = {name for name, module in net.named_modules() if isinstance(module, nn.Conv2d)}
    assert names(net) == convolutions
    assert len(convolutions) == 20


@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm1d(6), nn.SyncBatchNorm(6), nn.InstanceNorm1d(6), nn.GroupNorm(2, 6), nn.LayerNorm(6), nn.RMSNorm(6),
        nn.LayerNorm((6, 5)),
    ],
    ids=repr,
)  # fmt: skip
def test_every_normalisation_of_as_many_features(norm):
    assert names(nn.Sequential(nn.Conv1d(2, 6, 3), norm)) == {"0"}
    assert names(nn.Sequential(nn.Conv1d(2, 12, 3), norm)) == set()


def test_through_nested_sequentials_but_not_through_other_modules():
    inner = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(4, 6)))
    assert names(nn.Sequential(inner, nn.Sequential(nn.Sequential(nn.LayerNorm(6))))) == {"0.1.0"}
    assert names(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.LayerNorm(6))) == set()
    assert names(nn.Sequential(nn.Linear(4, 6), nn.Sequential(), nn.LayerNorm(6))) == set()
    assert names(Block()) == {"conv"}
    assert names(nn.Linear(4, 6)) == set()


def test_a_layer_whose_weight_is_computed_is_no_error():
    net = nn.Sequential(torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 6)), nn.LayerNorm(6))
    assert names(net) == set()
