"""What was made for nothing is taken away: a start that fails leaves the disk as it was."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ssvi.training.errors import OccupiedError


@contextmanager
def nothing_left_behind(folder: Path) -> Iterator[None]:
    """Inside, the folder may be made and filled; after an error, what was not there before is gone, its parents too."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    before = set(folder.iterdir()) if folder.is_dir() else set()
    try:
        yield
    except OccupiedError:  # what is new was made by another process
        raise
    except BaseException:
        with suppress(OSError):  # the error that brought us here is the one to show
            _take_away(set(folder.iterdir()) - before)
            for place in missing:
                place.rmdir()
        raise


def _take_away(places: set[Path]) -> None:
    for place in places:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
