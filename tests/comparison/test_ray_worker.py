"""What a node of a cluster does for a run, without Ray: the same process, the lock of the folder, and the signal to stop."""

import subprocess
import sys
import threading

import pytest
from grids import planned
from lock_holder import HOLD_LOCK

from ssvi.comparison import Needs, processes, ray_worker
from ssvi.comparison.ray_cluster import ClusterError, RayCluster
from ssvi.comparison.ray_worker import STOPPED, Worker
from ssvi.training.errors import RunError
from ssvi.training.run_lock import FolderLockedError

PRINT_AND_END = [sys.executable, "-c", "print('trained')"]


@pytest.fixture
def run(tmp_path):
    (only,) = planned(tmp_path, "ssvi")
    only.path.mkdir()
    return only


@pytest.fixture
def lock_holder(run):
    with subprocess.Popen([sys.executable, "-c", HOLD_LOCK, run.path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        yield holder
        holder.kill()


def test_a_worker_returns_the_exit_code_of_the_process(run, monkeypatch):
    monkeypatch.setattr(processes, "command", lambda *any_run: [sys.executable, "-c", "raise SystemExit(3)"])
    assert Worker().train(run, "digits", None) == 3


def test_a_folder_that_the_node_does_not_have_is_named(tmp_path):
    (run,) = planned(tmp_path / "not shared", "ssvi")
    with pytest.raises(RunError, match="choose with --out a folder that all nodes of the cluster share"):
        Worker().train(run, "digits", None)


def test_it_waits_until_the_lock_of_a_lost_node_is_given_back(run, lock_holder, monkeypatch):
    monkeypatch.setattr(processes, "command", lambda *any_run: PRINT_AND_END)
    threading.Timer(1.0, lock_holder.kill).start()
    assert Worker().train(run, "digits", None) == 0
    assert (run.path / "stdout.log").read_text() == "trained\n"


def test_it_does_not_wait_for_ever(run, lock_holder, monkeypatch):
    monkeypatch.setattr(ray_worker, "PATIENCE", 0.0)
    monkeypatch.setattr(processes, "command", lambda *any_run: pytest.fail("it is trained"))
    with pytest.raises(FolderLockedError, match=f"process {lock_holder.pid}"):
        Worker().train(run, "digits", None)


def test_stopped_while_it_waits_it_does_not_begin(run, lock_holder, monkeypatch):
    monkeypatch.setattr(processes, "command", lambda *any_run: pytest.fail("it is trained"))
    worker = Worker()
    threading.Timer(0.2, worker.stop).start()
    assert worker.train(run, "digits", None) == STOPPED


def test_stopped_while_it_trains_the_process_gets_the_signal(run, monkeypatch):
    program = "import signal, time; signal.signal(signal.SIGTERM, lambda *any: exit(7)); print('ready', flush=True)\n"
    monkeypatch.setattr(processes, "command", lambda *any_run: [sys.executable, "-c", f"{program}time.sleep(60)"])
    worker, log = Worker(), run.path / "stdout.log"

    def stop_when_ready():
        while not log.is_file() or not log.read_text():
            pass
        worker.stop()

    threading.Thread(target=stop_when_ready).start()
    assert worker.train(run, "digits", None) == 7


def test_without_ray_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"pip install 'ssvi\[ray\]'"):
        RayCluster(Needs())
