"""How far the removal criteria agreed while a run was trained, from the lines of iou.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ssvi.evaluation.results import RecordedIoU
from ssvi.training.iou_log import IoULine

FIRST = 5
"""The paper's figure is about criteria 1 to 5."""


def recorded_iou(lines: Sequence[IoULine]) -> RecordedIoU | None:
    """The updates at the start, in the middle and at the end; of an ensemble those of the last member.

    None where nothing was recorded.
    """
    if not lines:
        return None
    starts = [i for i in range(1, len(lines)) if lines[i].update <= lines[i - 1].update]
    of_last = lines[starts[-1] if starts else 0 :]
    return RecordedIoU(len(of_last), of_last[0], of_last[len(of_last) // 2], of_last[-1])


def mean_of_pairs(matrix: Sequence[Sequence[float]]) -> float:
    """The mean IoU of the ten pairs of criteria 1 to 5."""
    pairs = [matrix[a][b] for a, b in combinations(range(FIRST), 2)]
    return sum(pairs) / len(pairs)
