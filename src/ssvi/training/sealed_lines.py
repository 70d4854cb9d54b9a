"""Files of records, one on each line, to which lines are appended while a run trains: each line has a seal of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ssvi.training.errors import RunError
from ssvi.training.records import RecordError, to_plain
from ssvi.training.run_files import TEXTS
from ssvi.training.sealed import JSON_LINE, opened_json, sealed_json, to_disk, write_whole

T = TypeVar("T")


@dataclass(frozen=True)
class SealedLines(Generic[T]):
    """The records of a file."""

    file: Path
    record: Callable[[Any], T]
    """The record of the plain values of a line."""
    remedy: str
    """What to do about a line that is damaged."""

    def append(self, records: Iterable[T]) -> None:
        """Some lines more; what has been appended is on the disk."""
        with self.file.open("ab") as file:
            file.write(_sealed(records))
            to_disk(file)

    def replace(self, records: Iterable[T]) -> None:
        """These lines in place of all."""
        write_whole(self.file, _sealed(records))

    def __iter__(self) -> Iterator[T]:
        """The records one after the other, each read when it is asked for; an error that names a line that is damaged.

        What follows the last line end was cut short by a kill, and is no line.
        """
        content = self.file.read_bytes() if self.file.exists() else b""
        for number, line in enumerate(content.split(b"\n")[:-1], 1):
            yield self._opened(line, f"line {number} of {self.file}")

    def _opened(self, content: bytes, name: str) -> T:
        try:
            return self.record(opened_json(content, name, JSON_LINE, TEXTS))
        except RecordError as error:
            raise RunError(f"{name} is damaged: it is {error}; {self.remedy}") from error
        except RunError as error:
            raise RunError(f"{error}; {self.remedy}") from error


def _sealed(records: Iterable[Any]) -> bytes:
    lines = (sealed_json({"format": TEXTS[-1]} | to_plain(record), indent=None) for record in records)
    return b"".join(line + b"\n" for line in lines)
