"""Plain networks, not Bayesian yet, and how a recipe's `model` becomes one."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ssvi.kernels.observed import observed
from ssvi.nn.conv_norm import conv_norm, conv_norm_pair

ImageSize = int | tuple[int, int]
"""The size of images in pixels: (height, width), or one number where the two are equal."""


def height_and_width(size: ImageSize) -> tuple[int, int]:
    """(height, width) of images of that size."""
    return (size, size) if isinstance(size, int) else size


def image_size(height: int, width: int) -> ImageSize:
    """One number for square images, else (height, width)."""
    return height if height == width else (height, width)


def mlp(*, classes: int = 10, channels: int = 1, size: ImageSize = 28, width: int = 400) -> nn.Sequential:
    """Two hidden layers of `width` units on the pixels."""
    pixels_high, pixels_wide = height_and_width(size)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * pixels_high * pixels_wide, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, classes),
    )


def lenet(*, classes: int = 10, channels: int = 1, size: ImageSize = 28, width: int = 32) -> nn.Sequential:
    """Two 3x3 convolutions of `width` and 2 `width` channels, each halves the image; then two fully connected layers."""
    pixels_high, pixels_wide = height_and_width(size)
    if min(pixels_high, pixels_wide) < 4:
        raise ValueError(
            f"size={size}: lenet halves the image twice and needs 4 x 4 pixels at least; take model='mlp' or larger images"
        )
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * (pixels_high // 4) * (pixels_wide // 4), 4 * width),
        nn.ReLU(),
        nn.Linear(4 * width, classes),
    )


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2016)."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or width_in != width:
            self.shortcut = nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """relu(f(x) + shortcut(x))."""
        return conv_norm_pair(
            self.conv1, self.bn1, self.conv2, self.bn2, x, residual=lambda: self._shortcut(x), relu=True
        )

    def _shortcut(self, x: Tensor) -> Tensor:
        match list(self.shortcut):
            case [conv, nn.BatchNorm2d() as norm] if not observed(self.shortcut):
                return conv_norm(conv, norm, x)
        return self.shortcut(x)


class ResNet(nn.Module):
    """A residual network for small images: 3x3 stem, stages that halve the image and double the width, linear head.

    It averages over the positions before the head, so it takes images of every size.
    """

    def __init__(self, blocks: tuple[int, ...], *, classes: int, width: int, channels: int = 3) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        stages: list[nn.Module] = []
        before = width
        for i, count in enumerate(blocks):
            after = width * 2**i
            first = BasicBlock(before, after, stride=1 if i == 0 else 2)
            stages.append(nn.Sequential(first, *(BasicBlock(after, after, stride=1) for _ in range(count - 1))))
            before = after
        self.stages = nn.Sequential(*stages)
        self.linear = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the classes."""
        y = conv_norm(self.conv1, self.bn1, x, relu=True)
        for stage in [self.stages] if observed(self.stages) else self.stages:
            y = stage(y)  # a call of all stages at once would hold its input, the largest of them, until the last
        return self.linear(y.mean((2, 3)))


def resnet18(*, classes: int = 10, channels: int = 3, width: int = 64) -> ResNet:
    """The paper's network: ResNet-18 with a CIFAR stem, 11.2 M weights at width 64."""
    return ResNet((2, 2, 2, 2), classes=classes, width=width, channels=channels)


def resnet20(*, classes: int = 10, channels: int = 3, width: int = 16) -> ResNet:
    """The small network of He et al. for CIFAR: three stages of three blocks, 0.27 M weights at width 16."""
    return ResNet((3, 3, 3), classes=classes, width=width, channels=channels)


BY_NAME: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "lenet": lenet, "resnet18": resnet18, "resnet20": resnet20}


def build(name: str, *, classes: int, channels: int, size: ImageSize, width: int = 0) -> nn.Module:
    """The network of that name for such images; `width=0` is its usual width.

    `package.module:function` is your own function, class or other callable: it is called with `classes`, and with
    `channels`, `size` and `width` if it names them among its arguments. `size` is one number for square images and
    (height, width) for others; `width` is that of the network, and left out where it is 0.
    """
    make = BY_NAME.get(name) or own_model(name, tuple(BY_NAME))
    size = image_size(*height_and_width(size))
    offered: dict[str, Any] = {"channels": channels, "size": size} | ({"width": width} if width else {})
    if name in BY_NAME:
        taken = inspect.signature(make).parameters
        return make(classes=classes, **{key: value for key, value in offered.items() if key in taken})
    return call_own(name, make, classes, offered)


def own_model(name: str, known: tuple[str, ...]) -> Callable[..., nn.Module]:
    """The callable that `package.module:function` names; it must take the number of classes."""
    module, colon, function = name.rpartition(":")
    if not colon:
        raise ValueError(f"model={name!r} is unknown: take one of {', '.join(known)}, or package.module:function")
    if "/" in module or module.endswith(".py") or not module or not function:
        raise ValueError(
            f"model={name!r}: name it as package.module:function, without folders and without .py, and put its folder on "
            "PYTHONPATH"
        )
    try:
        make = getattr(importlib.import_module(module), function)
    except (Exception, SystemExit) as error:  # the module is the user's, and may do anything when it is imported
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"model={name!r} cannot be imported ({said}): is its folder on PYTHONPATH?") from error
    _check_takes_classes(name, make)
    return make


def call_own(name: str, make: Callable[..., nn.Module], classes: int, offered: dict[str, Any]) -> nn.Module:
    """The network that one's own function makes of `classes` and of what is offered and among its arguments."""
    taken = inspect.signature(make).parameters
    arguments = {"classes": classes} | {key: value for key, value in offered.items() if key in taken}
    try:
        net: object = make(**arguments)
    except Exception as error:  # the function is the user's, and may fail in any way
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        uneven = isinstance(arguments.get("size"), tuple)
        hint = ": the images are not square, so it gets (height, width)" if uneven else ""
        raise ValueError(f"model={name!r} failed with {given} ({type(error).__name__}: {error}){hint}") from error
    if not isinstance(net, nn.Module):
        raise ValueError(f"model={name!r} returned {type(net).__name__} and not a network (torch.nn.Module)")
    return net


def _check_takes_classes(name: str, make: Any) -> None:
    remedy = "name a function or class that takes `classes`, the number of outputs, and returns the network"
    if isinstance(make, nn.Module):
        raise ValueError(f"model={name!r} is a network already, and its number of outputs cannot be set: {remedy}")
    try:
        inspect.signature(make).bind_partial(classes=10)
    except (TypeError, ValueError) as error:
        raise ValueError(f"model={name!r} cannot be called with classes=10 ({error}): {remedy}") from error
