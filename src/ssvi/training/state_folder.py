"""The networks that an ensemble or a sampler keeps while it trains: RUN/states/epoch-N.safetensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ssvi.inference import distributed
from ssvi.training import model_file


@dataclass(frozen=True)
class StateFolder:
    """A folder of model files, one per epoch that was kept; `fresh()` makes the plain network that they are loaded into."""

    path: Path
    fresh: Callable[[], nn.Module]

    def keep(self, epoch: int, net: nn.Module) -> None:
        """Write the network of an epoch, whole or not at all; the first process writes for all of them."""
        if distributed.rank() == 0:
            self.path.mkdir(exist_ok=True)
            model_file.save(net, self.path / f"epoch-{epoch:06d}.safetensors")

    def forget_from(self, epoch: int) -> None:
        """Delete what was kept in this epoch or later."""
        for file in self._files():
            if int(file.stem.removeprefix("epoch-")) >= epoch:
                file.unlink(missing_ok=True)

    def networks(self) -> Iterator[nn.Module]:
        """All that was kept, in the order of the epochs."""
        return (model_file.load(file, net=self.fresh()) for file in self._files())

    def _files(self) -> list[Path]:
        return sorted(self.path.glob("epoch-*.safetensors"))
