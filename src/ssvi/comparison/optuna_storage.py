"""Optuna, which is an extra, and the storage of its studies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ssvi.errors import UserError

PATIENCE = 60
"""Seconds that a process waits for a SQLite file in which another one writes."""


OLDEST = 5
"""The first version whose trials have constraints."""


class TuningError(UserError, RuntimeError):
    """A search that cannot be made as asked: names the argument, the value and the remedy."""


def load_optuna() -> Any:
    """The module `optuna`, which prints warnings alone; an error that says how to install it where it is missing."""
    needed = f"`ssvi tune` needs Optuna {OLDEST} or later, which is not installed: pip install 'ssvi[tune]'"
    try:
        import optuna
    except ImportError as error:
        raise TuningError(needed) from error
    if int(optuna.__version__.partition(".")[0]) < OLDEST:
        raise TuningError(needed)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def default_storage(out: Path) -> str:
    """The address of a SQLite file in the folder of the run folders."""
    return f"sqlite:///{(out / 'study.db').as_posix()}"


def open_storage(address: str) -> Any:
    """The storage at this address, in SQLAlchemy's notation; several processes and machines may open it."""
    storages = load_optuna().storages
    waiting = {"connect_args": {"timeout": PATIENCE}} if address.startswith("sqlite:") else {}
    try:
        return storages.RDBStorage(address, engine_kwargs=waiting)
    except Exception as error:  # of SQLAlchemy, of the driver of the database, of the system
        lines = str(error).splitlines() or [type(error).__name__]
        raise TuningError(
            f"--storage={address} cannot be opened ({lines[0]}): give an address such as sqlite:///study.db or "
            "postgresql://user@host/name"
        ) from error
