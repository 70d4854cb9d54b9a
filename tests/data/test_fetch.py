"""One file from a local server that is slow, cuts off, lies, or is not there."""

import hashlib
import os
import socket

import numpy as np
import pytest

from ssvi.data import DataError
from ssvi.data.fetch import Retries, fetch

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()
RETRIES = Retries(timeout=2.0, attempts=3, pause=0.0)


def assert_fetched(server, folder):
    fetch(server.url, folder / "file.bin", MD5, RETRIES)
    assert (folder / "file.bin").read_bytes() == CONTENT
    assert os.listdir(folder) == ["file.bin"]


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
def test_fetch(tmp_path, options, asked, serving):
    with serving(**options) as server:
        assert_fetched(server, tmp_path)
    assert server.asked == asked


def test_a_partial_file_is_resumed(tmp_path, serving):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:123_456])
    with serving() as server:
        assert_fetched(server, tmp_path)
    assert server.asked == [123_456]


def test_a_complete_partial_file_needs_no_more_bytes(tmp_path, serving):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    with serving() as server:
        assert_fetched(server, tmp_path)


def test_a_server_without_ranges_starts_again(tmp_path, serving):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    with serving(ranges=False) as server:
        assert_fetched(server, tmp_path)
    assert server.asked == [1000]


def test_a_partial_file_of_something_else_is_thrown_away(tmp_path, serving):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    with serving() as server:
        assert_fetched(server, tmp_path)
    assert server.asked == [1000, 0]


def test_wrong_bytes_never_arrive(tmp_path, serving):
    with serving(content=CONTENT[:-1] + b"!") as server, pytest.raises(DataError, match=f"MD5 .* instead of {MD5}"):
        fetch(server.url, tmp_path / "file.bin", MD5, RETRIES)
    assert os.listdir(tmp_path) == []


def test_a_refusal_is_final(tmp_path, serving):
    with serving(statuses=[404, 200]) as server, pytest.raises(DataError, match="answers 404"):
        fetch(server.url, tmp_path / "file.bin", MD5, RETRIES)
    assert server.asked == [0]


def test_attempts_end_and_what_arrived_is_kept(tmp_path, serving):
    with serving(cut=70_000, ranges=False) as server:
        with pytest.raises(DataError, match=r"cut at 70000 of 300000 bytes, after 3 attempts; 70000 bytes are kept"):
            fetch(server.url, tmp_path / "file.bin", MD5, RETRIES)
        assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:70_000]
        server.cut, server.ranges = None, True
        assert_fetched(server, tmp_path)
    assert server.asked == [0, 70_000, 70_000, 70_000]


def test_a_silent_server_is_broken(tmp_path, serving):
    with serving(delay=0.4) as server, pytest.raises(DataError, match="timed out"):
        fetch(server.url, tmp_path / "file.bin", MD5, Retries(timeout=0.1, attempts=1))


def test_a_server_that_is_not_there(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file.bin"
        with pytest.raises(DataError, match=r"the connection failed .* after 3 attempts"):
            fetch(url, tmp_path / "file.bin", MD5, RETRIES)
