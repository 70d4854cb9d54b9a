"""The results, one line of JSON each, in a file that every process appends to: a second call goes on where one stopped."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Record:
    """The scores of one entrant on one split of a data set."""

    data: str
    split: int
    entrant: str
    rmse: float
    log_likelihood: float
    coverage: float

    @property
    def key(self) -> tuple[str, int, str]:
        """What was run."""
        return self.data, self.split, self.entrant


def read(file: Path) -> list[Record]:
    """All complete lines; a line that a kill has cut is left out, and its run is made again."""
    records = []
    for line in file.read_text().splitlines() if file.is_file() else ():
        try:
            records.append(Record(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return records


def append(file: Path, record: Record) -> None:
    """Write a line; a single write of one line is not mixed with those of other processes."""
    with file.open("a") as out:
        out.write("\n" * _is_cut(file) + json.dumps(asdict(record)) + "\n")
        out.flush()
        os.fsync(out.fileno())


def _is_cut(file: Path) -> bool:
    """Whether the last line has no end."""
    text = file.read_bytes()[-1:] if file.is_file() else b""
    return bool(text) and text != b"\n"
