"""The data sets that we know by name: their files, who reads them and where they are published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssvi.data.download import Source
from ssvi.data.names import CIFAR10, CIFAR100, CORRUPTIONS, DIGITS, FASHION
from ssvi.data.readers import cifar
from ssvi.data.readers.idx import read_idx
from ssvi.data.readers.svhn import read_svhn
from ssvi.data.split import Split


@dataclass(frozen=True)
class Layout:
    """One of the forms in which a data set may lie in the data folder: its files, and their reader."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[[Sequence[Path]], Split]

    def files(self, *, test_only: bool = False) -> tuple[str, ...]:
        """The files that must be there."""
        return self.test if test_only else self.train + self.test


@dataclass(frozen=True)
class Known:
    """A data set with a name. Its sources give the files of its first layout."""

    classes: tuple[str, ...]
    layouts: tuple[Layout, ...]
    sources: tuple[Source, ...]


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def _idx(classes: tuple[str, ...], folder: str, base: str, *md5: str) -> Known:
    """Four files: images and labels to train, images and labels to test; compressed as published, or not."""
    plain = _in(
        folder, *(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
    )
    packed = tuple(f"{file}.gz" for file in plain)
    layouts = tuple(Layout(files[:2], files[2:], read_idx) for files in (packed, plain))
    return Known(
        classes, layouts, tuple(Source(base + Path(f).name, m, (f,)) for f, m in zip(packed, md5, strict=True))
    )


_TORONTO = "https://www.cs.toronto.edu/~kriz/"
_STANFORD = "http://ufldl.stanford.edu/housenumbers/"  # no https there; the checksum guards the way
_BATCHES = [f"data_batch_{i}" for i in range(1, 6)]

_CIFAR10 = Layout(
    _in("cifar-10-batches-bin", *(f"{batch}.bin" for batch in _BATCHES)),
    _in("cifar-10-batches-bin", "test_batch.bin"),
    cifar.cifar10_binary,
)
_CIFAR10_PYTHON = Layout(
    _in("cifar-10-batches-py", *_BATCHES), _in("cifar-10-batches-py", "test_batch"), cifar.cifar10_python
)
_CIFAR100 = Layout(_in("cifar-100-binary", "train.bin"), _in("cifar-100-binary", "test.bin"), cifar.cifar100_binary)
_CIFAR100_PYTHON = Layout(_in("cifar-100-python", "train"), _in("cifar-100-python", "test"), cifar.cifar100_python)
_SVHN = Layout(_in("svhn", "train_32x32.mat"), _in("svhn", "test_32x32.mat"), read_svhn)

KNOWN = {
    "cifar10": Known(
        CIFAR10,
        (_CIFAR10, _CIFAR10_PYTHON),
        (Source(_TORONTO + "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", _CIFAR10.files()),),
    ),
    "cifar100": Known(
        CIFAR100,
        (_CIFAR100, _CIFAR100_PYTHON),
        (Source(_TORONTO + "cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", _CIFAR100.files()),),
    ),
    "svhn": Known(
        DIGITS,
        (_SVHN,),
        (
            Source(_STANFORD + "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", _SVHN.train),
            Source(_STANFORD + "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", _SVHN.test),
        ),
    ),
    "mnist": _idx(
        DIGITS,
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx(
        FASHION,
        "fashion-mnist",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
}

CORRUPTED = {
    "cifar10": Source(
        "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
        "56bf5dcef84df0e2308c6dcbcbbd8499",
        _in("CIFAR-10-C", "labels.npy", *(f"{name}.npy" for name in CORRUPTIONS)),
    ),
    "cifar100": Source(
        "https://zenodo.org/records/3555552/files/CIFAR-100-C.tar",
        "11f0ed0f1191edbf9fa23466ae6021d3",
        _in("CIFAR-100-C", "labels.npy", *(f"{name}.npy" for name in CORRUPTIONS)),
    ),
}
