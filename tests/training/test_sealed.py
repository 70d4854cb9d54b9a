"""Sealed files: a byte that differs is noticed, wherever it is."""

import hashlib
import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssvi.training.errors import RunError
from ssvi.training.sealed import EMPTY, JSON, JSON_LINE, Seal, opened_json, read_json, sealed_json, write_whole

VALUES = {"format": 1, "loss": 0.5, "names": ["a", "ä"]}
SEALS = [JSON, JSON_LINE, Seal(b"# sha256 "), Seal(b"start", skip=8)]


def content_for(seal: Seal, rest: bytes) -> bytes:
    return bytes(seal.skip) + seal.start + EMPTY.encode() + rest


def test_the_digits_are_the_sha256_of_all_other_bytes():
    sealed = Seal(b"# sha256 ", skip=2).put(b"ab# sha256 " + EMPTY.encode() + b"\nrest")
    assert sealed == b"ab# sha256 " + hashlib.sha256(b"ab# sha256 \nrest").hexdigest().encode() + b"\nrest"


@given(st.sampled_from(SEALS), st.binary(max_size=40), st.data())
def test_every_flipped_bit_is_noticed(seal, rest, data):
    intact = seal.put(content_for(seal, rest))
    assert seal.is_on(intact)
    assert seal.holds(intact)
    damaged = bytearray(intact)
    damaged[data.draw(st.integers(0, len(intact) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert seal.is_on(bytes(damaged))
    assert not seal.holds(bytes(damaged))


@given(st.sampled_from(SEALS), st.binary(min_size=1, max_size=40), st.data())
def test_every_cut_after_the_seal_is_noticed(seal, rest, data):
    intact = seal.put(content_for(seal, rest))
    assert not seal.holds(intact[: len(intact) - data.draw(st.integers(1, len(rest)))])


def test_a_large_file_is_read_in_pieces_with_the_same_answer(tmp_path):
    seal = Seal(b"start", skip=8)
    intact = seal.put(content_for(seal, bytes(3 << 20)))
    (tmp_path / "file").write_bytes(intact)
    assert seal.holds_of(tmp_path / "file")
    (tmp_path / "file").write_bytes(intact[:-1] + b"x")
    assert not seal.holds_of(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"of an earlier version")
    assert seal.holds_of(tmp_path / "file")


def test_what_has_no_place_for_the_seal_is_an_error():
    with pytest.raises(ValueError, match="to be sealed"):
        JSON.put(b"{}")


@pytest.mark.parametrize("indent", [1, None])
def test_json_stays_json(indent):
    sealed = sealed_json(VALUES, indent)
    assert {k: v for k, v in json.loads(sealed).items() if k != "sha256"} == VALUES
    assert opened_json(sealed, "file", JSON if indent else JSON_LINE, (1,)) == VALUES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (sealed_json(VALUES).replace(b"0.5", b"0.6"), "its SHA-256 does not match"),
        (json.dumps(json.loads(sealed_json(VALUES)), indent=2).encode(), "was rewritten by another program"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "it holds list, not names and values"),
        (sealed_json({"format": 2}), r"has format 2, this version reads 1: use the ssvi that wrote it"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(content, message, tmp_path):
    (tmp_path / "machine.json").write_bytes(content)
    with pytest.raises(RunError, match=rf"machine\.json .*{message}"):
        read_json(tmp_path / "machine.json", (1,))


def test_a_file_of_an_earlier_version_has_neither_seal_nor_format(tmp_path):
    (tmp_path / "machine.json").write_text('{"processes": 2}')
    assert read_json(tmp_path / "machine.json", (1,)) == {"processes": 2}
    with pytest.raises(RunError, match=r"other\.json cannot be read"):
        read_json(tmp_path / "other.json")


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_a_file_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
