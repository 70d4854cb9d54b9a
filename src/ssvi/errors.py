"""What all errors have in common whose message is written for the user."""

from __future__ import annotations


class UserError(Exception):
    """An error that the user can mend: its message names the argument, the value and the remedy.

    The command line prints the message alone, without a traceback. Every other exception is a bug of ours, and leaves a
    file with its traceback. A new class of such errors derives from this one and from the built-in exception that a caller
    of the library expects, for example `class DataError(UserError, RuntimeError)`.

    This module imports nothing, so that the command line knows the class without loading torch.
    """
