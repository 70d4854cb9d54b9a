"""What can be wrong with a run folder: an error where it cannot be used as asked, a warning where it can."""

from __future__ import annotations

from ssvi.errors import UserError


class RunError(UserError, RuntimeError):
    """A run folder that cannot be used as asked: says what is wrong and what to do."""


class OccupiedError(RunError):
    """The folder is that of another run, or of another process: nothing in it is ours."""


class RunFolderWarning(UserWarning):
    """A file of a run folder was not used, or could not be written; the command goes on without it."""
