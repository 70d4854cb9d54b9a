"""Published files, and how they come into a data folder."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from ssvi.data.fetch import PATIENCE, Patience, fetch, md5_of
from ssvi.data.split import DataError


@dataclass(frozen=True)
class Source:
    """A published file: its address, its MD5, and the files of the data folder that it gives.

    A tar archive gives its members; any other file gives itself.
    """

    url: str
    md5: str
    files: tuple[str, ...]

    @property
    def is_archive(self) -> bool:
        """Whether the file is to be unpacked."""
        return self.url.endswith((".tar", ".tar.gz"))

    def place(self, folder: Path) -> Path:
        """Where in `folder` the published file itself belongs."""
        return folder / (self.url.rpartition("/")[2] if self.is_archive else self.files[0])

    def missing(self, folder: Path) -> list[str]:
        """The files of this source that `folder` does not have."""
        return [file for file in self.files if not (folder / file).is_file()]


def default_folder() -> Path:
    """$SSVI_DATA_DIR, or `ssvi` in the user's folder for caches."""
    if chosen := os.environ.get("SSVI_DATA_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "ssvi"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ssvi"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssvi"


def obtain(sources: Iterable[Source], folder: Path, patience: Patience = PATIENCE) -> None:
    """Bring the files that `folder` lacks; what is there already is neither touched nor loaded again."""
    for source in sources:
        place = source.place(folder)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(
                place.with_name(f".{place.name}.lock")
            ):  # of several processes one downloads, the others wait
                if source.missing(folder):
                    _bring(source, folder, patience)
        except DataError as error:
            raise DataError(f"{error}. You can also put the file by hand at {place}") from error
        except OSError as error:
            raise DataError(f"cannot write to {folder}: {error}. Make room, or choose another data folder") from error


def _bring(source: Source, folder: Path, patience: Patience) -> None:
    place = source.place(folder)
    given = place.is_file()
    if not given:
        fetch(source.url, place, source.md5, patience)
    elif md5_of(place) != source.md5:
        raise DataError(f"{place} does not have the MD5 {source.md5} of {source.url}: remove it")
    if source.is_archive:
        _unpack(place, folder)
        if missing := source.missing(folder):
            raise DataError(f"{place} lacks {', '.join(missing)}")
        if not given:
            place.unlink()


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack beside the destination, then move file by file, so that no file is ever seen half written."""
    beside = archive.with_name(f".{archive.name}.unpacking")
    shutil.rmtree(beside, ignore_errors=True)  # left by a process that was killed
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(beside, filter="data")
        for file in filter(Path.is_file, beside.rglob("*")):
            target = folder / file.relative_to(beside)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
    except tarfile.TarError as error:
        raise DataError(f"{archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
