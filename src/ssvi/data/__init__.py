"""Data sets as tensors: `load` one by name or path, take `batches` of it for training that can resume anywhere."""

from ssvi.data import augment
from ssvi.data.batches import Batches
from ssvi.data.corruptions import corrupt
from ssvi.data.dataset import DataSet
from ssvi.data.download import default_folder
from ssvi.data.embedded import digits
from ssvi.data.find import NAMES, cifar_c_folder, load
from ssvi.data.names import CORRUPTIONS
from ssvi.data.readers.cifar import cifar_c
from ssvi.data.readers.folder import read_images
from ssvi.data.split import DataError, Split

__all__ = [
    "CORRUPTIONS",
    "NAMES",
    "Batches",
    "DataError",
    "DataSet",
    "Split",
    "augment",
    "cifar_c",
    "cifar_c_folder",
    "corrupt",
    "default_folder",
    "digits",
    "load",
    "read_images",
]
