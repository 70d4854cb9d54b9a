"""Lost tasks are started again, but not for ever; a locked folder is waited for; a signal lets all save.

Nothing is trained here: the jobs are made up.
"""

import os
import signal

import pytest
from fake_home import KILLED, WORKS, FakeHome
from grids import planned

from ssvi import comparison
from ssvi.comparison import Bars, EvaluationBar, LocalProcesses, Needs, Outcome, engine


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(engine, "PAUSE", 0.0)


def train(home, runs, jobs=2):
    with Bars(runs) as bars:
        return comparison.train_missing(runs, "digits", jobs, None, bars, home)


def names(runs):
    return [run.name for run in runs]


def test_a_lost_task_is_started_again_and_the_others_do_not_notice(tmp_path, capsys):
    lost, other = runs = planned(tmp_path, "ssvi", "vi", epochs=5)
    home = FakeHome({lost.name: [(2, KILLED), (3, KILLED), (5, 0)]})
    assert train(home, runs) == Outcome()
    assert home.started == [lost.name, other.name, lost.name, lost.name]
    told = capsys.readouterr().err
    assert f"{lost.name}: lost after 2 of 5 epochs, and started again" in told
    assert told.count(": trained") == 2


def test_one_that_is_always_lost_at_the_same_place_fails(tmp_path):
    lost, other = runs = planned(tmp_path, "ssvi", "vi", epochs=5)
    home = FakeHome({lost.name: [(2, KILLED)] * 20})
    outcome = train(home, runs)
    assert home.started.count(lost.name) == engine.RESTARTS + 1
    assert list(outcome.failures) == [lost.name]
    assert "lost (exit code -9)" in outcome.failures[lost.name]
    assert other.folder.finished


def test_a_finished_epoch_sets_the_count_back(tmp_path):
    (run,) = planned(tmp_path, "ssvi", epochs=20)
    losses = [(epochs, KILLED) for epochs in range(1, 11)]
    home = FakeHome({run.name: [*losses, (20, 0)]})
    assert train(home, [run]) == Outcome()
    assert len(home.started) == 11 > engine.RESTARTS + 1


def test_an_error_of_the_run_itself_is_not_tried_again(tmp_path):
    (run,) = planned(tmp_path, "ssvi", epochs=5)
    home = FakeHome({run.name: [(2, 1)]})
    outcome = train(home, [run])
    assert home.started == [run.name]
    assert outcome.failures == {run.name: "exit code 1, and nothing in stderr.log"}


def test_one_that_was_killed_after_its_end_is_not_trained_twice(tmp_path):
    (run,) = planned(tmp_path, "ssvi", epochs=5)
    home = FakeHome({run.name: [(5, KILLED)]})
    start = home.start

    def start_and_finish(*arguments):
        job = start(*arguments)
        (run.path / "model.safetensors").touch()
        return job

    home.start = start_and_finish
    assert train(home, [run]) == Outcome()
    assert home.started == [run.name]


def test_a_locked_folder_is_waited_for(tmp_path):
    locked, free = runs = planned(tmp_path, "ssvi", "vi")
    home = FakeHome({locked.name: ["locked", "locked"]})
    assert train(home, runs) == Outcome()
    assert home.started == [free.name, locked.name]


def test_but_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 0.0)
    locked, free = runs = planned(tmp_path, "ssvi", "vi")
    home = FakeHome({locked.name: ["locked"] * 100})
    outcome = train(home, runs)
    assert "another process trains" in outcome.failures[locked.name]
    assert home.started == [free.name]


def test_no_more_than_jobs_work_at_the_same_time(tmp_path):
    home = FakeHome()
    runs = planned(tmp_path, "ssvi", seeds=range(7))
    assert train(home, runs, jobs=3) == Outcome()
    assert home.most_at_once == 3
    assert sorted(home.started) == sorted(names(runs))


def test_a_signal_lets_all_tasks_save_and_starts_no_more(tmp_path, monkeypatch):
    runs = planned(tmp_path, "ssvi", seeds=range(4))
    home = FakeHome({run.name: [(0, WORKS)] for run in runs})
    looks = iter([False] * 3 + [True])
    sleep = lambda seconds: os.kill(os.getpid(), signal.SIGTERM) if next(looks) else None  # noqa: E731
    monkeypatch.setattr(engine.time, "sleep", sleep)
    outcome = train(home, runs)
    assert outcome == Outcome(interrupted="SIGTERM")
    assert home.started == names(runs[:2])
    assert all(job.saved for job in home.jobs)


def test_evaluations_are_tasks_too_and_a_lost_one_is_started_again(tmp_path):
    lost, broken, good = runs = planned(tmp_path, "ssvi", "vi", "rigl")
    home = FakeHome({lost.name: [(0, KILLED), (0, 0)], broken.name: [(0, 1)]})
    with EvaluationBar(runs) as bar:
        outcome = comparison.evaluate_missing(runs, ("evaluate", "--samples", "5"), 2, None, bar, home)
    assert sorted(home.evaluated) == sorted([lost.name, lost.name, broken.name, good.name])
    assert outcome == Outcome({broken.name: "the evaluation ended with exit code 1"})


@pytest.mark.parametrize(
    ("cores", "memory", "tasks"), [(1, 0, 8), (3, 0, 2), (1, 10, 3), (2, 4, 4), (9, 0, 0), (1, 33, 0)]
)
def test_how_many_tasks_fit(cores, memory, tasks):
    assert Needs(cores, memory).fit(8, 32) == tasks


def test_this_machine_has_room_for_one_at_least():
    assert LocalProcesses(Needs(cores=10_000)).capacity == 1
    assert LocalProcesses(Needs(memory=10**18)).capacity == 1
    assert LocalProcesses().capacity == os.cpu_count()
