"""A device beside the CPU that every machine has: its numbers lie in the CPU's memory, but it refuses to mix with the CPU.

torch's fake CUDA tensors have no numbers, so no update of gamma can be decided with them, and without a CUDA build of torch
they have no gradients. This device has both. Like a real one it takes only numbers without dimensions from elsewhere.
`install` changes torch for the whole process, so it is for programs that a test starts.
"""

from types import ModuleType

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "otherdevice"
MOVES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}


class OnDevice(torch.Tensor):
    """A tensor of the device. `held` has its numbers."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=f"{NAME}:0",
        )

    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return f"OnDevice({self.held})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def run(func, args, kwargs):
    """The operator on the numbers. Refuses tensors of two devices, and a generator of another device."""
    tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
    wrappers = [t for t in tensors if isinstance(t, OnDevice)]
    strangers = [t for t in tensors if not isinstance(t, OnDevice) and t.dim() > 0]
    if wrappers and strangers and func not in MOVES:
        raise RuntimeError(f"{func}: expected all tensors to be on the same device, but found {NAME} and cpu")
    asked = kwargs.get("device")
    on_device = bool(wrappers) if asked is None else torch.device(asked).type == NAME
    if on_device and kwargs.get("generator") is not None:
        raise RuntimeError(f"{func}: expected a generator of {NAME}, but found one of the CPU")
    if func is torch.ops.aten.copy_.default:
        on_device = isinstance(args[0], OnDevice)
    if asked is not None:
        kwargs = {**kwargs, "device": "cpu"}
    plain_args, plain_kwargs = tree_map_only(OnDevice, lambda t: t.held, (args, kwargs))
    result = func(*plain_args, **plain_kwargs)
    known = {id(t.held): t for t in wrappers}
    wrap = lambda t: known[id(t)] if id(t) in known else OnDevice(t)  # noqa: E731
    return tree_map_only(torch.Tensor, wrap, result) if on_device else result


class Factories(TorchDispatchMode):
    """Sees `torch.zeros(3, device=...)` too, which has no tensor among its arguments."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def install() -> Factories:
    """Give torch the device. What is computed inside of the result, a context, may use it."""
    module = ModuleType(NAME)
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module.is_autocast_enabled = lambda: False
    module.is_available = lambda: True
    module.current_device = lambda: 0
    module.device_count = lambda: 1
    module._is_in_bad_fork = lambda: False
    module.manual_seed_all = lambda seed: None
    _setup_privateuseone_for_python_backend(NAME, module)
    return Factories()


def put(net: torch.nn.Module) -> None:
    """Move a network to the device, in place."""
    for module in net.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                held = OnDevice(parameter.detach().clone())
                module._parameters[name] = torch.nn.Parameter(held, parameter.requires_grad)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = OnDevice(buffer.clone())
