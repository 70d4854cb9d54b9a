"""One run in several processes: what data-parallel training needs besides torch's DistributedDataParallel.

In a single process every function here does nothing, so that callers need not distinguish.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous


def start(device: str = "cpu") -> None:
    """Join the other processes if torchrun started this one. Numbers on CPUs travel by gloo, those on GPUs by nccl.

    The device is what the user chose, and not what the machine has: nccl is no help to networks that stay on the CPU.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        shared, rank, ranks = next(rendezvous("env://"))
        store = dist.PrefixStore(_attempt(ranks), shared)  # type: ignore[attr-defined] # it is not in torch's __all__
        backend = "cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=ranks)


def _attempt(ranks: int) -> str:
    """Names this start among all of torchrun's, which share one store: without it the processes of a restart could find
    the addresses of those that have died."""
    return f"ssvi-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-{ranks}"


def leave() -> None:
    """Wait for the other processes, then end this one at once. A single process goes on.

    The usual end of a process would stop gloo's threads, and gloo sometimes hangs or aborts when that happens.
    """
    if ranks() > 1:
        dist.barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def ranks() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """The number of this process. Process 0 writes the files."""
    return dist.get_rank() if dist.is_initialized() else 0


def noise_seed(seed: int, number: int, *key: int) -> int:
    """The seed of the noise of the process of this number. That of the first one is the seed of the run.

    Those of the others are hashes of (seed, number), so that no two runs share noise: seed + rank would give process 1 of
    seed 0 the noise of process 0 of seed 1. `key` makes further seeds.
    """
    if number == 0 and not key:
        return seed
    return int(np.random.SeedSequence((seed, number, *key)).generate_state(1, np.uint64)[0])


def seed_noise(seed: int, *key: int) -> None:
    """Start the noise of this process."""
    torch.manual_seed(noise_seed(seed, rank(), *key))


def mean_(tensor: Tensor) -> Tensor:
    """Replace the tensor by its mean over the processes."""
    if ranks() > 1:
        dist.all_reduce(tensor)
        tensor /= ranks()
    return tensor


def means(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The means of tensors over the processes, in one message for each device and precision."""
    if ranks() == 1:
        return list(tensors)
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for place, tensor in enumerate(tensors):
        kinds.setdefault((tensor.device, tensor.dtype), []).append(place)
    averaged = list(tensors)
    for places in kinds.values():
        message = mean_(torch.cat([tensors[place].flatten() for place in places]))
        parts = message.split([tensors[place].numel() for place in places])
        for place, part in zip(places, parts, strict=True):
            averaged[place] = part.view_as(tensors[place])
    return averaged


def from_first_(tensor: Tensor) -> Tensor:
    """Replace the tensor by that of process 0."""
    if ranks() > 1:
        dist.broadcast(tensor, 0)
    return tensor


def any_of(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    if ranks() == 1:
        return flag
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"  # nccl knows GPUs alone
    return mean_(torch.tensor([float(flag)], device=device)).item() > 0


def gather(tensor: Tensor) -> list[Tensor]:
    """The tensors of all processes, in the order of their numbers; every process gets them."""
    if ranks() == 1:
        return [tensor]
    tensors = [torch.empty_like(tensor) for _ in range(ranks())]
    dist.all_gather(tensors, tensor)
    return tensors


def traffic(net: torch.nn.Module) -> int:
    """How many bytes of gradients each step averages over the processes."""
    return sum(p.numel() * p.element_size() for p in net.parameters() if p.requires_grad)


def parallel(net: torch.nn.Module) -> Any:
    """The network, wrapped so that its backward pass averages the gradients over the processes.

    Buffers are not sent: the indices are equal in all processes by construction, and each process has its own running
    statistics of BatchNorm, of which those of process 0 are saved.
    """
    if ranks() == 1:
        return net
    wrap: Any = torch.nn.parallel.DistributedDataParallel
    arguments = inspect.signature(wrap.__init__).parameters  # torch 2.13 renamed the one about buffers
    name = "forward_sync_buffers" if "forward_sync_buffers" in arguments else "broadcast_buffers"
    return wrap(net, **{name: False})
