"""A Ray cluster as a home of runs (`pip install 'ssvi[ray]'`): a worker for each task, on whichever node has room.

The folders of the runs are on a file system that all nodes share, under the same path, or have copies at an address, and
each node has folders of its own. Ray places the workers and
notices when one is lost; that a lost task goes on is the engine's, as for local processes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssvi.comparison.grid import PlannedRun
from ssvi.comparison.homes import Needs
from ssvi.comparison.jobs import Job
from ssvi.comparison.mirrored import FetchingJob
from ssvi.comparison.ray_worker import Worker
from ssvi.data.memory import in_gigabytes
from ssvi.errors import UserError
from ssvi.training.mirror import Mirror

LOST = -signal.SIGKILL
"""The return code of a task whose worker or node was lost."""


class ClusterError(UserError, RuntimeError):
    """A cluster that cannot be used as asked."""


class RayJob:
    """A task on the cluster: `result` is the answer of its worker, whenever that comes."""

    def __init__(self, ray: Any, worker: Any, begun: Any, result: Any, log: Path) -> None:
        self.returncode: int | None = None
        self._ray, self._worker, self._begun, self._result, self._log = ray, worker, begun, result, log
        self._stopped = False

    def poll(self) -> int | None:
        """The return code, or None while it works or waits for room."""
        if self.returncode is None and self._is_there(self._result):
            self.wait()
        return self.returncode

    def terminate(self) -> None:
        """Let it save its state and end; one that waits for room does not begin."""
        self._stopped = True
        if self._is_there(self._begun):
            self._worker.stop.remote()
        else:
            self._ray.kill(self._worker)

    def wait(self) -> int:
        """Wait for its end. The return code."""
        if self.returncode is None:
            self.returncode = self._end()
            self._ray.kill(self._worker)  # what it needed is free for the next task
        return self.returncode

    def _is_there(self, answer: Any) -> bool:
        return bool(self._ray.wait([answer], timeout=0)[0])

    def _end(self) -> int:
        errors = self._ray.exceptions
        try:
            return self._ray.get(self._result)
        except (
            errors.RayTaskError
        ) as error:  # of the worker's own code; the log is where the engine looks for the reason
            self._note(str(error.cause))
            return 1
        except errors.RayError as error:
            self._note(f"lost: {error}")
            return LOST

    def _note(self, text: str) -> None:
        if not self._stopped:
            with self._log.open("a") as log:
                log.write(f"{text.strip()}\n")


class RayCluster:
    """A Ray cluster: the one at `address`, else the one of this machine, else a new one that ends with this program."""

    def __init__(self, needs: Needs, address: str | None = None) -> None:
        self.needs, self._ray = needs, _connected(address)
        options: dict[str, Any] = {"num_cpus": needs.cores, "max_restarts": 0, "max_concurrency": 2}
        if needs.memory:
            options["memory"] = needs.memory
        self._worker = self._ray.remote(**options)(Worker)
        if not self.capacity:
            raise ClusterError(self._too_much())

    @property
    def capacity(self) -> int:
        """How many tasks there is room for on all nodes that are alive now."""
        return sum(self.needs.fit(cores, memory) for cores, memory in self._nodes())

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> Job:
        """Start or continue the run as soon as a node has room for it."""
        run.path.mkdir(parents=True, exist_ok=True)
        worker, begun = self._new_worker()
        result = worker.train.remote(_whole(run), _whole_recipe(recipe), _whole_path(data_dir))
        return self._job(run, RayJob(self._ray, worker, begun, result, run.path / "stderr.log"))

    def evaluate(self, run: PlannedRun, words: Sequence[str], data_dir: Path | None) -> Job:
        """Evaluate the finished run as soon as a node has room for it."""
        worker, begun = self._new_worker()
        result = worker.evaluate.remote(_whole(run), tuple(words), _whole_path(data_dir))
        return self._job(run, RayJob(self._ray, worker, begun, result, run.path / "evaluation.log"))

    def close(self) -> None:
        """Leave the cluster, so that Ray prints nothing more."""
        self._ray.shutdown()

    def _new_worker(self) -> tuple[Any, Any]:
        """A worker, and its first answer, which comes when it has begun."""
        worker = self._worker.remote()
        return worker, worker.begin.remote()

    def _job(self, run: PlannedRun, job: RayJob) -> Job:
        return FetchingJob(job, Mirror(run.mirror, run.path)) if run.mirror else job

    def _nodes(self) -> list[tuple[float, float]]:
        """Cores and bytes of each node that is alive."""
        alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return [(resources.get("CPU", 0), resources.get("memory", 0)) for resources in alive]

    def _too_much(self) -> str:
        nodes = ", ".join(f"{cores:g} cores and {in_gigabytes(memory)}" for cores, memory in self._nodes())
        asked = f"--cores={self.needs.cores}" + (f" --ram={self.needs.memory}" if self.needs.memory else "")
        return f"{asked}: no node of the cluster has room for such a run (nodes: {nodes}); ask for less"


def _connected(address: str | None) -> Any:
    """Ray, connected to the cluster; an error that says what to do where that is not possible."""
    try:
        import ray
    except ImportError as error:
        raise ClusterError("--engine ray needs Ray: pip install 'ssvi[ray]'") from error
    try:
        with _own_signals():
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = f"--address={address}" if address else "the cluster of this machine"
        raise ClusterError(
            f"{where} does not answer: {error}. Start one with `ray start --head`, and give all machines the same token "
            "(docs/cluster.md)"
        ) from error
    return ray


@contextmanager
def _own_signals() -> Iterator[None]:
    """Inside, Ray may install its handler of SIGTERM, which ends the program at once; afterwards ours is back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _whole(run: PlannedRun) -> PlannedRun:
    """The run with the whole path of its folder: a worker has another working folder."""
    return replace(run, path=run.path.absolute())


def _whole_path(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()


def _whole_recipe(recipe: str) -> str:
    """A recipe is a name, or the path of a file, which must be there on all nodes."""
    return str(Path(recipe).absolute()) if Path(recipe).is_file() else recipe
