"""Images inside the page."""

from __future__ import annotations

import base64
import io

from PIL import Image
from torch import Tensor


def thumbnail(x: Tensor) -> str:
    """A uint8 image (1 or 3, height, width) as a PNG data URL, pixel for pixel; the page enlarges it."""
    pixels = x.permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
