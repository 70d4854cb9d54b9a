"""Which of the recorded updates are shown, and the paper's mean over pairs."""

import pytest

from ssvi.evaluation import recorded_iou
from ssvi.evaluation.recorded_iou import mean_of_pairs
from ssvi.training.iou_log import IoULine


def line(update: int, step: int) -> IoULine:
    return IoULine(update, 0, step, 1, ["a"], [[1.0]], [[1.0]])


@pytest.mark.parametrize(
    ("updates", "shown"),
    [
        ([0], (1, 0, 0, 0)),
        ([0, 1, 2, 3, 4], (5, 0, 2, 4)),
        ([5, 6, 9], (3, 5, 6, 9)),  # the file was deleted on the way, and some updates removed nothing
        ([0, 1, 2, 0, 1, 2], (3, 0, 1, 2)),  # the last of two members
        ([0, 0, 0], (1, 0, 0, 0)),
    ],
)
def test_start_middle_and_end(updates, shown):
    recorded = recorded_iou([line(update, step) for step, update in enumerate(updates)])
    assert (recorded.updates, recorded.start.update, recorded.middle.update, recorded.end.update) == shown
    assert recorded.end.step == len(updates) - 1


def test_without_lines_there_is_nothing():
    assert recorded_iou([]) is None


def test_the_mean_is_over_the_ten_pairs_of_the_first_five():
    """Entry (a, b) is a + b / 10 above the diagonal; all else must not count."""
    matrix = [[a + b / 10 if a < b < 5 else 99.0 for b in range(6)] for a in range(6)]
    assert mean_of_pairs(matrix) == pytest.approx((0 * 4 + 1 * 3 + 2 * 2 + 3 + 0.1 + 0.4 + 0.9 + 1.6) / 10)
