"""Workers, trainings, a node and the driver are killed: no run is lost or trained twice, and the tables are the same."""

import getpass
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import cluster_faults
import pytest
from cluster_faults import Comparison, TwoNodes, kill, trainings, wait_for_epochs, worker_of
from grids import planned

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(3600),
    # Ray reads its variables when it is imported, so the fixture below has to come first
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: run `make test-cluster`"),
]

EPOCHS, SEEDS = 40, (0, 1)
WORDS = ["compare", "digits", "--methods", "ssvi", "--seeds", "0,1", "--epochs", str(EPOCHS), "--width", "4"]
WORDS += ["--threads", "1", "--samples", "2", "--json"]
NOT_OF_THE_NETWORK = {"run", "training_seconds", "peak_memory_bytes"}
FAULTS = ("worker", "training", "node", "driver", "Ctrl-C")


@pytest.fixture(scope="module", autouse=True)
def variables():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster_faults.environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def cluster(variables):
    nodes = TwoNodes()
    yield nodes
    nodes.close()


@pytest.fixture(scope="module")
def undisturbed(variables, tmp_path_factory):
    """The same comparison by local processes."""
    words = [*WORDS, "--out", str(tmp_path_factory.mktemp("local"))]
    done = subprocess.run([sys.executable, "-m", "ssvi", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(told: str) -> list[dict]:
    """What every run has come to, without its time, memory and folder."""
    return [{k: v for k, v in run.items() if k not in NOT_OF_THE_NETWORK} for run in json.loads(told)["runs"]]


def epochs_trained(folder: Path) -> Counter:
    """How often each epoch was trained to its end, and how often the run; every process of the run writes to this log."""
    lines = [json.loads(line) for line in (folder / "stdout.log").read_text().splitlines()]
    return Counter("end" if "result" in line else line["epoch"] for line in lines)


def disturb(fault: str, cluster: TwoNodes, comparison: Comparison, out: Path) -> None:
    training = random.choice(trainings(out))
    if fault == "worker":
        kill(worker_of(training))
    elif fault == "training":
        kill(training)
    elif fault == "node":
        cluster.lose_a_node()
    elif fault == "driver":
        assert comparison.end(signal.SIGKILL) == -signal.SIGKILL
    else:
        assert comparison.end(signal.SIGINT) == 130


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_killed_goes_on_and_the_tables_are_the_same(seed, cluster, undisturbed, tmp_path):
    random.seed(seed)
    runs = planned(tmp_path, "ssvi", seeds=(0, 1), epochs=EPOCHS)
    words = [*WORDS, "--out", str(tmp_path), "--engine", "ray", "--address", cluster.address]
    comparison = Comparison(words, tmp_path / "driver.log")
    done = []
    for fault in random.sample(FAULTS, len(FAULTS)):
        if wait_for_epochs(runs, random.randint(2, 8), comparison) and trainings(tmp_path):
            disturb(fault, cluster, comparison, tmp_path)
            done.append(fault)
        if not comparison.running:
            comparison.start()
    told, _ = comparison.process.communicate()
    log = (tmp_path / "driver.log").read_text()
    assert comparison.process.returncode == 0, log
    print(f"seed {seed}: {done}, {comparison.starts} drivers, {log.count('started again')} restarts")
    assert len(done) >= 4
    assert numbers(told) == numbers(undisturbed)
    for run in runs:
        counts = epochs_trained(run.path)
        assert max(counts.values()) == 1, f"{run.name}: {counts}"
        assert sum(counts.values()) >= EPOCHS - len(done)  # a kill may come between an epoch and its line


def test_without_a_shared_folder_the_runs_go_on_from_their_copies_at_an_address(cluster, undisturbed, tmp_path):
    """The nodes have folders of their own, and a worker is killed."""
    runs = planned(tmp_path / "compare" / "digits", "ssvi", seeds=(0, 1), epochs=EPOCHS)
    words = [*WORDS, "--out", f"file://{tmp_path}/store", "--engine", "ray", "--address", cluster.address]
    comparison = Comparison(words, tmp_path / "driver.log", tmp_path)
    assert wait_for_epochs(runs, 3, comparison)
    kill(worker_of(trainings(f"ssvi-{getpass.getuser()}")[0]))
    told, _ = comparison.process.communicate()
    log = (tmp_path / "driver.log").read_text()
    assert comparison.process.returncode == 0, log
    assert "started again" in log
    assert numbers(told) == numbers(undisturbed)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--cores", "1000"], "--cores=1000: no node"), (["--ram", "9000GB"], "--ram=9000000000000: no node")],
)
def test_a_run_that_fits_nowhere_is_refused(words, message, cluster, tmp_path):
    command = [*WORDS, "--out", tmp_path / "out", "--engine", "ray", "--address", cluster.address, *words]
    done = subprocess.run([sys.executable, "-m", "ssvi", *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
