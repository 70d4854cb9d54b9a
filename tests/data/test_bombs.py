"""Files that claim or unpack to more than a machine has: each is one clear line, before memory is taken."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import bombs
import numpy as np
import pytest
from scipy.io import savemat

from ssvi.data import DataError, download, load
from ssvi.data.readers import published
from ssvi.data.readers.own import read_npz

EXPECTED = {
    "claim.npz": "says it is (1000000000000, 1, 1) of uint8, but has other bytes",
    "table.npz": "says it is (1000000000000, 1, 1) of uint8, but has other bytes",
    "bomb.npz": "would unpack to 1,000,000,000,128: more than 2,147,483,648",
    "members.npz": "has 1,001 arrays, more than 1,000",
    "pickle.npz": "an array of Python objects, which are pickles",
    "huge.png": "has more than 80,000,000 pixels: make it smaller",
    "large.png": "is 9000 x 9000 = 81,000,000 pixels, more than 80,000,000: make it smaller",
    "truncated.png": "is not a readable image: image file is truncated",
    "frames.gif": "read",
    "program.png": "is not a readable image: cannot identify image file",
    "line.csv": "line 1: it has 16,777,216 characters or more. Is this a table?",
    "fields.csv": "field larger than field limit",
    "claim-idx.gz": "is not a complete idx file of uint8 with 3 dimensions and at most 2,147,483,648 bytes",
    "bomb-idx.gz": "is not a complete idx file of uint8 with 3 dimensions",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What all of them say, opened by one process with little memory."""
    folder = tmp_path_factory.mktemp("bombs")
    bombs.write_all(folder)
    done = subprocess.run([sys.executable, bombs.__file__, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
@pytest.mark.parametrize("name", EXPECTED)
def test_each_is_one_line_that_names_the_file(name, said):
    folder, lines = said
    assert set(lines) == set(EXPECTED)
    assert EXPECTED[name] in lines[name]
    assert "\n" not in lines[name]
    assert lines[name] == "read" or str(folder / name) in lines[name]


def test_a_large_file_may_unpack_to_some_times_its_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("ssvi.data.npz.MOST_UNPACKED", 10)
    images = np.random.default_rng(0).integers(0, 255, (20, 8, 8), np.uint8)
    np.savez_compressed(tmp_path / "t.npz", x=images, y=np.arange(20) % 2)
    assert len(read_npz(tmp_path / "t.npz").train) == 20


def tar_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)) if member.isfile() else None)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 3, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size if kind == tarfile.REGTYPE else 0, link
    return info


MEMBERS = {
    "a path outside": member("../outside"),
    "a symbolic link": member("a/link", tarfile.SYMTYPE, link="/etc/passwd"),
    "a link inside": member("a/link", tarfile.SYMTYPE, link="1"),
    "a hard link": member("a/link", tarfile.LNKTYPE, link="a/1"),
    "a device": member("a/device", tarfile.CHRTYPE),
    "a pipe": member("a/pipe", tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_members_that_are_no_files_inside(kind, tmp_path):
    archive = tar_of(tmp_path / "a.tar.gz", member("a/1"), MEMBERS[kind])
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match=r"a\.tar\.gz"):
        download._unpack(archive, tmp_path / "data")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar.gz", "data"]


@pytest.mark.parametrize(("name", "most"), [("MOST_MEMBERS", 2), ("MOST_UNPACKED", 8)])
def test_archives_of_too_much(name, most, tmp_path, monkeypatch):
    monkeypatch.setattr(download, name, most)
    archive = tar_of(tmp_path / "a.tar.gz", *(member(f"a/{i}") for i in range(3)))
    with pytest.raises(DataError, match=r"a\.tar\.gz has more than .* members or .* bytes: remove it"):
        download._unpack(archive, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_an_absolute_path_stays_inside(tmp_path):
    """`tarfile` takes the leading slash away."""
    download._unpack(tar_of(tmp_path / "a.tar.gz", member("/a/1")), tmp_path / "data")
    assert (tmp_path / "data" / "a" / "1").read_bytes() == bytes(3)


def test_a_matlab_file_is_measured_before_it_is_read(tmp_path, monkeypatch):
    savemat(tmp_path / "t.mat", {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.ones((2, 1))}, do_compression=True)
    monkeypatch.setattr(published, "MOST_BYTES", 100)
    with pytest.raises(DataError, match=r"t\.mat has X and y of 6,160 bytes, more than 100"):
        published.read_svhn([tmp_path / "t.mat"])


def test_the_python_version_of_cifar_is_not_read(tmp_path):
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"a pickle")
    with pytest.raises(DataError, match="files are pickles, and a pickle can run any code"):
        load("cifar10", tmp_path, download=False)
