"""The hardest test images, as pictures inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image
from torch import Tensor

from ssvi.data import DataError
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.results import HardImages, ImageAnswer


@dataclass(frozen=True)
class Picture:
    """An image as a data URL, and what the network says of it."""

    url: str
    answer: ImageAnswer


@dataclass(frozen=True)
class HardPictures:
    """The images of which the network was least certain, and those where it was wrong and most certain."""

    uncertain: Sequence[Picture] = ()
    wrong: Sequence[Picture] = ()


def hard_pictures(run: FinishedRun, images: HardImages) -> HardPictures:
    """The pictures of these images; none where the data set is no longer there, since the numbers are kept without it."""
    try:
        x = run.test.x
    except DataError:
        return HardPictures()
    uncertain, wrong = (
        [Picture(thumbnail(x[answer.index]), answer) for answer in answers]
        for answers in (images.uncertain, images.wrong)
    )
    return HardPictures(uncertain, wrong)


def thumbnail(x: Tensor) -> str:
    """A uint8 image (1 or 3, height, width) as a PNG data URL, pixel for pixel; the page enlarges it."""
    pixels = x.permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
