"""A class is abstract or final: what a class of the package implements, no class below it implements again."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import torch

import ssvi
from ssvi.inference.samplers import SGLD


def modules() -> list[ModuleType]:
    """Every module of the package; the compiled libraries beside them are not Python's."""
    names = [found.name for found in pkgutil.walk_packages(ssvi.__path__, "ssvi.")]
    return [importlib.import_module(n) for n in names if not n.endswith("__main__") and "native.kernels_" not in n]


def overridden(kind: type, package: str = "ssvi") -> list[str]:
    """The members of a class that stand in place of one that a class of the package has implemented already."""
    members = {n: m for n, m in vars(kind).items() if inspect.isfunction(m) or isinstance(m, (property, classmethod))}
    doubles = []
    # torch wraps the `step` of an optimiser's class when the first object is made, and marks the wrapper
    own = [name for name, m in members.items() if not name.startswith("__") and not getattr(m, "hooked", False)]
    for name in own:
        above = [base for base in kind.__mro__[1:] if name in vars(base) and base.__module__.startswith(package)]
        if above and not getattr(vars(above[0])[name], "__isabstractmethod__", False):
            doubles.append(f"{kind.__module__}.{kind.__qualname__}.{name} of {above[0].__qualname__}")
    return doubles


def test_nothing_concrete_is_overridden():
    SGLD([torch.nn.Parameter(torch.zeros(1))], 0.1, train_size=1)  # as any other test may have done
    kinds = {kind for module in modules() for _, kind in inspect.getmembers(module, inspect.isclass)}
    assert len(kinds) > 100
    assert [line for kind in kinds if kind.__module__.startswith("ssvi") for line in overridden(kind)] == []


class Base:
    def done(self) -> int:
        return 1


class Again(Base):
    def done(self) -> int:
        return 2


def test_an_override_would_be_seen():
    assert len(overridden(Again, package=Base.__module__)) == 1
