"""Kills commands at random moments and at random writes, gives them again, and compares every file with an undisturbed one.

python tests/chaos.py --kills 100 --seed 0
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import torch  # noqa: F401  the forks have it then
from rich.progress import track
from robustness.scenarios import full_disk, full_disk_at_reading, reading, several, training

from ssvi import methods

READERS = (
    ("evaluate", "RUN", "--samples=2"),
    ("report", "RUN", "--out=RUN/report.html"),
    ("ood", "RUN", "--data=noise"),
)
OTHERS = 4
"""Kills of each other command."""
FULL_DISK = ("ssvi", "ensemble", "aeb", "snr-finetune")
"""Methods that are trained on a full disk: one network, several, states that are kept, two phases."""


def whole(draw: random.Random, folder: Path, kills: int) -> tuple[dict[str, int], int]:
    """Every method, the commands that read a run, those that train several; kills of each, and failed writes."""
    of_a_method = max(1, -(-(kills - OTHERS * (len(READERS) + 2)) // len(methods.NAMES)))
    hits = {
        method: training(draw, folder / method, method, of_a_method) for method in track(methods.NAMES, "trainings")
    }
    for words in READERS:
        shutil.copytree(folder / "ssvi" / "whole", folder / words[0] / "whole")
        hits[words[0]] = reading(draw, folder / words[0], words, OTHERS)
    for name in ("compare", "tune"):
        hits[name] = several(draw, folder / name, name, OTHERS)
    faults = sum(full_disk(folder / f"full-{method}", method) for method in track(FULL_DISK, "full disk"))
    for words in READERS:
        shutil.copytree(folder / "full-ssvi" / "whole", folder / f"full-{words[0]}" / "whole")
        faults += full_disk_at_reading(folder / f"full-{words[0]}", words)
    return hits, faults


def short(draw: random.Random, folder: Path, kills: int) -> tuple[dict[str, int], int]:
    """One method, one command that reads its run, and some writes on a full disk."""
    hits = {"ssvi": training(draw, folder / "ssvi", "ssvi", kills)}
    shutil.copytree(folder / "ssvi" / "whole", folder / "evaluate" / "whole")
    hits["evaluate"] = reading(draw, folder / "evaluate", READERS[0], 1)
    return hits, full_disk(folder / "full", "ssvi", every=3)


def main() -> None:
    """An assertion fails if a file differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="one method, one reader, and some writes on a full disk")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ssvi-chaos-"))  # it stays if something is found
    hits, faults = (short if asked.short else whole)(random.Random(asked.seed), folder, asked.kills)
    shutil.rmtree(folder)
    print(", ".join(f"{name} {count}" for name, count in hits.items()))
    print(f"{sum(hits.values())} kills hit a command in progress; every file is as without them")
    print(f"{faults} writes on a full or failing disk: no more than one clear line each, and the next call goes on")


if __name__ == "__main__":
    main()
