"""Downloads from a local server that is slow, cuts off, lies, or is not there."""

import dataclasses
import hashlib
import io
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from ssvi.data import DataError, load
from ssvi.data.catalogue import KNOWN
from ssvi.data.download import Source, obtain
from ssvi.data.fetch import Patience, fetch

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()
PATIENCE = Patience(timeout=2.0, breaks=3, pause=0.0)


@dataclasses.dataclass
class Server:
    """What it serves and how; it writes down which byte each request asked to start from."""

    content: bytes = CONTENT
    cut: int | None = None  # close the connection after so many bytes of an answer
    delay: float = 0.0  # seconds between pieces of 50,000 bytes
    ranges: bool = True
    length: bool = True  # announce the length
    statuses: list[int] = dataclasses.field(default_factory=list)  # answers before the first good one
    asked: list[int] = dataclasses.field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    served: Server

    def do_GET(self):
        server = self.served
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        server.asked.append(start)
        if server.statuses:
            return self.send_error(server.statuses.pop(0))
        if server.ranges and start >= len(server.content):
            return self.send_error(416)
        self.send_response(206 if start and server.ranges else 200)
        if start and server.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        body = server.content[start if server.ranges else 0 :]
        if server.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body[: server.cut]
        with suppress(ConnectionError):  # a client that was killed
            for i in range(0, len(body), 50_000):
                self.wfile.write(body[i : i + 50_000])
                time.sleep(server.delay)

    def log_message(self, *arguments):
        pass


@contextmanager
def serving(**options):
    server = Server(**options)
    handler = type("Bound", (Handler,), {"served": server})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_port}/file.bin"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def assert_fetched(server, folder):
    fetch(server.url, folder / "file.bin", MD5, PATIENCE)
    assert (folder / "file.bin").read_bytes() == CONTENT
    assert os.listdir(folder) == ["file.bin"]


# One file


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, [0]),
        ({"delay": 0.1}, [0]),
        ({"length": False}, [0]),
        ({"cut": 110_000}, [0, 110_000, 220_000]),
        ({"statuses": [503, 429]}, [0, 0, 0]),
    ],
    ids=["plain", "slow", "length unknown", "cut off", "busy"],
)
def test_fetch(tmp_path, options, asked):
    with serving(**options) as server:
        assert_fetched(server, tmp_path)
    assert server.asked == asked


def test_a_partial_file_is_resumed(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:123_456])
    with serving() as server:
        assert_fetched(server, tmp_path)
    assert server.asked == [123_456]


def test_a_complete_partial_file_needs_no_more_bytes(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    with serving() as server:
        assert_fetched(server, tmp_path)


def test_a_server_without_ranges_starts_again(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    with serving(ranges=False) as server:
        assert_fetched(server, tmp_path)
    assert server.asked == [1000]


def test_a_partial_file_of_something_else_is_thrown_away(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    with serving() as server:
        assert_fetched(server, tmp_path)
    assert server.asked == [1000, 0]


def test_wrong_bytes_never_arrive(tmp_path):
    with serving(content=CONTENT[:-1] + b"!") as server, pytest.raises(DataError, match=f"MD5 .* instead of {MD5}"):
        fetch(server.url, tmp_path / "file.bin", MD5, PATIENCE)
    assert os.listdir(tmp_path) == []


def test_a_refusal_is_final(tmp_path):
    with serving(statuses=[404, 200]) as server, pytest.raises(DataError, match="answers 404"):
        fetch(server.url, tmp_path / "file.bin", MD5, PATIENCE)
    assert server.asked == [0]


def test_patience_ends_and_what_arrived_is_kept(tmp_path):
    with serving(cut=70_000, ranges=False) as server:
        with pytest.raises(DataError, match=r"cut at 70000 of 300000 bytes, after 3 attempts; 70000 bytes are kept"):
            fetch(server.url, tmp_path / "file.bin", MD5, PATIENCE)
        assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:70_000]
        server.cut, server.ranges = None, True
        assert_fetched(server, tmp_path)
    assert server.asked == [0, 70_000, 70_000, 70_000]


def test_a_silent_server_is_broken(tmp_path):
    with serving(delay=0.4) as server, pytest.raises(DataError, match="timed out"):
        fetch(server.url, tmp_path / "file.bin", MD5, Patience(timeout=0.1, breaks=1))


def test_nobody_listens(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file.bin"
        with pytest.raises(DataError, match=r"the connection failed .* after 3 attempts"):
            fetch(url, tmp_path / "file.bin", MD5, PATIENCE)


# Sources


def archive(**members):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def source_of(server, content, *files, name="archive.tar.gz"):
    return Source(server.url.replace("file.bin", name), hashlib.md5(content).hexdigest(), files)


def test_an_archive_gives_its_members_and_goes(tmp_path):
    content = archive(a__1=b"one", a__2=b"two")
    with serving(content=content, cut=60) as server:
        obtain([source_of(server, content, "a/1", "a/2")], tmp_path, PATIENCE)
    assert [(tmp_path / "a" / name).read_bytes() for name in "12"] == [b"one", b"two"]
    assert [name for name in os.listdir(tmp_path) if not name.endswith(".lock")] == ["a"]


def test_what_is_there_is_kept(tmp_path):
    content = archive(a__1=b"one", a__2=b"two")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1").write_bytes(b"mine")
    with serving(content=content) as server:
        obtain([source_of(server, content, "a/1", "a/2")], tmp_path, PATIENCE)
        obtain([source_of(server, content, "a/1", "a/2")], tmp_path, PATIENCE)
    assert [(tmp_path / "a" / name).read_bytes() for name in "12"] == [b"mine", b"two"]
    assert len(server.asked) == 1


def test_an_archive_put_there_by_hand_is_unpacked_and_kept(tmp_path):
    content = archive(a__1=b"one")
    (tmp_path / "archive.tar.gz").write_bytes(content)
    with serving() as server:
        obtain([source_of(server, content, "a/1")], tmp_path, PATIENCE)
        assert server.asked == []
        assert (tmp_path / "archive.tar.gz").exists()
        with pytest.raises(DataError, match=r"archive\.tar\.gz does not have the MD5 .* remove it"):
            obtain([source_of(server, b"another", "a/9")], tmp_path, PATIENCE)


def test_an_archive_cannot_write_elsewhere(tmp_path):
    content = archive(**{"..__evil": b"evil"})
    with serving(content=content) as server, pytest.raises(DataError, match="cannot be unpacked"):
        obtain([source_of(server, content, "a/1")], tmp_path / "data", PATIENCE)
    assert not (tmp_path / "evil").exists()


def test_an_archive_without_the_files_is_an_error(tmp_path):
    content = archive(b__1=b"one")
    with serving(content=content) as server, pytest.raises(DataError, match=r"lacks a/1"):
        obtain([source_of(server, content, "a/1")], tmp_path, PATIENCE)


def test_errors_tell_what_to_do_by_hand(tmp_path):
    with serving(statuses=[404]) as server, pytest.raises(DataError, match=r"put the file by hand at .*/a/file\.bin"):
        obtain([Source(server.url, MD5, ("a/file.bin",))], tmp_path, PATIENCE)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with serving() as server, pytest.raises(DataError, match=r"cannot write to .* choose another data folder"):
        obtain([Source(server.url, MD5, ("a/file.bin",))], tmp_path / "file", PATIENCE)


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with serving() as server, pytest.raises(DataError, match=r"No space left on device.* Make room"):
        obtain([Source(server.url, MD5, ("file.bin",))], tmp_path, PATIENCE)
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT


def test_of_several_processes_one_downloads(tmp_path):
    with serving(delay=0.1) as server:
        source = Source(server.url, MD5, ("file.bin",))
        threads = [threading.Thread(target=obtain, args=([source], tmp_path, PATIENCE)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.asked == [0]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_killed_download_goes_on(tmp_path):
    code = (
        "import sys; from pathlib import Path; from ssvi.data.download import Source, obtain\n"
        "obtain([Source(sys.argv[1], sys.argv[2], ('file.bin',))], Path(sys.argv[3]))"
    )
    with serving(delay=0.4) as server:
        process = subprocess.Popen([sys.executable, "-c", code, server.url, MD5, str(tmp_path)])
        part = tmp_path / "file.bin.part"
        while not (part.exists() and part.stat().st_size):
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert not (tmp_path / "file.bin").exists()
        server.delay = 0.0
        obtain([Source(server.url, MD5, ("file.bin",))], tmp_path, PATIENCE)
    assert server.asked[1] > 0
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


# A whole data set


def test_a_missing_data_set_is_downloaded_once(tmp_path, monkeypatch):
    records = {
        part: np.random.default_rng(1).integers(100, size=(2, 3074), dtype=np.uint8) for part in ("train", "test")
    }
    content = archive(**{f"cifar-100-binary__{part}.bin": data.tobytes() for part, data in records.items()})
    with serving(content=content) as server:
        source = source_of(server, content, *KNOWN["cifar100"].sources[0].files)
        monkeypatch.setitem(KNOWN, "cifar100", dataclasses.replace(KNOWN["cifar100"], sources=(source,)))
        first, second = (load("cifar100", tmp_path) for _ in range(2))
    assert len(server.asked) == 1
    assert first.train.y.tolist() == second.train.y.tolist() == records["train"][:, 1].tolist()


def test_every_file_of_every_known_data_set_has_a_source():
    for known in KNOWN.values():
        given = {file for source in known.sources for file in source.files}
        assert given == set(known.layouts[0].files())
