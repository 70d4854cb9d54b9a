"""A network over a loader: what it draws for each batch, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

LABELS = "labels"
"""The name of the targets in a batch with names, as in Hugging Face's."""

Batch = Sequence[Any] | Mapping[str, Any]
"""(x, y), (x_1, x_2, ..., y), or a dict with the inputs by name and the targets as "labels"."""
Loader = Iterable[Batch]


def drawn_over(net: nn.Module, loader: Loader, draw: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
    """draw(net, *args, **kwargs) for all batches, (samples, n, ...), and the targets, (n, ...); both on the CPU."""
    device = next((p.device for p in net.parameters()), torch.device("cpu"))
    drawn, targets = [], []
    for batch in loader:
        args, kwargs, y = _inputs_and_targets(batch, device)
        drawn.append(draw(net, *args, **kwargs).cpu())
        targets.append(y.cpu())
    if not targets:
        raise ValueError("loader has no batch, so there is nothing to evaluate: give one with at least one (x, y)")
    return torch.cat(drawn, 1), torch.cat(targets)


def _inputs_and_targets(batch: Batch, device: torch.device) -> tuple[list[Any], dict[str, Any], Tensor]:
    """Inputs by place, inputs by name, and the targets."""
    if not isinstance(batch, Mapping):
        *args, y = batch
        return [_on(device, x) for x in args], {}, y
    if LABELS not in batch:
        raise KeyError(f"a batch has {', '.join(batch)} and no {LABELS!r}: the classes must be under {LABELS!r}")
    return [], {name: _on(device, x) for name, x in batch.items() if name != LABELS}, batch[LABELS]


def _on(device: torch.device, x: Any) -> Any:
    return x.to(device) if isinstance(x, Tensor) else x
