"""Random data files: arrays of images, tables and folders of images, most of them wrong in some way."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

LABELS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "classes": lambda rng, n: rng.integers(0, 3, n),
    "one class": lambda rng, n: np.zeros(n, np.int64),
    "gap": lambda rng, n: rng.choice([0, 7], n),
    "huge": lambda rng, n: rng.choice([0, 10**9], n),
    "negative": lambda rng, n: rng.integers(-2, 2, n),
    "fractions": lambda rng, n: rng.normal(size=n),
    "nan": lambda rng, n: np.full(n, np.nan),
    "texts": lambda rng, n: rng.choice(["cat", "dog"], n),
    "objects": lambda rng, n: np.array([{"a": 1}] * n),
    "table": lambda rng, n: rng.integers(0, 2, (n, 2)),
    "too few": lambda rng, n: rng.integers(0, 2, max(0, n - 1)),
    "bytes": lambda rng, n: rng.integers(0, 3, n).astype(np.uint8),
    "booleans": lambda rng, n: rng.random(n) < 0.5,
}
SHAPES = ((8, 8), (8, 8, 1), (8, 8, 3), (8, 8, 4), (5, 9, 3), (1, 1), (3, 8, 8), (0, 8), (40,), (13,), (2, 2, 2, 2), ())
TYPES = ("uint8", "uint8", "uint8", "float32", "float64", "int64", "bool", "complex64", "<U3", "object")

CELLS = (
    "1.5",
    "-3",
    "",
    "NA",
    "nan",
    "inf",
    "1e400",
    "text",
    "ä",
    '"quoted, comma"',
    "2020-01-01",
    "true",
    "1,5",
    "\x00",
    "0",
)


def arrays_file(draw: random.Random, folder: Path) -> Path:
    """An .npz file; a file of images needs x_train and y_train, a table x and y."""
    rng, n = np.random.default_rng(draw.randrange(2**32)), draw.choice((0, 1, 3, 30, 60))
    names = draw.choice(
        (("x_train", "y_train", "x_test", "y_test"), ("x_train", "y_train"), ("x", "y"), ("a", "b"), ())
    )
    shape, kind, labels = draw.choice(SHAPES), draw.choice(TYPES), draw.choice(list(LABELS))
    values: dict[str, Any] = {}
    for name in names:
        is_input = name.startswith(("x", "a"))
        values[name] = (rng.random((n, *shape)) * 255).astype(kind) if is_input else LABELS[labels](rng, n)
    file = folder / draw.choice(("data.npz", "data.npz", "data.npz", "data.npy", "data.txt"))
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    file.write_bytes(damaged(draw, buffer.getvalue()) if draw.random() < 0.2 else buffer.getvalue())
    return file


def table_file(draw: random.Random, folder: Path) -> Path:
    """A CSV file with the columns a, b, c and y; y is a number, a class, or anything."""
    rng, rows = random.Random(draw.randrange(2**32)), draw.choice((0, 1, 2, 30, 80))
    target = draw.choice(("number", "number", "classes", "constant", "anything"))
    make = {
        "number": lambda: f"{rng.gauss(5, 2):.3f}", "classes": lambda: rng.choice(("yes", "no")),
        "constant": lambda: "1", "anything": lambda: rng.choice(CELLS),
    }[target]  # fmt: skip
    cell = (lambda: f"{rng.gauss(0, 1):.3f}") if draw.random() < 0.6 else (lambda: rng.choice(CELLS))
    lines = [",".join((cell(), cell(), rng.choice("pqr"), make())) for _ in range(rows)]
    header = draw.choice(("a,b,c,y", "a,b,c,y", "a,b,c,y", "a,a,c,y", "a,b,c", "", "1,2,3,4"))
    content = "\n".join([header, *lines, ""]).encode(
        draw.choice(("utf-8", "utf-8", "utf-8", "utf-16", "latin-1")), "replace"
    )
    file = folder / draw.choice(("data.csv", "data.csv", "data.csv", "data.parquet"))
    file.write_bytes(damaged(draw, content) if draw.random() < 0.15 else content)
    return file


def image_folder(draw: random.Random, folder: Path) -> Path:
    """train/CLASS/*.png and perhaps test/ and val/, of one size or of several, some of them no images."""
    root, rng = folder / "images", np.random.default_rng(draw.randrange(2**32))
    sizes = draw.choice((((8, 8),), ((8, 8),), ((8, 8), (9, 7)), ((1, 1),)))
    modes = draw.choice((("L",), ("RGB",), ("L", "RGB"), ("RGBA", "P", "CMYK", "LA", "1")))
    for part in draw.choice((("train", "test"), ("train",), ("train", "val", "test"), ("test",), ("",))):
        for name in draw.choice((("cat", "dog"), ("cat",), ("cat", ".hidden"))):
            for i in range(draw.choice((1, 12, 20))):
                _image(draw, rng, root / part / name / f"{i}.png", draw.choice(sizes), draw.choice(modes))
    root.mkdir(exist_ok=True)
    return root


def _image(draw: random.Random, rng: np.random.Generator, file: Path, size: tuple[int, int], mode: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).convert(mode)
    image.save(file if mode != "CMYK" else file.with_suffix(".jpg"))
    if draw.random() < 0.01 and file.exists():
        file.write_bytes(damaged(draw, file.read_bytes()))


def damaged(draw: random.Random, content: bytes) -> bytes:
    """The content with a bit flipped, cut, empty, longer, or of another kind."""
    at = draw.randrange(len(content)) if content else 0
    how = draw.choice(("flip", "flip", "flip", "cut", "empty", "longer", "other", "list"))
    if how == "flip" and content:
        return content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
    return {
        "flip": b"\x00", "cut": content[:at], "empty": b"", "longer": content + draw.randbytes(9),
        "other": draw.randbytes(64), "list": b"[]",
    }[how]  # fmt: skip
