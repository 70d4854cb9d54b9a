"""A server for one model: HTTP requests in, answers with their uncertainty out (`ssvi serve`).

It needs `pip install 'ssvi[serve]'`. Only `application` and `server` import what that brings, so this package can be
imported without it.
"""

from ssvi.serving.batching import Batcher
from ssvi.serving.class_answer import ClassAnswer
from ssvi.serving.image_model import ImageModel
from ssvi.serving.limits import Limits, ServingError, parse_bytes
from ssvi.serving.model import Facts, Model
from ssvi.serving.refused import RefusedError
from ssvi.serving.row_model import RowModel
from ssvi.serving.start import serve

__all__ = [
    "Batcher",
    "ClassAnswer",
    "Facts",
    "ImageModel",
    "Limits",
    "Model",
    "RefusedError",
    "RowModel",
    "ServingError",
    "parse_bytes",
    "serve",
]
