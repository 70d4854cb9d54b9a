"""iou.jsonl: how far the removal criteria agree, a line per update of gamma (the setting `record_iou`; docs/criteria.md).

The lines of the updates since the last checkpoint are appended just before the next one is written. So the file may be
ahead of the newest checkpoint, and never behind it; when a run goes on, what is ahead is dropped and trained again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from ssvi.inference.agreement import CriteriaIoU
from ssvi.training.records import from_plain
from ssvi.training.sealed_lines import SealedLines

FILE = "iou.jsonl"
REMEDY = "put back an intact copy, or delete it: then how far the criteria agreed so far is not known"


@dataclass(frozen=True)
class IoULine:
    """Intersection over union of what each pair of criteria would remove at an update of gamma that removes weights."""

    update: int
    """t; an ensemble counts anew for each member."""
    epoch: int
    step: int
    """Steps of the run so far."""
    removed: int
    """k, summed over the layers."""
    criteria: list[str]
    exact: list[list[float]]
    """By the stable forms of the library; symmetric, with ones on the diagonal."""
    textbook: list[list[float]]
    """By the formulas as printed, in float32."""


def iou_line(iou: CriteriaIoU, epoch: int, step: int) -> IoULine:
    """The line of an update in this epoch, after this many steps."""
    return IoULine(epoch=epoch, step=step, **vars(iou))


class IoULog:
    """The updates of gamma of the run in `folder`; there is no file before the first of them is recorded."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self._lines = SealedLines(self.file, partial(from_plain, IoULine), REMEDY)

    def append(self, lines: Sequence[IoULine]) -> None:
        """Some updates more."""
        if lines:
            self._lines.append(lines)

    def read(self) -> list[IoULine]:
        """All updates so far; an error that names the first line that is damaged."""
        return list(self._lines)

    def forget_after(self, step: int) -> None:
        """Drop the updates that came after this step: the checkpoint has not seen them."""
        if self.file.exists():
            self._lines.replace(list(takewhile(lambda line: line.step <= step, self._lines)))
