"""`ssvi doctor --bundle`: one archive for a bug report, with no image, no weight and no path of the user in it."""

from __future__ import annotations

import json
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ssvi.cli.crash import newest_crashes
from ssvi.cli.private import paths_among, scrubber
from ssvi.data import NAMES
from ssvi.training.run_folder import RunError

OF_A_RUN = ("recipe.toml", "machine.json", "metrics.jsonl")
"""The files of a run folder that go into the archive."""

PATHS = ("data", "test", "pretrained", "model", "method")
"""Settings of a recipe that may be paths, or names of modules of the user."""

CRASHES = 5


def write_bundle(findings: Mapping[str, object], run: Path | None, out: Path | None) -> Path:
    """Write the archive, and return where it is. `findings` is what `ssvi doctor` tells."""
    target = out or Path(time.strftime("ssvi-bundle-%Y%m%d-%H%M%S.zip"))
    texts = {"doctor.json": json.dumps(findings, indent=1), **_crashes(), **({} if run is None else _of_run(run))}
    private = [] if run is None else [*private_paths(run, texts), str(run), str(run.resolve())]
    clean = scrubber(private)
    try:
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(name, clean(text))
    except FileExistsError as error:
        raise RunError(f"{target} exists: choose another name with --out") from error
    except OSError as error:
        raise RunError(f"{target} cannot be written ({error.strerror}): choose another file with --out") from error
    return target


def _crashes() -> dict[str, str]:
    return {f"crashes/{path.name}": path.read_text(errors="replace") for path in newest_crashes(CRASHES)}


def _of_run(run: Path) -> dict[str, str]:
    """The texts of a run folder; a damaged one may lack some of them."""
    found = {f"run/{name}": run / name for name in OF_A_RUN if (run / name).is_file()}
    if not found:
        raise RunError(f"{run} is not a run folder: it has none of {', '.join(OF_A_RUN)}")
    return {name: path.read_text(errors="replace") for name, path in found.items()}


def private_paths(run: Path, texts: Mapping[str, str]) -> Iterator[str]:
    """What the recipe and the command of a run name as paths. Names of our data sets, networks and methods are none."""
    try:
        recipe = tomllib.loads(texts.get("run/recipe.toml", ""))
    except tomllib.TOMLDecodeError:
        recipe = {}
    for value in (str(recipe.get(name, "")) for name in PATHS):
        if value not in NAMES and any(mark in value for mark in "/\\.:"):
            yield value
    try:
        command = json.loads(texts.get("run/machine.json", "{}"))["command"]
        yield from paths_among(list(map(str, command)))
    except (ValueError, KeyError, TypeError):
        return
