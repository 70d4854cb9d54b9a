"""A Bayesian layer: a torch layer in which posteriors stand in place of some of its parameters.

Conversion changes the class of a layer in a copied network and leaves the object itself where it is, so every reference
that the network has to it (a list, a hook, a partial) stays valid, and its stride, hooks, mode and other attributes are
kept. A Bayesian layer is an instance of torch's class too: some networks ask `isinstance(layer, nn.Linear)` in `forward`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from ssvi.nn.layout import OUTPUTS_FIRST, PADDING_ROW, Layout
from ssvi.nn.one_theta import theta_of_call
from ssvi.nn.sparse import SparsePosterior


class BayesLayer(nn.Module, ABC):
    """A layer with random weights theta ~ q. It samples in training and in evaluation (`train()` and `eval()` are about
    BatchNorm), except where theta is pinned: inside `at_mean` and `at_sample`.

    There are two kinds: linear maps, which have kernels and noise of their own for each output, and layers that read
    their weights, which run torch's own code on one theta per call.
    """

    plain: ClassVar[type[nn.Module]]
    """The torch layer that this one was, and becomes again in `mean` and `sample`."""
    random: ClassVar[tuple[str, ...]] = ("weight",)
    """The names of the parameters that have become posteriors."""
    layout: ClassVar[Layout] = OUTPUTS_FIRST
    """How these parameters lie in their posteriors."""

    posterior: SparsePosterior
    """That of `weight`, in a layer that has one."""
    order: tuple[str, ...]
    """The names of all parameters in the order of the torch layer, which an optimiser's state depends on."""

    @property
    @abstractmethod
    def kernel(self) -> str:
        """The name of the kernel that serves this layer, for inputs of its own device and dtype."""

    @property
    def posteriors(self) -> dict[str, SparsePosterior]:
        """The posteriors by the names of the parameters that they stand for."""
        return {name: self._modules[slot(name)] for name in self.random}  # type: ignore[misc]

    def read(self, name: str) -> Tensor:
        """A dense parameter for code that reads it: a draw theta ~ q, or theta where it is pinned. Within one call of a
        layer that reads its weights, it is the same draw each time."""
        return theta_of_call(self.posteriors[name], lambda: self._dense_draw(name))

    def _dense_draw(self, name: str) -> Tensor:
        posterior = self.posteriors[name]
        pinned = posterior.theta
        theta = posterior.dense(posterior.sample() if pinned is None else pinned)
        if posterior.listener is not None:
            posterior.listener.watch_weight(theta)
        return self.layout.parameter(self, theta)

    def reset_parameters(self) -> None:
        """An error: torch's own would start the bias anew, and of the weights only a draw that nobody keeps."""
        raise RuntimeError(
            f"reset_parameters of a Bayesian {self.plain.__name__} would leave its posterior as it is: initialise the plain "
            'network and convert it then, ssvi.to_bnn(net, mu_init="net", ...)'
        )

    @property
    def index(self) -> Tensor:
        """The set I: sorted flat positions of the live weights."""
        return self.posterior.index

    @property
    def mu(self) -> nn.Parameter:
        """The means of the live weights."""
        return self.posterior.mu

    @property
    def sigma(self) -> Tensor:
        """The standard deviations of the live weights."""
        return self.posterior.sigma

    @property
    def gamma(self) -> Tensor:
        """The mask of the live weights, of the shape of the dense weight."""
        return self.posterior.gamma

    @property
    def density(self) -> float:
        """The share s / d of the weights that are live, over all posteriors of the layer."""
        return sum(p.s for p in self.posteriors.values()) / sum(p.d for p in self.posteriors.values())

    def __repr__(self) -> str:
        """What the torch layer says of itself, and how sparse it is."""
        said = [self.plain.extra_repr(self), *(p.extra_repr() for p in self.posteriors.values())]
        return f"{type(self).__name__}({', '.join(filter(None, said))})"


def slot(name: str) -> str:
    """The name of the child that holds the posterior of a parameter: "posterior" for the weight, as in checkpoints."""
    return "posterior" if name == "weight" else f"{name}_posterior"


def become_bayesian(layer: nn.Module, kind: type[BayesLayer], posteriors: Mapping[str, SparsePosterior]) -> None:
    """Give a torch layer a Bayesian class, and posteriors in place of parameters; it stays the same object."""
    order = tuple(layer._parameters)
    for name in kind.random:
        del layer._parameters[name]
    layer.__dict__.pop("_flat_weights", None)  # a recurrent layer of torch has a second list of its parameters
    layer.__class__ = kind
    setattr(layer, "order", order)  # noqa: B010 - torch types an attribute of a module as tensor or module
    for name, posterior in posteriors.items():
        layer.add_module(slot(name), posterior)


def become_plain(layer: BayesLayer, parameters: Mapping[str, nn.Parameter]) -> None:
    """Make a layer the torch layer that it was, with these parameters in place of its posteriors."""
    for name in layer.random:
        del layer._modules[slot(name)]
    layer._buffers.pop(PADDING_ROW, None)
    order = layer.__dict__.pop("order")
    layer.__class__ = layer.plain  # type: ignore[assignment]
    everything = {**parameters, **layer._parameters}
    layer._parameters = {name: everything[name] for name in order}
    if isinstance(layer, nn.RNNBase):
        layer._init_flat_weights()
