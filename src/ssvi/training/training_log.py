"""metrics.jsonl: a line per epoch, each with a seal of its own, because lines are appended while the run trains."""

from __future__ import annotations

from pathlib import Path

from ssvi.training.errors import RunError
from ssvi.training.progress import EpochLine, epoch_line
from ssvi.training.records import RecordError, to_plain
from ssvi.training.run_files import TEXTS
from ssvi.training.sealed import JSON_LINE, opened_json, sealed_json, to_disk, write_whole

FILE = "metrics.jsonl"
REMEDY = "put back an intact copy, or delete it: then what the training cost is not known"


class TrainingLog:
    """The epochs of the run in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def append(self, line: EpochLine) -> None:
        """One epoch more."""
        with self.file.open("ab") as file:
            file.write(_sealed(line))
            to_disk(file)

    def read(self) -> list[EpochLine]:
        """All epochs; an error that names the first line that is damaged, or out of order."""
        lines: list[EpochLine] = []
        for number, content in enumerate(self._whole_lines(), 1):
            lines.append(self._opened(content, number))
            if lines[-1].epoch != lines[0].epoch + number - 1:
                raise RunError(f"{self.file} is damaged: line {number} is of epoch {lines[-1].epoch}; {REMEDY}")
        return lines

    def forget_from(self, epoch: int) -> None:
        """Drop the lines of epochs that the checkpoint has not seen: they will be trained again, so they may be damaged."""
        kept: list[EpochLine] = []
        for number, content in enumerate(self._whole_lines(), 1):
            if kept and kept[-1].epoch + 1 == epoch:
                break
            line = self._opened(content, number)
            if line.epoch < epoch:
                kept.append(line)
        write_whole(self.file, b"".join(map(_sealed, kept)))

    def _whole_lines(self) -> list[bytes]:
        """The lines; what follows the last line end was cut short by a kill, and is none."""
        content = self.file.read_bytes() if self.file.exists() else b""
        return content.split(b"\n")[:-1]

    def _opened(self, content: bytes, number: int) -> EpochLine:
        name = f"line {number} of {self.file}"
        try:
            return epoch_line(opened_json(content, name, JSON_LINE, TEXTS))
        except RecordError as error:
            raise RunError(f"{name} is damaged: it is {error}; {REMEDY}") from error
        except RunError as error:
            raise RunError(f"{error}; {REMEDY}") from error


def _sealed(line: EpochLine) -> bytes:
    return sealed_json({"format": TEXTS[-1]} | to_plain(line), indent=None) + b"\n"
