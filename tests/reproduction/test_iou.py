"""The item iou: what it reads of iou.jsonl, and its verdicts."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from ssvi.reproduction import paper, show_iou
from ssvi.reproduction.scales import MINUTES
from ssvi.reproduction.verdicts import CANNOT, NOT_REPEATED, REPEATED
from ssvi.training.iou_log import IoULine, IoULog
from ssvi.training.run_folder import RunError

NAMES = ("snr_exp_abs", *reversed(paper.IOU_CRITERIA))
"""In another order, and with criterion 6: the item takes criteria 1 to 5 by name."""


@dataclass(frozen=True)
class Results:
    """What the item reads of `SetupResults`."""

    finished: list[Path]
    data: str = "digits"


def matrix(**pairs: float) -> list[list[float]]:
    """Ones, but these pairs of criteria, written a__b."""
    return [[pairs.get(f"{a}__{b}", pairs.get(f"{b}__{a}", 1.0)) if a != b else 1.0 for b in NAMES] for a in NAMES]


def run(folder: Path, *updates: tuple[list[list[float]], list[list[float]]]) -> Path:
    folder.mkdir()
    IoULog(folder).append(
        IoULine(i, 0, i, 1, list(NAMES), exact, textbook) for i, (exact, textbook) in enumerate(updates)
    )
    return folder


def test_criteria_are_taken_by_name_and_moments_by_place(tmp_path):
    early, late = matrix(abs_mu__snr=0.7), matrix(snr__snr_abs=0.1)
    updates = show_iou.read_updates(run(tmp_path / "a", (early, early), (early, late), (late, late)))

    def iou(moment: str, formula: str, a: int, b: int) -> float:
        return show_iou.matrix(show_iou.at(updates, moment), formula)[a][b]

    assert iou("start", "exact", 0, 1) == 0.7
    assert (iou("middle", "textbook", 1, 3), iou("middle", "exact", 1, 3)) == (0.1, 1.0)
    assert iou("end", "exact", 3, 1) == 0.1


def test_a_run_that_recorded_nothing_is_an_error(tmp_path):
    with pytest.raises(RunError, match="--record-iou"):
        show_iou.read_updates(tmp_path)


def outcomes(tmp_path, start, end) -> list[str]:
    folders = [run(tmp_path / f"{len(list(tmp_path.iterdir()))}", start, end) for _ in range(3)]
    return [verdict.outcome for verdict in show_iou.iou([Results(folders)], MINUTES).verdicts]


def test_what_differs_by_rounding_alone_is_not_repeated(tmp_path):
    same, printed = matrix(), matrix(snr__snr_abs=0.08)
    assert outcomes(tmp_path, (same, same), (same, printed)) == [REPEATED, NOT_REPEATED, REPEATED]
    apart = matrix(snr__snr_abs=0.08, abs_mu__snr=0.5)
    assert outcomes(tmp_path, (same, same), (apart, apart)) == [REPEATED, REPEATED, NOT_REPEATED]
    assert outcomes(tmp_path, (same, same), (same, same))[0] == NOT_REPEATED


def test_without_runs_nothing_is_compared():
    shown = show_iou.iou([Results([])], MINUTES)
    assert {verdict.outcome for verdict in shown.verdicts} == {CANNOT}
    assert (shown.tables, shown.plots) == ((), ())


def test_pairs_stand_beside_those_of_the_paper(tmp_path):
    same, printed = matrix(), matrix(snr__snr_abs=0.08)
    shown = show_iou.iou([Results([run(tmp_path / "a", (same, same), (same, printed))])], MINUTES)
    assert [table.title.split()[0] for table in shown.tables] == ["start", "middle", "end"]
    assert "| snr and snr_abs | 0.0829 | 0.0800 | 1.0000 |" in shown.tables[2].table.markdown()
    assert len(shown.tables[0].table.rows) == 10
    assert "mean IoU" in str(shown.plots[0].drawing.markup)
