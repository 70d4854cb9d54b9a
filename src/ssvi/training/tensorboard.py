"""The epochs of a run in TensorBoard, for those who have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunFolder
from ssvi.training.trackers import Numbers, Tracker

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def writer_class() -> type[SummaryWriter]:
    """What writes for TensorBoard; an error where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise RecipeError("--tensorboard needs TensorBoard: pip install 'ssvi[tensorboard]'") from error
    return SummaryWriter


def begin_tensorboard(folder: RunFolder) -> Tracker:
    """Write the numbers to RUN/tensorboard."""
    writer = writer_class()(folder.path / "tensorboard")

    def log(numbers: Numbers, step: int) -> None:
        for name, number in numbers.items():
            writer.add_scalar(name, number, step)
        writer.flush()

    return Tracker(log, lambda result: writer.close())
