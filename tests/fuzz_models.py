"""`make fuzz-models`: mutations of small model files. Each is a valid network or one clear line, within time and memory.

The numbers are seeded: mutation i of a seed is the same on every machine. Memory and time are limited by the system.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import torch
from mutated_models import mutated, write_bases

import ssvi
from ssvi.errors import UserError
from ssvi.nn.layers import posterior_uses

MEMORY = 3 << 30
"""Bytes that loading may take besides what torch has at the beginning."""
SECONDS = 20
"""For one file."""


class TooLongError(BaseException):
    """A file that is not done in time; no `except Exception` catches it."""


def limit_memory() -> None:
    """From now on the system refuses memory beyond the limit."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def check(net: torch.nn.Module) -> None:
    """A network that was loaded is valid."""
    for name, tensor in net.state_dict().items():
        assert not tensor.is_floating_point() or tensor.isfinite().all(), name
    for name, posterior in posterior_uses(net):
        index = posterior.index.long()
        assert (index[1:] > index[:-1]).all(), name
        assert not len(index) or (index[0] >= 0 and index[-1] < posterior.d), name
        assert posterior.sigma.isfinite().all(), name


def outcome(file: Path) -> str:
    """What became of a file; anything but a network or a `UserError` is an exception."""
    try:
        net = ssvi.load(file)
    except UserError as error:
        if len(str(error).splitlines()) != 1:
            raise RuntimeError(f"not one line: {error}") from error
        return type(error).__name__
    check(net)
    return "network"


def too_long(number: int, frame: object) -> None:
    """The handler of the alarm."""
    raise TooLongError


def run(count: int, seed: int) -> list[str]:
    """Load `count` mutations; what went wrong."""
    outcomes: Counter[str] = Counter()
    failures = []
    signal.signal(signal.SIGALRM, too_long)
    with tempfile.TemporaryDirectory() as folder:
        bases, file = [path.read_bytes() for path in write_bases(Path(folder))], Path(folder) / "mutated.safetensors"
        limit_memory()
        for i in range(count):
            rng = random.Random(f"{seed} {i}")
            file.write_bytes(mutated(bases[i % len(bases)], rng))
            signal.alarm(SECONDS)
            try:
                outcomes[outcome(file)] += 1
            except (Exception, TooLongError) as error:
                failures.append(f"mutation {i} of seed {seed}: {type(error).__name__}: {error}")
            signal.alarm(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{count} mutations: {', '.join(f'{n} {name}' for name, n in outcomes.most_common())}; peak {peak:.1f} GB")
    return failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = run(given.count, given.seed)
    sys.exit("\n".join([f"{len(found)} failures", *found[:50]]) if found else 0)
