"""The data sets that we know by name: their classes, their files, the reader, and where they are published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssvi.data.corruptions import CORRUPTIONS
from ssvi.data.download import Source, missing_files
from ssvi.data.readers.published import read_cifar10, read_cifar100, read_idx, read_svhn
from ssvi.data.split import Split

# The names of the classes, in the order of their numbers.
DIGIT_CLASSES = tuple("0123456789")
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR100_NAMES = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple
    motorcycle mountain mouse mushroom oak orange orchid otter palm pear pickup_truck pine plain plate poppy porcupine
    possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel
    streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle wardrobe
    whale willow wolf woman worm
"""
CIFAR100_CLASSES = tuple(_CIFAR100_NAMES.split())
FASHION_CLASSES = (
    *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)


@dataclass(frozen=True)
class Layout:
    """One form in which a data set may be stored in the data folder: its files, and their reader."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[[Sequence[Path]], Split]

    def files(self, *, test_only: bool = False) -> tuple[str, ...]:
        """The files for training and for testing, or with `test_only` those for testing."""
        return self.test if test_only else self.train + self.test

    def missing(self, folder: Path, *, test_only: bool = False) -> list[str]:
        """The needed files that `folder` does not have."""
        return missing_files(self.files(test_only=test_only), folder)


@dataclass(frozen=True)
class Published:
    """A published data set. Its sources give the files of its first layout.

    `python_version` is the folder of its Python version, if it has one. We do not read it, because it is pickle.
    """

    classes: tuple[str, ...]
    layouts: tuple[Layout, ...]
    sources: tuple[Source, ...]
    python_version: str | None = None


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def _idx(classes: tuple[str, ...], folder: str, base: str, *md5: str) -> Published:
    """Four files: images and labels to train, images and labels to test; compressed as published, or not."""
    names = [f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    plain, compressed = _in(folder, *names), _in(folder, *(f"{name}.gz" for name in names))
    layouts = tuple(Layout(files[:2], files[2:], read_idx) for files in (compressed, plain))
    sources = tuple(Source(base + Path(file).name, sum_, (file,)) for file, sum_ in zip(compressed, md5, strict=True))
    return Published(classes, layouts, sources)


_TORONTO = "https://www.cs.toronto.edu/~kriz/"
_STANFORD = "http://ufldl.stanford.edu/housenumbers/"  # this server has no https; the checksum detects changed files

_CIFAR10 = Layout(
    _in("cifar-10-batches-bin", *(f"data_batch_{i}.bin" for i in range(1, 6))),
    _in("cifar-10-batches-bin", "test_batch.bin"),
    read_cifar10,
)
_CIFAR100 = Layout(_in("cifar-100-binary", "train.bin"), _in("cifar-100-binary", "test.bin"), read_cifar100)
_SVHN = Layout(_in("svhn", "train_32x32.mat"), _in("svhn", "test_32x32.mat"), read_svhn)

PUBLISHED = {
    "cifar10": Published(
        CIFAR10_CLASSES,
        (_CIFAR10,),
        (Source(_TORONTO + "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", _CIFAR10.files()),),
        python_version="cifar-10-batches-py",
    ),
    "cifar100": Published(
        CIFAR100_CLASSES,
        (_CIFAR100,),
        (Source(_TORONTO + "cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", _CIFAR100.files()),),
        python_version="cifar-100-python",
    ),
    "svhn": Published(
        DIGIT_CLASSES,
        (_SVHN,),
        (
            Source(_STANFORD + "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", _SVHN.train),
            Source(_STANFORD + "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", _SVHN.test),
        ),
    ),
    "mnist": _idx(
        DIGIT_CLASSES,
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx(
        FASHION_CLASSES,
        "fashion-mnist",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
}

_CIFAR_C_FILES = ("labels.npy", *(f"{name}.npy" for name in CORRUPTIONS))

CIFAR_C = {
    "cifar10": Source(
        "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
        "56bf5dcef84df0e2308c6dcbcbbd8499",
        _in("CIFAR-10-C", *_CIFAR_C_FILES),
    ),
    "cifar100": Source(
        "https://zenodo.org/records/3555552/files/CIFAR-100-C.tar",
        "11f0ed0f1191edbf9fa23466ae6021d3",
        _in("CIFAR-100-C", *_CIFAR_C_FILES),
    ),
}
