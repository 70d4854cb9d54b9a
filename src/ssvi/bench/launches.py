"""What a GPU would be asked to do: the kernel launches and the bytes of every operator, counted and not measured.

An operator is counted when torch dispatches it, so tensors without numbers (device "meta") are enough, and no GPU is needed:

    launches   one kernel for each operator; none for views and empty tensors; one for each gradient of a convolution; for
               `_foreach` operators as many as torch's multi_tensor_apply would start.
    bytes      each tensor that is read or written crosses memory once. Gathering and scattering s numbers touches s sectors
               of 32 bytes. Caches, workspaces of cuDNN and the algorithm that it chooses are not counted.
    syncs      moments in which the CPU waits for a number of the device (`.item()`). Such a number is taken to be 1.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SECTOR = 32
"""The fewest bytes that a GPU reads or writes."""
_CHUNK, _BLOCKS = 65_536, 320
_TENSORS_PER_LAUNCH = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
"""Of multi_tensor_apply: numbers per block, blocks per launch, and tensors per launch by the number of lists."""
_RANDOM_ACCESS = {"index_add_", "index_select"}
_WRITES_ONLY = {"zero_", "fill_", "copy_", "normal_", "uniform_"}
"""Operators that overwrite their first argument without reading it."""


class StepCount(TorchDispatchMode):
    """Inside, everything that torch dispatches is counted, in every thread."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        """By the name of the operator."""
        self.bytes: Counter[str] = Counter()
        """Read and written, by the name of the operator."""
        self.syncs: Counter[str] = Counter()
        self.made: set[tuple[str, torch.dtype, int]] = set()
        """Device, dtype and size of every tensor that an operator has made; no views."""
        self.live, self.peak = 0, 0
        """Bytes of the tensors that exist now, and the most so far; those that are older than the count do not count."""
        self._storages: set[int] = set()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and count it."""
        name, given = op.overloadpacket.__name__, _tensors((args, kwargs))
        if name == "_local_scalar_dense":
            self.syncs[name] += 1
            return 1 if not given[0].is_floating_point() else 1.0
        result = op(*args, **(kwargs or {}))
        results = _tensors(result)
        known = {_address(tensor) for tensor in given}
        fresh = [tensor for tensor in results if _address(tensor) not in known]
        for tensor in fresh:
            self._add(tensor)
        if (
            op.namespace != "profiler"
            and not name.startswith(("empty", "new_empty"))
            and (fresh or op._schema.is_mutable)
        ):
            self.launches[name] += _launches(name, args)
            self.bytes[name] += _bytes(name, op, args, given, fresh)
        return result

    def _add(self, tensor: Tensor) -> None:
        self.made.add((tensor.device.type, tensor.dtype, tensor.numel()))
        storage = tensor.untyped_storage()
        size, address = storage.nbytes(), _address(tensor)
        if address in self._storages:
            return
        self._storages.add(address)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._drop, address, size)

    def _drop(self, address: int, size: int) -> None:
        self._storages.discard(address)
        self.live -= size


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _address(tensor: Tensor) -> int:
    """What tensors on the same memory have in common, also where there is no memory."""
    return tensor.untyped_storage()._cdata


def _launches(name: str, args: Sequence[Any]) -> int:
    if name.startswith("_foreach_"):
        lists = [arg for arg in args if isinstance(arg, (list, tuple)) and arg and isinstance(arg[0], Tensor)]
        return _foreach_launches([tensor.numel() for tensor in lists[0]], len(lists) + (not name.endswith("_")))
    if name == "convolution":
        return 1 if args[2] is None else 2  # cuDNN adds the bias by a kernel of its own
    return sum(args[-1]) if name == "convolution_backward" else 1


def _foreach_launches(sizes: Sequence[int], lists: int) -> int:
    blocks = sum(math.ceil(size / _CHUNK) for size in sizes)
    return max(math.ceil(len(sizes) / _TENSORS_PER_LAUNCH[min(lists, 5)]), math.ceil(blocks / _BLOCKS))


def _bytes(name: str, op: Any, args: Sequence[Any], given: Sequence[Tensor], fresh: Sequence[Tensor]) -> int:
    if name in _RANDOM_ACCESS:
        return _random_access_bytes(args)
    if name == "convolution_backward":
        return _convolution_gradient_bytes(args)
    written = (_tensors(args[0]) if op._schema.is_mutable else []) + list(fresh)
    if name.endswith("_like") or name.startswith("new_"):
        return size_of(written)  # of its argument only the shape counts
    return size_of(written) + size_of(given[len(_tensors(args[0])) :] if name in _WRITES_ONLY else given)


def _random_access_bytes(args: Sequence[Any]) -> int:
    """Of s numbers at random places of a tensor: of `index_select` read once, of `index_add_` read and written."""
    (dense, _, index, *source), s = args, args[2].numel()
    sectors = min(size_of([dense]), s * SECTOR)
    return size_of([index]) + (2 * sectors + size_of(source) if source else sectors + s * dense.element_size())


def _convolution_gradient_bytes(args: Sequence[Any]) -> int:
    """dx is made of dy and W, dW of dy and x, db of dy: kernels that read dy each for itself."""
    (grad_y, x, weight), (for_x, for_weight, for_bias) = args[:3], args[-1]
    dense = weight.numel() * weight.element_size()  # also where only the shape of W was given
    products = (for_x + for_weight) * (size_of([grad_y, x]) + dense)
    return products + for_bias * size_of([grad_y])


def size_of(tensors: Iterable[Tensor]) -> int:
    """Bytes of memory behind tensors: an expanded one has fewer numbers than its shape says."""
    return sum(min(t.numel() * t.element_size(), t.untyped_storage().nbytes()) for t in tensors)
