"""Completion in bash, zsh and fish by click's own mechanism, fast enough for a key press.

The commands themselves import torch, which takes seconds. So the outline of each command, its arguments and flags and what
they take, is a file that comes with the package. `make outlines` writes it anew after a change of the flags; a test compares
the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

OUTLINES = Path(__file__).with_name("outlines.json")

RUN_FILE = "recipe.toml"
"""A folder with this file is a run folder."""


@dataclass(frozen=True)
class Completer:
    """What can stand where a word begins: one of these names, a run folder, or else a file or folder."""

    names: tuple[str, ...] = ()
    runs: bool = False
    files: bool = False
    several: bool = False
    """Whether the word is a list of names with commas between them."""

    def __call__(self, ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words that begin so; where there is none, the shell is asked for files."""
        before, comma, last = incomplete.rpartition(",") if self.several else ("", "", incomplete)
        words = [before + comma + name for name in self.names if name.startswith(last)]
        words += _runs(incomplete) if self.runs else []
        if words or not (self.files or self.runs):
            return [CompletionItem(word) for word in words]
        return [CompletionItem(incomplete, type="file" if self.files else "dir")]


def _runs(incomplete: str) -> list[str]:
    """The run folders whose path begins so, two levels deep: `runs/mine` is found before `runs/` is typed."""
    folder, slash, name = incomplete.rpartition("/")
    top = Path(folder + slash)
    found = [*top.glob(f"*/{RUN_FILE}"), *top.glob(f"*/*/{RUN_FILE}")]
    words = [folder + slash + path.parent.relative_to(top).as_posix() for path in found]
    return sorted(word for word in words if word.startswith(folder + slash + name))


run_folders = Completer(runs=True)
files = Completer(files=True)


@dataclass(frozen=True)
class _Parameter:
    """An argument or an option, as the file of outlines has it."""

    words: tuple[str, ...]
    """The name of an argument, or the flags of an option."""
    nargs: int = 1
    is_flag: bool = False
    multiple: bool = False
    completer: Completer | None = None

    def build(self) -> click.Parameter:
        """The parameter of a command that is only completed."""
        if not self.words[0].startswith("-"):
            return click.Argument(self.words, nargs=self.nargs, shell_complete=self.completer)
        return click.Option(
            self.words, is_flag=self.is_flag, multiple=self.multiple, nargs=self.nargs, shell_complete=self.completer
        )


def outline(name: str) -> click.Command:
    """The command of this name without its function: enough for completion."""
    parameters = json.loads(OUTLINES.read_text(encoding="utf-8"))[name]
    return click.Command(name, params=[_read(parameter).build() for parameter in parameters])


def _read(values: dict[str, Any]) -> _Parameter:
    completer = values.get("completer")
    if completer is not None:
        completer = Completer(**(completer | {"names": tuple(completer.get("names", ()))}))
    return _Parameter(**(values | {"completer": completer}))


def outlines(commands: Iterable[click.Command]) -> str:
    """The file of outlines: JSON, with a line for each parameter."""
    blocks = []
    for command in commands:
        lines = ",\n".join(f"  {json.dumps(_plain(_outlined(parameter)))}" for parameter in command.params)
        blocks.append(f" {json.dumps(command.name)}: [\n{lines}\n ]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _outlined(parameter: click.Parameter) -> _Parameter:
    completer = parameter._custom_shell_complete  # click has no public name for it
    if completer is None and isinstance(parameter.type, click.Path):
        completer = files
    assert completer is None or isinstance(completer, Completer), f"{parameter.name}: take a Completer"
    if isinstance(parameter, click.Option):
        words = (*parameter.opts, *parameter.secondary_opts)
        return _Parameter(words, parameter.nargs, parameter.is_flag, parameter.multiple, completer)
    return _Parameter((str(parameter.name),), parameter.nargs, completer=completer)


def _plain(parameter: _Parameter) -> dict[str, Any]:
    """The fields that are not their defaults."""
    values = {key: value for key, value in asdict(parameter).items() if value != getattr(_Parameter, key, None)}
    if "completer" in values:
        values["completer"] = {key: value for key, value in values["completer"].items() if value}
    return values
