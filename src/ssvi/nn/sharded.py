"""Parameters that FSDP2 (`torch.distributed.fsdp.fully_shard`) has cut into pieces, one for each process.

Inside the forward and backward pass FSDP2 puts whole tensors in their place. Outside, where sigma is read and the support
moves, a parameter is a DTensor, and the positions of its weights are known for the whole alone. These functions work on any
tensor. With pieces, all processes must call them together.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether other processes have pieces of it."""
    if not dist.is_available() or not dist.is_initialized():
        return False
    from torch.distributed.tensor import DTensor  # slow to import, and rarely needed

    return isinstance(tensor, DTensor)


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor, in every process. Its gradient is cut into pieces again."""
    if not is_sharded(tensor):
        return tensor
    full: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]
    return full


@torch.no_grad()
def write(tensor: Tensor, values: Tensor) -> None:
    """tensor <- values, which are whole and the same in every process."""
    if is_sharded(tensor):
        from torch.distributed.tensor import distribute_tensor

        mesh, placements = tensor.device_mesh, tensor.placements  # type: ignore[attr-defined]
        values = distribute_tensor(values, mesh, placements, src_data_rank=None)
    tensor.copy_(values)
