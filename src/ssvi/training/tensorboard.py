"""The epochs of a run in TensorBoard, for those who have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ssvi.training.progress import EpochLine
from ssvi.training.recipe import RecipeError
from ssvi.training.records import to_plain

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def writer_class() -> type[SummaryWriter]:
    """What writes for TensorBoard; an error where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise RecipeError("--tensorboard needs TensorBoard: pip install 'ssvi[tensorboard]'") from error
    return SummaryWriter


class TensorBoard:
    """Writes the numbers of each epoch to RUN/tensorboard."""

    def __init__(self, run_folder: Path) -> None:
        self.writer = writer_class()(run_folder / "tensorboard")

    def epoch(self, line: EpochLine) -> None:
        """One point on each curve."""
        for name, value in to_plain(line).items():
            if isinstance(value, dict):
                for key, number in value.items():
                    if number is None:
                        continue  # a class has no RMSE, a number no accuracy
                    self.writer.add_scalar(f"{name}/{key}", number, line.step)
            elif name not in ("epoch", "step") and value is not None:
                self.writer.add_scalar(name, value, line.step)
        self.writer.flush()
