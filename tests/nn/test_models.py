"""A recipe's `model`: the built-in names, and functions, classes and other callables of the user's own."""

import sys
from functools import partial
from types import ModuleType

import pytest
from torch import nn

from ssvi.nn.models import build, lenet, mlp


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
