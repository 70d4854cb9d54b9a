"""A bug leaves a file to attach to a report: the traceback, the versions and the command, without a path of the user."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path

import ssvi
from ssvi.cli.private import paths_among, scrubber

KEPT = 20
"""So many crash files stay; older ones are deleted."""


def report_bug(error: Exception) -> str:
    """Write the crash file; returns the line for the user."""
    what = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
    try:
        path = write_crash(error)
    except OSError as problem:
        return f"this is a bug of ssvi: {what}. No crash file could be written ({problem}): give --debug, and report it"
    return f"this is a bug of ssvi: {what}. Please report it, with {path} or the archive of `ssvi doctor --bundle`"


def write_crash(error: Exception) -> Path:
    """The crash file of this error, in the user's folder of crashes; or in that for temporary files."""
    try:
        return _write(crash_folder(), crash_text(error))
    except OSError:
        return _write(Path(tempfile.gettempdir()), crash_text(error))


def crash_text(error: Exception) -> str:
    """What a developer needs to know, without what is private."""
    lines = [
        f"ssvi {ssvi.__version__}, torch {_version('torch')}, click {_version('click')}, rich {_version('rich')}",
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {platform.machine()}",
        f"command: {shlex.join(['ssvi', *sys.argv[1:]])}",
        "",
        "".join(traceback.format_exception(error)),
    ]
    return scrubber(paths_among(sys.argv))("\n".join(lines))


def crash_folder() -> Path:
    """`ssvi/crashes` in the folder where programs keep their state."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "ssvi" / "crashes"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ssvi" / "crashes"


def newest_crashes(count: int) -> list[Path]:
    """The newest crash files, the newest first."""
    folders = (crash_folder(), Path(tempfile.gettempdir()))
    files = [path for folder in folders for path in folder.glob("ssvi-crash-*.txt")]
    return sorted(files, key=_age, reverse=True)[:count]


def _write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"ssvi-crash-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1000):  # several in one second
        path = folder / (f"{stem}-{number}.txt" if number else f"{stem}.txt")
        try:
            with open(path, "x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except FileExistsError:
            continue
        for old in sorted(folder.glob("ssvi-crash-*.txt"), key=_age)[:-KEPT]:
            old.unlink(missing_ok=True)
        return path
    raise FileExistsError(f"{folder} has a thousand crash files of this second")


def _age(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
