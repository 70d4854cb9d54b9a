"""A Ray cluster of two nodes on this machine, a comparison on it, and the ways to disturb it. Linux: it reads /proc."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ssvi.comparison import PlannedRun

TOKEN = "a token that all nodes of the tests have"


def environment() -> dict[str, str]:
    """One thread each; and the token that the cluster asks for."""
    return {"OMP_NUM_THREADS": "1", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}


class TwoNodes:
    """A head without cores, which stays, and two nodes with a core each, which may go."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        self.nodes = [self.cluster.add_node(num_cpus=1) for _ in range(2)]

    @property
    def address(self) -> str:
        return self.cluster.address

    def lose_a_node(self) -> None:
        """All its processes are killed at once; another node takes its place."""
        self.cluster.remove_node(self.nodes.pop(0), allow_graceful=False)
        self.nodes.append(self.cluster.add_node(num_cpus=1))

    def close(self) -> None:
        self.cluster.shutdown()


class Comparison:
    """`ssvi compare` in a process of its own, which can be started again."""

    def __init__(self, words: list[str], log: Path, folder: Path | None = None) -> None:
        self.words, self.log, self.folder = words, log, folder
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ssvi", *self.words],
                stdout=subprocess.PIPE, stderr=errors, text=True, cwd=self.folder,
            )  # fmt: skip

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def end(self, number: signal.Signals) -> int:
        """Send a signal, and wait for the end. The return code."""
        self.process.send_signal(number)
        self.process.communicate(timeout=120)
        return self.process.returncode


def wait_for_epochs(runs: list[PlannedRun], more: int, comparison: Comparison) -> bool:
    """Wait until so many more epochs are trained in all runs together; False if the comparison ended before that."""
    first = sum(run.epochs_done for run in runs)
    while sum(run.epochs_done for run in runs) < first + more:
        if not comparison.running:
            return False
        time.sleep(0.1)
    return True


def trainings(out: Path | str) -> list[int]:
    """The processes that train in the folders of this comparison."""
    return [pid for pid, words in _commands() if "ssvi.cli.tethered train" in words and str(out) in words]


def worker_of(training: int) -> int:
    """The process of Ray that has started a training."""
    return int(Path(f"/proc/{training}/stat").read_text().rpartition(")")[2].split()[1])


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def _commands() -> list[tuple[int, str]]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append((int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:  # it has ended meanwhile
            continue
    return found
