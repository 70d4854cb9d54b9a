"""A file from the web: resumed when cut, verified by checksum, put in place atomically."""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from ssvi.data.split import DataError

CHUNK = 1 << 16
NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, ConnectionError, TimeoutError)
RETRY_LATER = {408, 425, 429}

Report = Callable[[int, int | None], None]
"""Told the bytes received so far and, if the server says, of how many."""


@dataclass(frozen=True)
class Patience:
    """A connection silent for `timeout` seconds is broken; so many `breaks` without a new byte, and we give up."""

    timeout: float = 30.0
    breaks: int = 4
    pause: float = 2.0


PATIENCE = Patience()


def fetch(url: str, target: Path, md5: str, patience: Patience = PATIENCE) -> None:
    """Download `url` to `target`, which appears only when complete and right.

    What has arrived is kept in `target`.part: this call takes a broken connection up again, and so does the next call
    after a kill.
    """
    part = target.with_name(target.name + ".part")
    resumed = part.exists()
    with _progress_bar(target.name) as report:
        _receive_all(url, part, patience, report)
    found = md5_of(part)
    if found == md5:
        os.replace(part, target)
        return
    part.unlink()
    if not resumed:
        raise DataError(f"{url} has the MD5 {found} instead of {md5}: it was replaced or damaged on its way")
    fetch(url, target, md5, patience)  # the old piece may have been another file's: once more, from the start


def md5_of(path: Path) -> str:
    """The MD5 of a file: a check against accidents, which is what the publishers of these data sets offer."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _receive_all(url: str, part: Path, patience: Patience, report: Report) -> None:
    breaks = 0
    while True:
        have = _size(part)
        reason = _receive(url, part, patience.timeout, report)
        if reason is None:
            return
        breaks = 1 if _size(part) > have else breaks + 1
        if breaks >= patience.breaks:
            raise DataError(f"{url}: {reason}, after {breaks} attempts; {_size(part)} bytes are kept for the next one")
        time.sleep(patience.pause)


def _receive(url: str, part: Path, timeout: float, report: Report) -> str | None:
    """Receive what is missing in `part`; None if nothing is missing now, or the reason why to try again."""
    have = _size(part)
    try:
        return _append(url, part, have, timeout, report)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:  # no bytes beyond those we have; the checksum will tell whether they are right
            return None
        reason = f"the server answers {error.code} {error.reason}"
        if error.code < 500 and error.code not in RETRY_LATER:
            raise DataError(f"{url}: {reason}") from None
        return reason
    except NETWORK_ERRORS as error:
        return f"the connection failed ({error})"


def _append(url: str, part: Path, have: int, timeout: float, report: Report) -> str | None:
    headers = {"User-Agent": "ssvi"} | ({"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as answer:
        if not (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-"):
            have = 0  # the server sends the whole file, asked or not
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                have += len(chunk)
                report(have, total)
    return None if total is None or have >= total else f"the connection was cut at {have} of {total} bytes"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _progress_bar(name: str) -> Iterator[Report]:
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        yield lambda have, total: progress.update(task, completed=have, total=total)
