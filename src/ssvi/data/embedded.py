"""The digits that come with the package: real images for the first five minutes, without a download."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import torch
from numpy.typing import NDArray

from ssvi.data.dataset import DataSet
from ssvi.data.split import Split


def digits() -> DataSet:
    """1438 + 359 handwritten digits of 8 x 8 pixels; `digits.md` tells their origin, license and split."""
    with as_file(files("ssvi.data") / "digits.npz") as path, np.load(path) as stored:
        train, test = (_split(stored["x" + part], stored["y" + part]) for part in ("", "_test"))
    return DataSet("digits", tuple("0123456789"), train, test)


def _split(x: NDArray[np.uint8], y: NDArray[np.uint8]) -> Split:
    """Stretch the 17 grey levels 0 to 16 over 0 to 255, so that digits are bright images like any other."""
    levels = np.round(np.arange(17) * 255 / 16).astype(np.uint8)
    return Split(torch.from_numpy(levels[x])[:, None], torch.from_numpy(y.astype(np.int64)))
