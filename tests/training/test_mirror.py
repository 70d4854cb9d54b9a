"""The copy of a run folder at an address: whole at every moment, and of one writer."""

import json
import uuid
from pathlib import Path

import fsspec
import pytest

from ssvi.training.mirror import Mirror, MirrorError


@pytest.fixture(params=["memory", "file"])
def address(request, tmp_path):
    return f"memory://{uuid.uuid4().hex}/run" if request.param == "memory" else f"file://{tmp_path}/store/run"


@pytest.fixture
def folder(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints" / "step-000000001.pt").write_bytes(b"state 1")
    (run / "metrics.jsonl").write_text("epoch 1\n")
    (run / ".lock").touch()
    (run / "model.safetensors.part").write_text("in the making")
    return run


def texts(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def contents(address: str) -> list[str]:
    store, root = fsspec.core.url_to_fs(address)
    return store.ls(f"{root}/contents", detail=False)


def test_what_was_pushed_is_fetched_elsewhere(folder, address, tmp_path):
    Mirror(address, folder).push()
    elsewhere = Mirror(address, tmp_path / "elsewhere")
    elsewhere.fetch()
    assert texts(elsewhere.folder) == {"checkpoints/step-000000001.pt": "state 1", "metrics.jsonl": "epoch 1\n"}


def test_a_fetch_brings_the_folder_back_to_the_copy(folder, address):
    mirror = Mirror(address, folder)
    mirror.push()
    (folder / "metrics.jsonl").write_text("epoch 1\nepoch 2\n")
    (folder / "checkpoints" / "step-000000002.pt").write_bytes(b"state 2")
    mirror.fetch()
    assert texts(folder)["metrics.jsonl"] == "epoch 1\n"
    assert not (folder / "checkpoints" / "step-000000002.pt").exists()


def test_an_empty_address_leaves_the_folder_as_it_is(folder, address):
    before = texts(folder)
    Mirror(address, folder).fetch()
    assert texts(folder) == before


def test_contents_that_no_file_has_any_more_are_removed(folder, address):
    mirror = Mirror(address, folder)
    mirror.push()
    (folder / "checkpoints" / "step-000000001.pt").rename(folder / "checkpoints" / "step-000000002.pt")
    (folder / "metrics.jsonl").write_text("epoch 1\nepoch 2\n")
    mirror.push()
    assert len(contents(address)) == 2
    mirror.fetch()
    assert (folder / "checkpoints" / "step-000000002.pt").read_bytes() == b"state 1"


def test_a_writer_whose_run_was_taken_by_another_stops(folder, address, tmp_path):
    lost = Mirror(address, folder)
    lost.push()
    other = Mirror(address, tmp_path / "elsewhere")
    other.fetch()
    (other.folder / "metrics.jsonl").write_text("epoch 1\nepoch 2\n")
    other.push()
    (folder / "metrics.jsonl").write_text("epoch 1\nlate\n")
    with pytest.raises(MirrorError, match="another process has gone on with this run"):
        lost.push()
    other.fetch()
    assert texts(other.folder)["metrics.jsonl"] == "epoch 1\nepoch 2\n"


def test_a_new_run_is_not_put_over_an_old_one(folder, address):
    Mirror(address, folder).push()
    with pytest.raises(MirrorError, match="another process"):
        Mirror(address, folder).push()


@pytest.mark.parametrize("at", range(4))
def test_a_push_that_breaks_off_leaves_the_copy_before_or_after(folder, address, tmp_path, monkeypatch, at):
    """Two contents, the manifest under another name, and its rename: each of these writes fails once."""
    mirror = Mirror(address, folder)
    mirror.push()
    before = texts(folder)
    (folder / "metrics.jsonl").write_text("epoch 1\nepoch 2\n")
    (folder / "checkpoints" / "step-000000001.pt").rename(folder / "checkpoints" / "step-000000002.pt")
    (folder / "checkpoints" / "step-000000002.pt").write_bytes(b"state 2")
    left = [at]

    def failing(write):
        def call(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                raise OSError("the network is gone")
            return write(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("pipe_file", "mv"):
            patch.setattr(mirror._store, name, failing(getattr(mirror._store, name)))
        with pytest.raises(MirrorError, match="the network is gone"):
            mirror.push()
    elsewhere = Mirror(address, tmp_path / "elsewhere")
    elsewhere.fetch()
    unseen = (".lock", "model.safetensors.part")
    assert texts(elsewhere.folder) == {name: text for name, text in before.items() if name not in unseen}


def test_a_push_whose_answer_was_lost_is_not_taken_for_that_of_another(folder, address, monkeypatch):
    mirror = Mirror(address, folder)
    replace = mirror._replace_manifest

    def replace_without_answer(files):
        replace(files)
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(mirror, "_replace_manifest", replace_without_answer)
        with pytest.raises(MirrorError, match="no answer"):
            mirror.push()
    (folder / "metrics.jsonl").write_text("epoch 1\nepoch 2\n")
    mirror.push()
    assert not mirror.is_taken


def test_a_damaged_content_is_not_used(folder, address, tmp_path):
    Mirror(address, folder).push()
    store, _ = fsspec.core.url_to_fs(address)
    for place in contents(address):
        store.pipe_file(place, b"damaged")
    with pytest.raises(MirrorError, match="is damaged"):
        Mirror(address, tmp_path / "elsewhere").fetch()


def test_the_log_can_be_fetched_alone(folder, address, tmp_path):
    Mirror(address, folder).push()
    elsewhere = Mirror(address, tmp_path / "elsewhere")
    elsewhere.fetch_log()
    assert texts(elsewhere.folder) == {"metrics.jsonl": "epoch 1\n"}


@pytest.mark.parametrize("address", ["nothing-of-this-kind://bucket/run"])
def test_an_address_that_cannot_be_opened_is_named(folder, address):
    with pytest.raises(MirrorError, match="nothing-of-this-kind://bucket/run cannot be used"):
        Mirror(address, folder)


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside", "..\\outside"])
def test_a_manifest_cannot_name_files_outside_the_folder(name, folder, address, tmp_path):
    Mirror(address, folder).push()
    store, root = fsspec.core.url_to_fs(address)
    digest = store.ls(f"{root}/contents", detail=False)[0].rpartition("/")[2]
    store.pipe_file(f"{root}/manifest.json", json.dumps({"format": 1, "files": {name: digest}}).encode())
    with pytest.raises(MirrorError, match="which is not inside a run folder"):
        Mirror(address, tmp_path / "elsewhere" / "run").fetch()
    assert not list(tmp_path.rglob("*outside"))
