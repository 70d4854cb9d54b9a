"""`ssvi.load_run`: a finished run in a program, on images or on a table."""

from __future__ import annotations

from pathlib import Path

from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.loaded_run import LoadedRun
from ssvi.evaluation.loaded_table import LoadedTable
from ssvi.evaluation.table_run import TableRun
from ssvi.training.device import device_of


def load_run(path: str | Path, *, device: str = "cpu", data_dir: str | Path | None = None) -> LoadedRun | LoadedTable:
    """The finished run in a folder of `ssvi train`, on a device, ready to predict: a `LoadedRun` on images, or a
    `LoadedTable`.

    `data_dir` is the folder of the data sets; it is needed only where the threshold for "don't know" was never chosen.
    """
    run = FinishedRun(path, data_dir)
    run.net.to(device_of(device))
    return LoadedRun(run) if run.table is None else LoadedTable(TableRun(run))
