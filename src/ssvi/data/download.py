"""Published files: what they are, and how they get into the data folder."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from ssvi.data.fetch import RETRIES, Retries, fetch, md5_of
from ssvi.data.split import DataError

MOST_MEMBERS = 10_000
MOST_UNPACKED = 1 << 33
"""Bytes of the members of an archive together; CIFAR-10-C has 2.9 GB."""


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
        """Whether the file is a tar archive, which must be unpacked."""
        return self.url.endswith((".tar", ".tar.gz"))

    def path_in(self, folder: Path) -> Path:
        """Where in `folder` the published file itself is stored."""
        return folder / (self.url.rpartition("/")[2] if self.is_archive else self.files[0])

    def missing(self, folder: Path) -> list[str]:
        """The files of this source that `folder` does not have."""
        return missing_files(self.files, folder)


def missing_files(files: Iterable[str], folder: Path) -> list[str]:
    """Those of the files that `folder` does not have."""
    return [file for file in files if not (folder / file).is_file()]


def data_folder(data_dir: str | Path | None) -> Path:
    """The folder that the user names, or the default one."""
    return Path(data_dir or default_folder()).expanduser()


def default_folder() -> Path:
    """$SSVI_DATA_DIR, or `ssvi` in the user's folder for caches."""
    if chosen := os.environ.get("SSVI_DATA_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "ssvi"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ssvi"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ssvi"


def download_missing(sources: Iterable[Source], folder: Path, retries: Retries = RETRIES) -> None:
    """Download the files that `folder` does not have. Files that are there already are not changed.

    A lock file makes sure that of several processes one downloads and the others wait for it.
    """
    for source in sources:
        path = source.path_in(folder)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_name(f".{path.name}.lock")):
                if source.missing(folder):
                    _download(source, folder, retries)
        except DataError as error:
            raise DataError(f"{error}. You can also put the file by hand at {path}") from error
        except OSError as error:
            raise DataError(f"cannot write to {folder}: {error}. Make room, or choose another data folder") from error


def _download(source: Source, folder: Path, retries: Retries) -> None:
    """Download one source and unpack it; an archive that the user put there is used, and kept."""
    path = source.path_in(folder)
    put_by_user = path.is_file()
    if not put_by_user:
        fetch(source.url, path, source.md5, retries)
    elif md5_of(path) != source.md5:
        raise DataError(f"{path} does not have the MD5 {source.md5} of {source.url}: remove it")
    if source.is_archive:
        _unpack(path, folder)
        if missing := source.missing(folder):
            raise DataError(f"{path} lacks {', '.join(missing)}")
        if not put_by_user:
            path.unlink()


def _checked_members(archive: Path, tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, each checked before it is unpacked; `filter="data"` refuses paths that lead outside."""
    unpacked = 0
    for number, member in enumerate(tar, 1):
        unpacked += member.size
        if number > MOST_MEMBERS or unpacked > MOST_UNPACKED:
            raise DataError(f"{archive} has more than {MOST_MEMBERS:,} members or {MOST_UNPACKED:,} bytes: remove it")
        if not (member.isfile() or member.isdir()):
            raise DataError(f"{archive}: {member.name} is neither a file nor a folder: remove the archive")
        yield member


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack beside the destination, then move file by file, so that no file is ever seen half written."""
    unpacked = archive.with_name(f".{archive.name}.unpacking")
    shutil.rmtree(unpacked, ignore_errors=True)  # left by a process that was killed
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, _checked_members(archive, tar), filter="data")
        for file in filter(Path.is_file, unpacked.rglob("*")):
            target = folder / file.relative_to(unpacked)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
