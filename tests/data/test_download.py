"""Archives, files and whole data sets from a local server into the data folder."""

import dataclasses
import hashlib
import io
import os
import pickle
import subprocess
import sys
import tarfile
import threading
import time

import numpy as np
import pytest

from ssvi.data import DataError, load
from ssvi.data.catalogue import PUBLISHED
from ssvi.data.download import Source, default_folder, download_missing
from ssvi.data.fetch import Retries

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()
RETRIES = Retries(timeout=2.0, attempts=3, pause=0.0)


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


def test_an_archive_gives_its_members_and_goes(tmp_path, serving):
    content = archive(a__1=b"one", a__2=b"two")
    with serving(content=content, cut=60) as server:
        download_missing([source_of(server, content, "a/1", "a/2")], tmp_path, RETRIES)
    assert [(tmp_path / "a" / name).read_bytes() for name in "12"] == [b"one", b"two"]
    assert [name for name in os.listdir(tmp_path) if not name.endswith(".lock")] == ["a"]


def test_what_is_there_is_kept(tmp_path, serving):
    content = archive(a__1=b"one", a__2=b"two")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1").write_bytes(b"mine")
    with serving(content=content) as server:
        download_missing([source_of(server, content, "a/1", "a/2")], tmp_path, RETRIES)
        download_missing([source_of(server, content, "a/1", "a/2")], tmp_path, RETRIES)
    assert [(tmp_path / "a" / name).read_bytes() for name in "12"] == [b"mine", b"two"]
    assert len(server.asked) == 1


def test_an_archive_put_there_by_hand_is_unpacked_and_kept(tmp_path, serving):
    content = archive(a__1=b"one")
    (tmp_path / "archive.tar.gz").write_bytes(content)
    with serving() as server:
        download_missing([source_of(server, content, "a/1")], tmp_path, RETRIES)
        assert server.asked == []
        assert (tmp_path / "archive.tar.gz").exists()
        with pytest.raises(DataError, match=r"archive\.tar\.gz does not have the MD5 .* remove it"):
            download_missing([source_of(server, b"another", "a/9")], tmp_path, RETRIES)


def test_an_archive_cannot_write_elsewhere(tmp_path, serving):
    content = archive(**{"..__evil": b"evil"})
    with serving(content=content) as server, pytest.raises(DataError, match="cannot be unpacked"):
        download_missing([source_of(server, content, "a/1")], tmp_path / "data", RETRIES)
    assert not (tmp_path / "evil").exists()


def test_an_archive_without_the_files_is_an_error(tmp_path, serving):
    content = archive(b__1=b"one")
    with serving(content=content) as server, pytest.raises(DataError, match=r"lacks a/1"):
        download_missing([source_of(server, content, "a/1")], tmp_path, RETRIES)


def test_errors_tell_what_to_do_by_hand(tmp_path, serving):
    with serving(statuses=[404]) as server, pytest.raises(DataError, match=r"put the file by hand at .*/a/file\.bin"):
        download_missing([Source(server.url, MD5, ("a/file.bin",))], tmp_path, RETRIES)


def test_a_folder_that_cannot_be_written(tmp_path, serving):
    (tmp_path / "file").write_bytes(b"")
    with serving() as server, pytest.raises(DataError, match=r"cannot write to .* choose another data folder"):
        download_missing([Source(server.url, MD5, ("a/file.bin",))], tmp_path / "file", RETRIES)


def test_a_full_disk_is_named(tmp_path, monkeypatch, serving):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with serving() as server, pytest.raises(DataError, match=r"No space left on device.* Make room"):
        download_missing([Source(server.url, MD5, ("file.bin",))], tmp_path, RETRIES)
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT


def test_of_several_processes_one_downloads(tmp_path, serving):
    with serving(delay=0.1) as server:
        source = Source(server.url, MD5, ("file.bin",))
        threads = [threading.Thread(target=download_missing, args=([source], tmp_path, RETRIES)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.asked == [0]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_killed_download_goes_on(tmp_path, serving):
    code = (
        "import sys; from pathlib import Path; from ssvi.data.download import Source, download_missing\n"
        "download_missing([Source(sys.argv[1], sys.argv[2], ('file.bin',))], Path(sys.argv[3]))"
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
        download_missing([Source(server.url, MD5, ("file.bin",))], tmp_path, RETRIES)
    assert server.asked[1] > 0
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SSVI_DATA_DIR", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("SSVI_DATA_DIR")
    assert default_folder().name == "ssvi"


# A whole data set


RECORDS = {
    split: np.random.default_rng(seed).integers(100, size=(2, 3074), dtype=np.uint8)
    for seed, split in enumerate(("train", "test"))
}
CIFAR100 = archive(**{f"cifar-100-binary__{split}.bin": records.tobytes() for split, records in RECORDS.items()})


def publish_cifar100(server, monkeypatch):
    """From now on, the source of CIFAR-100 is this server."""
    source = source_of(server, CIFAR100, *PUBLISHED["cifar100"].sources[0].files)
    monkeypatch.setitem(PUBLISHED, "cifar100", dataclasses.replace(PUBLISHED["cifar100"], sources=(source,)))


def test_a_missing_data_set_is_downloaded_once(tmp_path, monkeypatch, serving):
    with serving(content=CIFAR100) as server:
        publish_cifar100(server, monkeypatch)
        first, second = (load("cifar100", tmp_path) for _ in range(2))
    assert len(server.asked) == 1
    assert first.train.y.tolist() == second.train.y.tolist() == RECORDS["train"][:, 1].tolist()


def test_every_file_of_every_known_data_set_has_a_source():
    for known in PUBLISHED.values():
        given = {file for source in known.sources for file in source.files}
        assert given == set(known.layouts[0].files())


# The Python version, which is pickle


@pytest.fixture
def python_version(tmp_path):
    """CIFAR-100 as torchvision leaves it; whoever unpickles it creates the folder `unpickled`."""
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name in ("train", "test", "meta"):
        (folder / name).write_bytes(f"cos\nmkdir\n(V{tmp_path}/unpickled\ntR.".encode())
    yield folder
    assert not (tmp_path / "unpickled").exists()


def test_the_pickle_of_these_tests_would_be_noticed(tmp_path, python_version):
    pickle.loads((python_version / "train").read_bytes())
    assert (tmp_path / "unpickled").is_dir(), "reading it leaves a trace"
    (tmp_path / "unpickled").rmdir()


def test_who_has_the_python_version_gets_the_binary_one(tmp_path, monkeypatch, serving, python_version):
    with serving(content=CIFAR100) as server:
        publish_cifar100(server, monkeypatch)
        cifar = load("cifar100", tmp_path)
    assert cifar.test.y.tolist() == RECORDS["test"][:, 1].tolist()
    assert sorted(os.listdir(python_version)) == ["meta", "test", "train"]


@pytest.mark.parametrize("test_only", [False, True])
def test_without_download_the_error_says_why_the_python_version_is_not_read(tmp_path, python_version, test_only):
    with pytest.raises(DataError) as refusal:
        load("cifar100", tmp_path, download=False, test_only=test_only)
    assert (
        f"{python_version} is the Python version of this data set. It is not read, because its files are pickles"
        in str(refusal.value)
    )
    assert str(refusal.value).endswith(
        "Get the binary version from https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    )


def test_a_failed_download_says_why_the_python_version_is_not_read(tmp_path, monkeypatch, serving, python_version):
    with serving(statuses=[404]) as server:
        publish_cifar100(server, monkeypatch)
        with pytest.raises(
            DataError, match=r"answers 404.*by hand at .*is the Python version.*pickles.*Get the binary"
        ):
            load("cifar100", tmp_path)


@pytest.mark.parametrize("name", ["cifar10", "mnist"])
def test_the_python_version_of_another_data_set_is_not_mentioned(tmp_path, python_version, name):
    with pytest.raises(DataError) as refusal:
        load(name, tmp_path, download=False)
    assert "Python version" not in str(refusal.value)
