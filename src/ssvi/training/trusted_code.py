"""Which code of this machine a model file or a run folder may name: what the user has named herself, and nothing else.

A recipe may name a network `package.module:function` or a method `package.module`. To build it, that module is imported and
called, so a file from a stranger could choose what runs here. Therefore the names that the user trusts are kept in a file of
her own, outside of all run folders: those that she has trained with, and those of `ssvi trust NAME`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ssvi import methods
from ssvi.errors import UserError

FILE = "trusted-code.txt"
"""One name on each line."""

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")


class UntrustedCodeError(UserError, RuntimeError):
    """A file names code that the user has not agreed to run, or what she agrees to cannot be kept."""


def config_folder() -> Path:
    """$SSVI_CONFIG_DIR, or `ssvi` in the user's folder for settings."""
    if chosen := os.environ.get("SSVI_CONFIG_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming")) / "ssvi"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ssvi"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ssvi"


def trusted() -> set[str]:
    """The names that the user trusts."""
    try:
        return set((config_folder() / FILE).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return set()


def trust(*names: str) -> None:
    """Model files and run folders may name this code from now on: `package.module:function`, or the module of a method."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UntrustedCodeError(f"{name!r} is no name of code: give package.module:function, or package.module")
    file = config_folder() / FILE
    try:
        if new := sorted(set(names) - trusted()):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write("".join(f"{name}\n" for name in new))
    except OSError as error:
        raise UntrustedCodeError(
            f"{file} cannot be written: {error}. Set SSVI_CONFIG_DIR to a folder that can be"
        ) from error


def code_in(recipe: Mapping[str, Any]) -> list[str]:
    """The user's own code that the values of a recipe name: a network, a method."""
    model, method = str(recipe.get("model", "")), str(recipe.get("method", "ssvi"))
    return [model] * (":" in model) + [method] * (method not in methods.NAMES)


def check_trusted(where: object, names: Iterable[str]) -> None:
    """Refuse names that the user does not trust, before anything is imported."""
    if unknown := [name for name in names if name not in trusted()]:
        raise UntrustedCodeError(
            f"{where} names code that is not part of ssvi, {', '.join(map(_shown, unknown))}, and opening it would run that "
            f"code. If it is yours, say so once: `ssvi trust {' '.join(map(_shown, unknown))}`; in Python you can "
            "also give the plain network, ssvi.load(path, net=...)"
        )


def _shown(name: str) -> str:
    """For the message: a stranger chose it, so it is short and has no blanks, quotes or control characters."""
    return name if _NAME.fullmatch(name) and len(name) <= 100 else ascii(name[:100])
