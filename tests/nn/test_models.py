"""A recipe's `model`: the built-in names, and functions, classes and other callables of the user's own."""

import sys
from functools import partial
from types import ModuleType

import pytest
import torch
from torch import nn

from ssvi.nn.models import BY_NAME, build, lenet, mlp


class OwnClass(nn.Module):
    def __init__(self, classes: int, size: int) -> None:
        super().__init__()
        self.asked = {"classes": classes, "size": size}


class OwnCallable:
    def __call__(self, *, classes: int, channels: int, width: int = 3) -> nn.Module:
        return record(classes=classes, channels=channels, width=width)


def record(**asked: int) -> nn.Module:
    net = nn.Identity()
    net.asked = asked
    return net


def with_a_local_called_size(classes: int) -> nn.Module:
    size = classes + 1
    return record(classes=classes, local=size)


@pytest.fixture(autouse=True)
def own(monkeypatch):
    module = ModuleType("users_models")
    module.Class, module.instance, module.function = OwnClass, OwnCallable(), with_a_local_called_size
    module.partial = partial(OwnCallable(), width=8)
    module.any_names = record
    module.no_argument = lambda: nn.Identity()
    module.num_classes = lambda num_classes: nn.Identity()
    module.square = lambda classes, size: nn.Linear(size**2, classes)
    module.network, module.number = nn.Linear(2, 2), 3
    monkeypatch.setitem(sys.modules, "users_models", module)


@pytest.mark.parametrize(
    ("name", "width", "asked"),
    [
        ("Class", 0, {"classes": 7, "size": 5}),
        ("Class", 4, {"classes": 7, "size": 5}),
        ("instance", 0, {"classes": 7, "channels": 2, "width": 3}),
        ("instance", 4, {"classes": 7, "channels": 2, "width": 4}),
        ("partial", 0, {"classes": 7, "channels": 2, "width": 8}),
        ("partial", 4, {"classes": 7, "channels": 2, "width": 4}),
        ("function", 0, {"classes": 7, "local": 8}),
        ("any_names", 4, {"classes": 7}),
    ],
)
def test_own_callables_get_the_arguments_that_they_name(name, width, asked):
    assert build(f"users_models:{name}", classes=7, channels=2, size=5, width=width).asked == asked


def test_own_callables_get_one_number_for_square_images_and_a_pair_for_others():
    sizes = [
        build("users_models:Class", classes=7, channels=2, size=size).asked["size"] for size in (5, (5, 5), (5, 6))
    ]
    assert sizes == [5, 5, (5, 6)]
    with pytest.raises(
        ValueError, match=r"model='users_models:square' failed with classes=7, size=\(5, 6\).*not square"
    ):
        build("users_models:square", classes=7, channels=2, size=(5, 6))
    assert build("users_models:square", classes=7, channels=2, size=5).in_features == 25


@pytest.mark.parametrize("name", ["no_argument", "num_classes", "network", "number"])
def test_what_does_not_take_classes_is_named(name):
    with pytest.raises(ValueError, match=rf"model='users_models:{name}'.*takes `classes`"):
        build(f"users_models:{name}", classes=7, channels=2, size=5)


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match=r"model='lenet5' is unknown: take one of mlp, lenet"):
        build("lenet5", classes=7, channels=2, size=5)
    for name in ("no_such_module:f", "users_models:nothing"):
        with pytest.raises(ValueError, match=rf"model='{name}' cannot be imported"):
            build(name, classes=7, channels=2, size=5)


def test_built_in_names():
    def shapes(net: nn.Module) -> list[tuple[int, ...]]:
        return [tuple(p.shape) for p in net.parameters()]

    assert shapes(build("mlp", classes=7, channels=2, size=5)) == shapes(mlp(classes=7, channels=2, size=5))
    got = build("lenet", classes=7, channels=2, size=8, width=4)
    assert shapes(got) == shapes(lenet(classes=7, channels=2, size=8, width=4))
    assert build("resnet20", classes=7, channels=2, size=8, width=4).linear.out_features == 7


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("size", [(8, 13), (13, 8)])
def test_built_in_networks_take_images_that_are_not_square(name, size):
    net = build(name, classes=7, channels=2, size=size, width=4)
    assert net(torch.randn(3, 2, *size)).shape == (3, 7)


def test_a_square_may_be_one_number_or_two():
    inputs = [build("mlp", classes=7, channels=2, size=size)[1].in_features for size in (6, (6, 6), (4, 9))]
    assert inputs == [72, 72, 72]


def test_images_that_are_too_small_for_lenet_are_named():
    assert build("lenet", classes=7, channels=2, size=(4, 5))(torch.zeros(1, 2, 4, 5)).shape == (1, 7)
    with pytest.raises(ValueError, match=r"size=\(3, 20\): lenet .* 4 x 4"):
        build("lenet", classes=7, channels=2, size=(3, 20))
