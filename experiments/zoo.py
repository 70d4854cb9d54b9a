"""Put finished runs into the zoo of the package (src/ssvi/zoo).

    ssvi train digits --out out/runs/digits
    python experiments/zoo.py digits out/runs/digits

`make zoo` does both for the networks that come with the package. A network of more than 1 MB does not come with it: it goes
to zoo/NAME of the repository, and from there to the Hub.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ssvi import hub, zoo
from ssvi.errors import UserError

MOST_BYTES = 1_000_000
LARGE = Path(__file__).parent.parent / "zoo"
"""The home of networks that are too large for the package."""
KEPT = ("recipe.toml", "metrics.jsonl", "result.json", "threshold.json", "evaluation.json", "ood-*.json")
"""Of the files of a run. Without machine.json, which has the paths of a user."""


@click.command()
@click.argument("name")
@click.argument("run", type=click.Path(path_type=Path, exists=True))
def main(name: str, run: Path) -> None:
    """Add the finished RUN to the zoo under the NAME of its recipe. It is evaluated, if it was not.

    $SSVI_DATA_DIR is the folder of its data set, if that is not where `ssvi` downloads to.
    """
    try:
        with TemporaryDirectory() as folder:
            target = place(pack(run, Path(folder) / name))
    except UserError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{name}: {target}, {size(target):,} bytes")
    if target.parent != zoo.FOLDER:
        click.echo(f'too large for the package; to the Hub: ssvi.push_to_hub("{run}", "OWNER/{name}")')


def pack(run: Path, target: Path) -> Path:
    """What the zoo keeps of a run: the network, the card, and the files above."""
    hub.save_pretrained(run, target)
    (target / "report.html").unlink()  # README.md has the same numbers, without the pictures
    for pattern in KEPT:
        for file in run.glob(pattern):
            shutil.copyfile(file, target / file.name)
    return target


def place(packed: Path) -> Path:
    """Move a packed network into the package, or, if it is too large, beside it; returns where it is."""
    home = zoo.FOLDER if size(packed) <= MOST_BYTES else LARGE
    home.mkdir(parents=True, exist_ok=True)
    target = home / packed.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(packed, target)
    write_checksums(home)
    return target


def write_checksums(home: Path) -> None:
    """The checksum of every file of every network in the folder, as `sha256sum` would write it."""
    files = sorted(file for folder in home.iterdir() if (folder / zoo.MODEL).exists() for file in folder.iterdir())
    lines = [f"{zoo.checksum(file)}  {file.relative_to(home).as_posix()}\n" for file in files]
    (home / zoo.SUMS).write_text("".join(lines))


def size(folder: Path) -> int:
    """The bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir())


if __name__ == "__main__":
    main()
