"""Take what is private out of a text that a user may publish: her paths, her name and that of her machine.

Known folders are replaced first, the longest first: those of Python, of this package and of the user, and the words of the
command line that are paths. Then what follows a folder of the user goes, and every absolute path that is left. Paths below
the folders of Python and of this package stay: a traceback needs them.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_OF_HERS = ("<cwd>", "<home>", "<temp>", "<path>")
_ROOT = rf"(?:{'|'.join(_OF_HERS)}|(?<![\w<>.])(?:file:)?(?:/|~/|[A-Za-z]:\\|\\\\))"
_PATH = re.compile(rf"""(?<="){_ROOT}[^"\n]*|(?<='){_ROOT}[^'\n]*|{_ROOT}[^\s"'<>|:;,()\[\]{{}}]*""")
"""A path below a folder of the user, or an absolute path of POSIX or Windows: up to the quote that ends it or, without
quotes, up to a character that ends a word."""


class Scrubber:
    """Replaces private values by placeholders such as <home>."""

    def __init__(self, paths: Mapping[str, str], names: Mapping[str, str]) -> None:
        longest_first = sorted(filter(None, paths), key=len, reverse=True)
        self._paths = [(value, paths[value]) for value in longest_first]
        self._names = [
            (re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", re.IGNORECASE), placeholder)
            for name, placeholder in sorted(names.items(), key=lambda item: len(item[0]), reverse=True)
        ]

    def __call__(self, text: str) -> str:
        """The text without what is private."""
        for value, placeholder in self._paths:
            for written in {value, value.replace("\\", "\\\\"), value.encode("unicode_escape").decode()}:
                text = text.replace(written, placeholder)
        text = _PATH.sub(_shortened, text)
        for name, placeholder in self._names:
            text = name.sub(placeholder, text)
        return text


def _shortened(found: re.Match[str]) -> str:
    """The folder of the user alone, since the names of her files are private too. A lone slash is no path."""
    path = found.group()
    if path in ("/", "~/"):
        return path
    return next((folder for folder in _OF_HERS if path.startswith(folder)), "<path>")


def scrubber(private_paths: Iterable[str] = ()) -> Scrubber:
    """A scrubber for this user on this machine; `private_paths` are further paths that must not appear.

    A path without a folder, such as `homes`, is replaced where it is a whole word.
    """
    given = set(private_paths)
    plain = {path for path in given if not _has_folder(path)}
    return Scrubber(_folders() | dict.fromkeys(given - plain, "<path>"), _names() | dict.fromkeys(plain, "<path>"))


def paths_among(argv: Sequence[str]) -> list[str]:
    """The words of a command line that are paths, or values of flags that are. The name of the command is none."""
    command = next((word for word in argv[1:] if not word.startswith("-")), "")
    values = [word.partition("=")[2] if word.startswith("-") else word for word in argv]
    return [value for value in values if value != command and _is_path(value)]


def _is_path(value: str) -> bool:
    return bool(value) and (_has_folder(value) or os.path.lexists(value) or Path(value).suffix[1:].isalpha())


def _has_folder(value: str) -> bool:
    return "/" in value or "\\" in value


def _folders() -> dict[str, str]:
    """Folders and their placeholders; where one is several of them, the first counts."""
    places = [(str(Path(__file__).parents[1]), "<ssvi>"), (os.getcwd(), "<cwd>")]
    places += [(path, "<python>") for path in (*site.getsitepackages(), *sysconfig.get_paths().values(), sys.prefix)]
    places += [(str(Path.home()), "<home>"), (os.path.expanduser("~"), "<home>"), (tempfile.gettempdir(), "<temp>")]
    both = [(form, placeholder) for path, placeholder in places for form in (path, os.path.realpath(path))]
    return {path: placeholder for path, placeholder in reversed(both) if len(path) > 1}


def _names() -> dict[str, str]:
    host = platform.node()
    users = {_user(), Path.home().name, *(os.environ.get(key, "") for key in ("USER", "LOGNAME", "USERNAME"))}
    return {name: "<user>" for name in users if name} | {
        name: "<host>" for name in (host, host.partition(".")[0]) if name
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in containers
        return ""
