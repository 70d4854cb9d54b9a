"""A file from the web: resumed when the connection is cut, verified by its checksum, put in place atomically.

This is our own code and not pooch, because pooch starts a cut download again from its first byte, and CIFAR-10-C has
2.9 GB.
"""

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
"""A function that is called with the number of bytes received so far and of all bytes (None if it is not known)."""


@dataclass(frozen=True)
class Retries:
    """When to try again: a connection is broken if it is silent for `timeout` seconds.

    After a pause of `pause` seconds we try again, until `attempts` attempts in a row have brought no new byte.
    """

    timeout: float = 30.0
    attempts: int = 4
    pause: float = 2.0


RETRIES = Retries()


def fetch(url: str, target: Path, md5: str, retries: Retries = RETRIES) -> None:
    """Download `url` to `target`, which appears only when it is complete and has the right checksum.

    The bytes received so far are in `target`.part. This call resumes from there after a broken connection, and the
    next call resumes from there if this process is killed.
    """
    part = target.with_name(target.name + ".part")
    resumed = part.exists()
    with _progress_bar(target.name) as report:
        _receive_all(url, part, retries, report)
    received_md5 = md5_of(part)
    if received_md5 == md5:
        os.replace(part, target)
        return
    part.unlink()
    if not resumed:
        raise DataError(f"{url} has the MD5 {received_md5} instead of {md5}: the file was replaced or damaged")
    fetch(url, target, md5, retries)  # the old bytes may be those of another file: once more, from the start


def md5_of(path: Path) -> str:
    """The MD5 of a file. It detects accidents, not attacks; the publishers of these data sets offer nothing better."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _receive_all(url: str, part: Path, retries: Retries, report: Report) -> None:
    """Try until `part` is complete, or until the attempts are used up."""
    attempts = 0
    while True:
        size_before = _size(part)
        problem = _receive(url, part, retries.timeout, report)
        if problem is None:
            return
        attempts = 1 if _size(part) > size_before else attempts + 1
        if attempts >= retries.attempts:
            raise DataError(
                f"{url}: {problem}, after {attempts} attempts; {_size(part)} bytes are kept for the next one"
            )
        time.sleep(retries.pause)


def _receive(url: str, part: Path, timeout: float, report: Report) -> str | None:
    """Receive what is missing in `part`; None if nothing is missing now, else the reason why to try again."""
    start = _size(part)
    try:
        return _append(url, part, start, timeout, report)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # there are no more bytes; the checksum will tell whether ours are right
            return None
        problem = f"the server answers {error.code} {error.reason}"
        if error.code < 500 and error.code not in RETRY_LATER:
            raise DataError(f"{url}: {problem}") from None
        return problem
    except NETWORK_ERRORS as error:
        return f"the connection failed ({error})"


def _append(url: str, part: Path, start: int, timeout: float, report: Report) -> str | None:
    """Ask for the bytes from `start` on and append them to `part`; the reason if some of them did not arrive."""
    headers = {"User-Agent": "ssvi"} | ({"Range": f"bytes={start}-"} if start else {})
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:  # from our own table  # nosec B310
        if not (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-"):
            start = 0  # the server does not know ranges and sends the whole file
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else None
        received = start
        with part.open("ab" if start else "wb") as file:
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                received += len(chunk)
                report(received, total)
    return None if total is None or received >= total else f"the connection was cut at {received} of {total} bytes"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _progress_bar(name: str) -> Iterator[Report]:
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        yield lambda received, total: progress.update(task, completed=received, total=total)
