"""Files that are small and claim much, and a program that opens them in little memory: `python bombs.py FOLDER`."""

from __future__ import annotations

import gzip
import io
import json
import resource
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

MEMORY = 3 << 29
"""Bytes beyond those of torch: a half more than one GB."""
MUCH = 10**12


def write_all(folder: Path) -> None:
    """One file of each kind."""
    _write_arrays(folder)
    _write_images(folder)
    with (folder / "line.csv").open("wb") as file:
        file.truncate(10**9)  # one line of zero bytes, which takes no room on the disk
    (folder / "fields.csv").write_text("a,b\n" + "x" * 200_000 + ",2\n")
    _write_published(folder)


def _write_arrays(folder: Path) -> None:
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, {"descr": "|u1", "fortran_order": False, "shape": (MUCH, 1, 1)})
    for name, content in (("claim.npz", claim.getvalue() + b"1234"), ("table.npz", claim.getvalue())):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("x.npy", content)
            archive.writestr("y.npy", content)
    with zipfile.ZipFile(folder / "bomb.npz", "w") as archive:
        archive.writestr("x.npy", claim.getvalue())
        archive.infolist()[0].file_size = MUCH + 128  # zipfile reads so many bytes of a member and no more
    with zipfile.ZipFile(folder / "members.npz", "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.npy", b"")
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(folder / "pickle.npz", "w") as archive:
        archive.writestr("x.npy", objects.getvalue())


def png(width: int, height: int) -> bytes:
    """The head of an image of this size, and few of its pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b"")
    )


def _write_images(folder: Path) -> None:
    for name, (width, height) in {"huge.png": (100_000, 100_000), "large.png": (9_000, 9_000)}.items():
        (folder / name).write_bytes(png(width, height))
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)).save(whole, "PNG")
    (folder / "truncated.png").write_bytes(whole.getvalue()[:1000])
    frames = [Image.new("L", (200, 200), number) for number in range(100)]
    frames[0].save(folder / "frames.gif", save_all=True, append_images=frames[1:])
    (folder / "program.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")


def _write_published(folder: Path) -> None:
    head = bytes((0, 0, 8, 3))
    with gzip.open(folder / "claim-idx.gz", "wb") as file:
        file.write(head + struct.pack(">iii", 10**6, 1000, 1000))
    zeros = gzip.compress(bytes(1 << 26), compresslevel=1)
    (folder / "bomb-idx.gz").write_bytes(gzip.compress(head + struct.pack(">iii", 1, 2, 2)) + 40 * zeros)


def said_of(file: Path) -> str:
    """What opening it says: the line of a `DataError`, "read", or another exception, which is a failure."""
    from ssvi.data import DataError, Fitting
    from ssvi.data.readers.folders import read_image
    from ssvi.data.readers.own import read_npz
    from ssvi.data.readers.published import _read_idx_array
    from ssvi.data.tables import read_table

    try:
        match file.suffix:
            case ".npz" if file.stem != "table":
                read_npz(file)
            case ".npz" | ".csv":
                read_table(file)
            case ".gz":
                _read_idx_array(file, 3)
            case _:
                read_image(file, Fitting(), file)
    except DataError as error:
        return str(error)
    except BaseException as error:
        return f"FAILED with {type(error).__name__}: {error}"
    return "read"


if __name__ == "__main__":
    import ssvi.data.tables

    ssvi.data.tables.read_table  # noqa: B018 - imports what takes memory before the limit
    import polars

    polars.DataFrame({"a": [1]})
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print(json.dumps({file.name: said_of(file) for file in sorted(Path(sys.argv[1]).iterdir())}))
