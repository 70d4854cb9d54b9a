"""The epochs of a run in TensorBoard, for those who have it."""

from __future__ import annotations

from typing import Any

from ssvi.training.run import Run


class TensorBoard:
    """Writes the numbers of each epoch to RUN/tensorboard."""

    def __init__(self, run: Run) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError("--tensorboard needs TensorBoard: pip install 'ssvi[tensorboard]'") from error
        self.writer = SummaryWriter(run.folder.path / "tensorboard")

    def epoch(self, line: dict[str, Any]) -> None:
        """One point on each curve."""
        for name, value in line.items():
            if isinstance(value, dict):
                for part, number in value.items():
                    self.writer.add_scalar(f"{name}/{part}", number, line["step"])
            elif name not in ("epoch", "step"):
                self.writer.add_scalar(name, value, line["step"])
        self.writer.flush()
