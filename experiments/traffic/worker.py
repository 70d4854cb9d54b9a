"""One of the two processes that are measured: torchrun starts this file, and the first process prints a line of JSON.

    torchrun --standalone --nproc-per-node 2 experiments/traffic/worker.py RECIPE.toml STEPS [DATA_DIR]

The bytes are those that arrive at the sockets of the process. In an all-reduce of two processes each receives as many
bytes as the message has, and sends as many.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

sys.path.insert(0, str(Path(__file__).parents[1]))

from ssvi.inference import distributed
from ssvi.training import recipe_files
from ssvi.training.run import Run
from ssvi.training.start import start
from traffic.messages import Traffic
from traffic.sockets import received

COLLECTIVES = ("all_reduce", "broadcast", "all_gather")


class Counter:
    """Counts the collective operations of this process."""

    def __init__(self) -> None:
        self.calls = 0
        for name in COLLECTIVES:
            setattr(dist, name, self._counted(getattr(dist, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return call(*args, **kwargs)

        return counted

    def now(self) -> Traffic:
        """So far. All processes wait for each other first, so that nothing is under way."""
        dist.barrier()
        return Traffic(received(), self.calls)


def measure(run: Run, steps: int, counter: Counter) -> Traffic:
    """What so many steps send, without the waiting for each other."""
    run.net.train()
    batches = list(islice(run.batches.epoch(0), steps + 1))
    run.step(*batches[0])  # DistributedDataParallel chooses its messages in the first step
    before = counter.now()
    waiting = counter.now().minus(before)
    before = counter.now()
    for x, y in batches[1:]:
        run.step(x, y)
        distributed.any_of(False)  # as `Run.train` asks after every step whether a process was told to stop
    return counter.now().minus(before).minus(waiting)


def main() -> None:
    """Measure one recipe."""
    recipe, steps = recipe_files.load(sys.argv[1]), int(sys.argv[2])
    distributed.start(recipe.device)
    counter = Counter()
    with TemporaryDirectory() as folder:
        run = start(recipe, Path(folder) / "run", sys.argv[3] if len(sys.argv) > 3 else None)
        run.forward.register_comm_hook(None, allreduce_hook)  # type: ignore[attr-defined] # so that Counter sees them
        measured = measure(run, steps, counter)
        mean = distributed.mean_(torch.tensor([measured.bytes, measured.messages], dtype=torch.float64)).tolist()
    if distributed.rank() == 0:
        print(json.dumps({"bytes": mean[0], "messages": mean[1]}), flush=True)
    distributed.leave()


if __name__ == "__main__":
    main()
