"""timm imports torchvision for image transforms. Its networks need none of it, so where it cannot be imported an empty
one stands in, and the networks are tested all the same."""

import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock


class EmptyTorchvision(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives an empty module for every import of torchvision."""

    def find_spec(self, name, path=None, target=None):
        found = name.partition(".")[0] == "torchvision"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if found else None

    def create_module(self, spec):
        return MagicMock(name=spec.name, __path__=[], __spec__=spec)

    def exec_module(self, module):
        pass


try:
    import torchvision  # noqa: F401
except ImportError:
    finder = EmptyTorchvision()
    sys.meta_path.append(finder)
    try:
        import timm  # noqa: F401
    except ImportError:
        pass
    finally:  # other packages ask whether torchvision is there, and it is not
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
