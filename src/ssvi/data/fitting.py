"""How images are brought to the shape that a network sees: their size, and grey or colour.

Everything is done by Pillow, in this order: upright as the EXIF data says, transparent parts composed on black, grey
(ITU-R 601 luma) or RGB, then the size by bilinear interpolation, which averages where it makes an image smaller.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

from ssvi.data.memory import free_bytes, in_gigabytes
from ssvi.data.split import DataError

Size = tuple[int, int]
"""(height, width)."""

FITS = ("resize", "crop", "pad")
LARGEST_SIDE = 8192
WITH_ALPHA = ("LA", "PA", "RGBA")


@dataclass(frozen=True)
class Fitting:
    """The shape of the images, and how they get it; without arguments they stay as they are.

    `fit="resize"` stretches an image to the size. "crop" keeps its proportions: the image covers the size, and what
    stands out is cut off equally on both sides. "pad" keeps them too: the image is put in the middle, and the rest is black.
    """

    size: Size | None = None
    """(height, width); None: as the images are."""
    fit: str = "resize"
    channels: int = 0
    """1: grey, 3: colour, 0: as the images are."""

    def __post_init__(self) -> None:
        if self.size is not None and not all(1 <= side <= LARGEST_SIDE for side in self.size):
            raise DataError(f"size={self.size} must be (height, width) from 1 to {LARGEST_SIDE} pixels")
        if self.fit not in FITS:
            raise DataError(f"fit={self.fit!r} must be one of {', '.join(FITS)}")
        if self.channels not in (0, 1, 3):
            raise DataError(f"channels={self.channels} must be 1 (grey), 3 (colour) or 0 (as the images are)")

    def keeps(self, shape: Sequence[int]) -> bool:
        """Whether images of this shape, (channels, height, width), stay as they are."""
        channels, *size = shape
        return self.channels in (0, channels) and self.size in (None, tuple(size))

    def of_picture(self, picture: Image.Image, name: object) -> NDArray[np.uint8]:
        """The pixels of a picture, (height, width, 1 or 3); `name` is for the error."""
        if picture.mode.startswith(("I", "F")):
            raise DataError(f"{name} has more than 8 bits per pixel (mode {picture.mode}): convert it to 8 bits")
        try:
            grey = self.channels == 1 or (self.channels == 0 and picture.mode in ("1", "L", "LA"))
            image = _without_alpha(ImageOps.exif_transpose(picture)).convert("L" if grey else "RGB")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise DataError(f"{name} is not a readable image: {error}") from error
        if not image.width or not image.height:
            raise DataError(f"{name} has no pixels: it is {image.height} x {image.width}")
        image = self._sized(image)
        pixels = np.asarray(image).reshape(image.height, image.width, -1)
        return np.broadcast_to(pixels, (*pixels.shape[:2], self.channels or pixels.shape[2]))

    def of_images(self, x: Tensor) -> Tensor:
        """The same for uint8 images (n, 1 or 3, height, width)."""
        if self.keeps(x.shape[1:]):
            return x
        channels, (height, width) = self.channels or x.shape[1], self.size or tuple(x.shape[2:])
        check_room(len(x), height, width, channels)
        fitted = np.empty((len(x), height, width, channels), np.uint8)
        for i, pixels in enumerate(x.permute(0, 2, 3, 1).numpy()):
            picture = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))
            fitted[i] = self.of_picture(picture, f"image {i}")
        return torch.from_numpy(fitted).permute(0, 3, 1, 2).contiguous()

    def _sized(self, image: Image.Image) -> Image.Image:
        if self.size is None or image.size == (self.size[1], self.size[0]):
            return image
        target = (self.size[1], self.size[0])  # Pillow's order
        if self.fit == "crop":
            return ImageOps.fit(image, target, Image.Resampling.BILINEAR)
        if self.fit == "pad":
            return _padded(image, target)
        return image.resize(target, Image.Resampling.BILINEAR)


def check_room(count: int, height: int, width: int, channels: int) -> None:
    """Refuse images that would not fit into the memory; they are held as bytes, and copied once into their order."""
    needed, free = 2 * count * height * width * channels, free_bytes()
    if needed > free:
        raise DataError(
            f"{count:,} images of {height} x {width} with {channels} channel(s) need {in_gigabytes(needed)}, but "
            f"{in_gigabytes(free)} are free: take a smaller size, for example --size 32 or size=32, or fewer images"
        )


def is_size(text: str) -> bool:
    """Whether `parse_size` can read it."""
    try:
        parse_size(text)
    except DataError:
        return False
    return True


def parse_size(text: str) -> Size | None:
    """(height, width) of "N" or "HxW"; None for "" and "0", which mean: as the images are."""
    if text in ("", "0"):
        return None
    match = re.fullmatch(r"(\d{1,5})(?:x(\d{1,5}))?", text)
    if match is None:
        raise DataError(f"size={text!r} must be N or HxW, height x width in pixels, for example 32 or 24x32")
    height = int(match[1])
    size = height, int(match[2] or height)
    return Fitting(size).size


def _without_alpha(image: Image.Image) -> Image.Image:
    """The image on black, where it has an alpha channel or a transparent colour."""
    if image.mode not in WITH_ALPHA and "transparency" not in image.info:
        return image
    transparent = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), transparent)


def _padded(image: Image.Image, target: tuple[int, int]) -> Image.Image:
    """The image as large as fits, in the middle of black."""
    scale = min(target[0] / image.width, target[1] / image.height)
    width, height = (max(round(side * scale), 1) for side in image.size)
    canvas = Image.new(image.mode, target)
    inner = image.resize((width, height), Image.Resampling.BILINEAR)
    canvas.paste(inner, ((target[0] - width) // 2, (target[1] - height) // 2))
    return canvas
