"""A folder of images as people have them: bars and discs, grey and in colour, each of its own size."""

from pathlib import Path

import numpy as np
from PIL import Image

COUNTS = {"train": 20, "val": 6, "test": 4}
"""Images of each class."""


def save_shapes(root: Path) -> Path:
    """root/train, root/val and root/test with the classes "bar" and "disc"; returns the folder."""
    rng = np.random.default_rng(0)
    for split, count in COUNTS.items():
        for label in ("bar", "disc"):
            (root / split / label).mkdir(parents=True)
            for i in range(count):
                height, width = (int(side) for side in rng.integers(12, 30, size=2))
                image = Image.fromarray(_pixels(label, height, width))
                (image if i % 2 else image.convert("L")).save(root / split / label / f"{i}.png")
    return root


def _pixels(label: str, height: int, width: int) -> np.ndarray:
    pixels = np.full((height, width, 3), 40, np.uint8)
    row, column = np.mgrid[:height, :width]
    bar = (column > width / 3) & (column < width / 2)
    disc = (row - height / 2) ** 2 + (column - width / 2) ** 2 < (min(height, width) / 3) ** 2
    pixels[bar if label == "bar" else disc] = (220, 180, 30)
    return pixels
