"""Data sets as tensors: `load` one by name or path, take `batches` of it for training that can resume at any step."""

from ssvi.data import augment
from ssvi.data.corruptions import CORRUPTIONS, corrupt
from ssvi.data.dataset import DataSet
from ssvi.data.download import default_folder
from ssvi.data.fitting import FITS, Fitting, is_size, parse_size
from ssvi.data.load import NAMES, cifar_c_folder, digits, load
from ssvi.data.readers.folders import image_files, read_images
from ssvi.data.readers.published import cifar_c
from ssvi.data.split import Batches, DataError, Examples, Split
from ssvi.data.training_data import TrainingData

__all__ = [
    "CORRUPTIONS",
    "FITS",
    "NAMES",
    "Batches",
    "DataError",
    "DataSet",
    "Examples",
    "Fitting",
    "Split",
    "TrainingData",
    "augment",
    "cifar_c",
    "cifar_c_folder",
    "corrupt",
    "default_folder",
    "digits",
    "image_files",
    "is_size",
    "load",
    "parse_size",
    "read_images",
]
