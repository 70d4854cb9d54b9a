"""From a name or a path to a data set."""

from __future__ import annotations

import difflib
from pathlib import Path

from ssvi.data.catalogue import CORRUPTED, KNOWN, Known, Layout
from ssvi.data.dataset import DataSet
from ssvi.data.download import default_folder, obtain
from ssvi.data.embedded import digits
from ssvi.data.readers.arrays import read_npz
from ssvi.data.readers.folder import Size, read_folder
from ssvi.data.split import DataError, empty

NAMES = ("digits", *KNOWN)


def load(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    download: bool = True,
    *,
    test_only: bool = False,
    size: int | Size | None = None,
) -> DataSet:
    """A data set by its name (one of `NAMES`), or a user's own: a `.npz` file or a folder of class folders of images.

    Files of named data sets are looked for in `data_dir` (default: `default_folder()`), and downloaded to it if missing
    and `download` allows it. `test_only` neither needs nor reads the training files of a named data set. `size`, or
    (height, width), is what the images of a folder are brought to.
    """
    path = Path(name_or_path).expanduser()
    if path.is_dir() and name_or_path not in NAMES:
        return read_folder(path, (size, size) if isinstance(size, int) else size)
    if size is not None:
        raise DataError(f"size={size} is for folders of images; those of {name_or_path} have their own")
    if name_or_path == "digits":
        return digits()
    if name_or_path in KNOWN:
        return _load_known(str(name_or_path), Path(data_dir or default_folder()).expanduser(), download, test_only)
    if path.is_file():
        return read_npz(path)
    near = difflib.get_close_matches(str(name_or_path), NAMES, 1)
    hint = f"did you mean {near[0]}?" if near else f"the names are {', '.join(NAMES)}"
    raise DataError(f"{name_or_path} is neither a known data set nor an existing .npz file or folder of images: {hint}")


def cifar_c_folder(name: str, data_dir: str | Path | None = None, download: bool = False) -> Path | None:
    """The folder of the published corruptions of `name`, cifar10 or cifar100, for `cifar_c`; None if there is none.

    They are downloaded only on demand: 2.9 GB each.
    """
    source = CORRUPTED.get(name)
    if source is None:
        return None
    folder = Path(data_dir or default_folder()).expanduser()
    if download:
        obtain([source], folder)
    return None if source.missing(folder) else (folder / source.files[0]).parent


def _load_known(name: str, folder: Path, download: bool, test_only: bool) -> DataSet:
    known = KNOWN[name]
    layout = _present(known, folder, test_only)
    if layout is None:
        layout = known.layouts[0]
        missing = [file for file in layout.files(test_only=test_only) if not (folder / file).is_file()]
        sources = [source for source in known.sources if set(missing) & set(source.files)]
        if not download:
            raise DataError(
                f"{name} is not in {folder}: no {missing[0]}. Allow the download, name the folder "
                f"that has it, or put there what {', '.join(source.url for source in sources)} gives"
            )
        obtain(sources, folder)
    test = layout.read([folder / file for file in layout.test])
    train = empty(test) if test_only else layout.read([folder / file for file in layout.train])
    return DataSet(name, known.classes, train, test)


def _present(known: Known, folder: Path, test_only: bool) -> Layout | None:
    """The first layout of which all files are there."""
    for layout in known.layouts:
        if all((folder / file).is_file() for file in layout.files(test_only=test_only)):
            return layout
    return None
