"""Image files in memory."""

import io

from PIL import Image


def as_file(picture: Image.Image, kind: str = "PNG", **settings: object) -> bytes:
    """The bytes of an image file."""
    file = io.BytesIO()
    picture.save(file, kind, **settings)
    return file.getvalue()
