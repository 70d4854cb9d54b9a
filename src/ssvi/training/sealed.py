"""Sealed files: each holds the SHA-256 of its own content near its beginning, and no reader uses a file that differs.

    file   = start + digits + rest
    digits = SHA-256(start + rest), as 64 hexadecimal digits

The `start` of a kind of file is known, so the digits have a known place. If either of them is found there, the file is
sealed; a file with neither was written by an earlier version, which did not seal its files.

Files are written under another name and renamed, so that a kill at any moment leaves the old file or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ssvi.training.errors import RunError

DIGITS = 64
EMPTY = "0" * DIGITS
"""Stands where the digits will be, until they are known."""

_HEX = re.compile(rb"[0-9a-f]{64}")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Seal:
    """Where the digits are in one kind of file."""

    start: bytes
    """What stands before them."""
    skip: int = 0
    """Bytes before `start`, of any content; they are sealed too."""

    @property
    def _place(self) -> slice:
        begin = self.skip + len(self.start)
        return slice(begin, begin + DIGITS)

    def put(self, content: bytes) -> bytes:
        """The content with its digits in the place of `EMPTY`."""
        if content[self.skip : self._place.stop] != self.start + EMPTY.encode():
            raise ValueError(f"content must begin with {self.start!r} and {DIGITS} zeros to be sealed")
        return content[: self._place.start] + self._digits(content) + content[self._place.stop :]

    def is_on(self, content: bytes) -> bool:
        """Whether the content is sealed, intact or not."""
        begins = content[self.skip : self._place.start] == self.start
        return begins or _HEX.fullmatch(content[self._place]) is not None

    def holds(self, content: bytes) -> bool:
        """Whether the content is as it was sealed, or was never sealed."""
        return not self.is_on(content) or self._digits(content) == content[self._place]

    def holds_of(self, file: Path) -> bool:
        """The same of a file that may be large."""
        with file.open("rb") as opened:
            head = opened.read(self._place.stop)
            if not self.is_on(head):
                return True
            digest = hashlib.sha256(head[: self._place.start])
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest().encode() == head[self._place]

    def _digits(self, content: bytes) -> bytes:
        digest = hashlib.sha256(content[: self._place.start])
        digest.update(content[self._place.stop :])
        return digest.hexdigest().encode()


JSON = Seal(b'{\n "sha256": "')
JSON_LINE = Seal(b'{"sha256": "')


def sealed_json(values: dict[str, Any], indent: int | None = 1) -> bytes:
    """The values as JSON, with the seal before them; without `indent` on one line."""
    text = json.dumps({"sha256": EMPTY} | values, indent=indent).encode()
    return (JSON if indent else JSON_LINE).put(text)


def read_json(file: Path, formats: Sequence[int] = ()) -> dict[str, Any]:
    """The values of a JSON file whose seal holds; if `formats` are given, its format must be one of them."""
    try:
        return opened_json(file.read_bytes(), str(file), JSON, formats)
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error}") from error


def opened_json(content: bytes, name: str, seal: Seal, formats: Sequence[int] = ()) -> dict[str, Any]:
    """The same of text that is called `name` in errors."""
    if not seal.holds(content):
        raise RunError(f"{name} is damaged: its SHA-256 does not match")
    try:
        values = json.loads(content)
    except ValueError as error:
        raise RunError(f"{name} is damaged: it is not JSON ({error})") from error
    if isinstance(values, dict) and "sha256" in values and not seal.is_on(content):
        raise RunError(f"{name} was rewritten by another program: its SHA-256 is not in its place")
    if not isinstance(values, dict):
        raise RunError(f"{name} is damaged: it holds {type(values).__name__}, not names and values")
    if formats and values.get("format", formats[0]) not in formats:  # earlier versions wrote no number
        known = ", ".join(map(str, formats))
        raise RunError(f"{name} has format {values['format']}, this version reads {known}: use the ssvi that wrote it")
    return {key: value for key, value in values.items() if key != "sha256"}


def write_whole(target: Path, content: bytes) -> None:
    """Write a file under another name, then rename it: a kill at any moment leaves the old file or the new one."""
    part = target.with_name(target.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        to_disk(file)
    os.replace(part, target)


def to_disk(file: IO[bytes]) -> None:
    """Wait until what was written has reached the disk."""
    file.flush()
    os.fsync(file.fileno())
