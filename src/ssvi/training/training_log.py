"""metrics.jsonl: a line per epoch."""

from __future__ import annotations

from pathlib import Path

from ssvi.training.errors import RunError
from ssvi.training.progress import EpochLine, epoch_line
from ssvi.training.sealed_lines import SealedLines

FILE = "metrics.jsonl"
REMEDY = "put back an intact copy, or delete it: then what the training cost is not known"


class TrainingLog:
    """The epochs of the run in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self._lines = SealedLines(self.file, epoch_line, REMEDY)

    def append(self, line: EpochLine) -> None:
        """One epoch more."""
        self._lines.append([line])

    def read(self) -> list[EpochLine]:
        """All epochs; an error that names the first line that is damaged, or out of order."""
        lines: list[EpochLine] = []
        for number, line in enumerate(self._lines, 1):
            lines.append(line)
            if line.epoch != lines[0].epoch + number - 1:
                raise RunError(f"{self.file} is damaged: line {number} is of epoch {line.epoch}; {REMEDY}")
        return lines

    def forget_from(self, epoch: int) -> None:
        """Drop the lines of epochs that the checkpoint has not seen: they will be trained again, so they may be damaged."""
        kept: list[EpochLine] = []
        lines = iter(self._lines)
        while not (kept and kept[-1].epoch + 1 == epoch) and (line := next(lines, None)) is not None:
            if line.epoch < epoch:
                kept.append(line)
        self._lines.replace(kept)
