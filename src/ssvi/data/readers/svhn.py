"""SVHN, the cropped digits of Street View House Numbers: MATLAB files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ssvi.data.split import DataError, Split


def read_svhn(files: Sequence[Path]) -> Split:
    """A file with images X (32, 32, 3, n) and classes y (n, 1), in which class 10 is the digit 0."""
    (file,) = files
    try:
        from scipy.io import loadmat
    except ImportError:
        raise DataError(f"{file} is a MATLAB file, which needs SciPy: pip install 'ssvi[svhn]'") from None
    try:
        content = loadmat(file)
        images, classes = content["X"], content["y"].ravel()
    except Exception as error:  # a damaged file can raise anything
        raise DataError(f"{file} does not hold images X and classes y: {error!r}") from error
    x = np.ascontiguousarray(images.transpose(3, 2, 0, 1))
    return Split(torch.from_numpy(x), torch.from_numpy(classes.astype(np.int64) % 10))
