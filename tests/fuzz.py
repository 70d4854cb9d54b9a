"""Random recipes, data and damaged run folders, given to the command line; writes what it found.

python tests/fuzz.py --cases 1000 --seed 0

Every case must end in a finished run with finite numbers and exact sparsity, or in one clear line and an exit code other
than 0; never in a traceback, a hang, a folder without a run, or numbers from a damaged file.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import torch  # noqa: F401  the forks have it then
from rich.progress import track
from robustness.fuzz_run import Finding, prepare, run_case

import ssvi.cli.train

del ssvi


def main() -> int:
    """Run the cases; the exit code is 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case, to repeat one")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ssvi-fuzz-"))
    originals = prepare(folder / "originals")
    ends: Counter[str] = Counter()
    found: list[Finding] = []
    for number in track(range(asked.first, asked.first + asked.cases), "cases"):
        finding = run_case(asked.seed, number, folder / str(number), originals)
        ends["finished" if finding.outcome.code == 0 else "refused"] += 1
        if finding.wrong:
            found.append(finding)
            print(finding, flush=True)
        else:
            shutil.rmtree(folder / str(number))
    how = f"{ends['finished']} finished, {ends['refused']} refused, {len(found)} wrong"
    print(f"{asked.cases} cases with seed {asked.seed}: {how}")
    if not found:
        shutil.rmtree(folder)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
