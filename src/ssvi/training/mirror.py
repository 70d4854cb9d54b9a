"""A run folder at an address of fsspec (s3://, gs://, file://, memory://), from which any machine can go on with the run.

An object store has no locks, and no rename that replaces a file at once. So a run trains in a local folder, and copies of
it are put at the address:

    ADDRESS/manifest.json        the names of the files, each with the SHA-256 of its content
    ADDRESS/contents/SHA-256     the contents

A content is never changed, and the manifest is replaced when all contents are there: a kill at any moment leaves the copy
before or the copy after. Whoever finds a manifest that it has neither read nor written stops: another one has taken the run.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ssvi.training.errors import RunError
from ssvi.training.sealed import write_whole

LEFT_OUT = (".lock", ".lock.json")
LAST = "model.safetensors"
"""With it a run counts as finished, so it is the last file that arrives in a folder."""

Manifest = dict[str, str]


class MirrorError(RunError):
    """A copy of a run folder that cannot be read or written."""


class Mirror:
    """The copy of one run folder at an address."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address.rstrip("/"), folder
        self._known: list[Manifest | None] = [None]
        """The manifest that this object has read or written last; after a push without an answer, either of two."""
        self.is_taken = False
        """Whether another process has written to the address meanwhile."""
        with self._reported():
            self._store, self._root = _opened(self.address)

    def fetch(self) -> None:
        """Make the folder equal to the copy; if there is none yet, the folder stays as it is."""
        with self._reported():
            manifest = self._manifest()
            self._known = [manifest]
            if manifest is None:
                return
            for name in self._names():
                if name not in manifest:
                    (self.folder / name).unlink()
            for name in sorted(manifest, key=lambda name: name == LAST):
                self._fetch_file(name, manifest[name])

    def fetch_log(self) -> None:
        """Fetch metrics.jsonl alone: it says how far the run is."""
        with self._reported():
            if digest := (self._manifest() or {}).get("metrics.jsonl"):
                self._fetch_file("metrics.jsonl", digest)

    def push(self) -> None:
        """Make the copy equal to the folder. A process may write to the folder meanwhile."""
        contents = {name: content for name in self._names() if (content := _content(self.folder / name)) is not None}
        new = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        with self._reported():
            old = self._manifest()
            self.is_taken = old not in self._known
            if self.is_taken:
                raise MirrorError(f"{self.address}: another process has gone on with this run; this one stops")
            present = set((old or {}).values())
            for name, digest in new.items():
                if digest not in present:
                    self._store.pipe_file(self._place(digest), contents[name])
            self._known = [old, new]
            self._replace_manifest(new)
            self._known = [new]
            for digest in present - set(new.values()):
                self._store.rm_file(self._place(digest))

    def _names(self) -> list[str]:
        """The files of the folder. States come before the log, which may be ahead of a state but not behind it."""
        files = [file for file in self.folder.rglob("*") if file.is_file() and file.suffix != ".part"]
        names = [file.relative_to(self.folder).as_posix() for file in files if file.name not in LEFT_OUT]
        return sorted(names, key=lambda name: "/" not in name)

    def _fetch_file(self, name: str, digest: str) -> None:
        target = self.folder / name
        if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
            return
        content = self._store.cat_file(self._place(digest))
        if hashlib.sha256(content).hexdigest() != digest:
            raise MirrorError(f"{self.address}: the copy of {name} is damaged; delete the address to start anew")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)

    def _manifest(self) -> Manifest | None:
        try:
            files: Manifest = json.loads(self._store.cat_file(f"{self._root}/manifest.json"))["files"]
        except FileNotFoundError:
            return None
        for name in files:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
                raise MirrorError(f"{self.address}: its manifest names {name!r}, which is not inside a run folder")
        return files

    def _replace_manifest(self, files: Manifest) -> None:
        part = f"{self._root}/manifest-{uuid.uuid4().hex}.part"
        self._store.pipe_file(part, json.dumps({"format": 1, "files": files}, indent=1).encode())
        self._store.mv(part, f"{self._root}/manifest.json")

    def _place(self, digest: str) -> str:
        return f"{self._root}/contents/{digest}"

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Whatever a store raises becomes an error that names the address."""
        try:
            yield
        except RunError:
            raise
        except Exception as error:  # each store has exceptions of its own
            raise MirrorError(f"{self.address} cannot be used: {error}; the run folder is {self.folder}") from error


def _opened(address: str) -> tuple[Any, str]:
    """The file system of the address, and the path in it; files of this machine are replaced as a whole."""
    from fsspec.core import url_to_fs

    store, root = url_to_fs(address, use_listings_cache=False)
    store.makedirs(f"{root}/contents", exist_ok=True)
    return store, root


def _content(file: Path) -> bytes | None:
    """The bytes of a file; None if it is gone: older checkpoints are removed while a run trains."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
