"""Each run is trained once, goes on where it was interrupted, and fails alone."""

import pytest
from grids import planned, train, trained

from ssvi import comparison
from ssvi.comparison import Outcome, processes


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr(processes, "command", lambda run, *more: pytest.fail(f"{run.name} is trained"))


@pytest.mark.usefixtures("no_training")
def test_what_is_finished_is_not_trained_again(tmp_path, capsys):
    runs = [trained(run) for run in planned(tmp_path, "ssvi")]
    assert train(runs) == Outcome()
    comparison.refuse_changes(planned(tmp_path, "ssvi", threads=2))  # another number of threads is the same run
    assert capsys.readouterr().err == ""


def test_what_was_interrupted_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    (run,) = planned(tmp_path, "ssvi", epochs=3)
    trained(run, epochs=1)
    first = run.folder.metrics()
    assert run.epochs_done == 1
    assert train([run]) == Outcome()
    assert run.folder.finished
    assert run.folder.metrics()[:1] == first
    assert run.epochs_done == len(run.folder.metrics()) == 3
    assert "all runs" in capsys.readouterr().err


def test_one_that_fails_leaves_the_others_alone(tmp_path, capsys):
    bad, good = planned(tmp_path, "ssvi", "vi", epochs=2)
    trained(bad, epochs=1)
    for file in bad.folder.checkpoints():
        file.write_bytes(b"damaged")
    outcome = train([bad, good], jobs=1)
    assert list(outcome.failures) == [bad.name]
    assert "no intact checkpoint" in outcome.failures[bad.name]
    assert good.folder.finished
    assert capsys.readouterr().err == f"{bad.name}: failed, 1 to go\n{good.name}: trained, 0 to go\n"
    failed, evaluated = comparison.evaluate_runs([bad, good], outcome.failures, samples=1)
    assert failed.reason == outcome.failures[bad.name]
    dense, sparse, costs = (table.rows for table in comparison.tables(comparison.rows([failed, evaluated])))
    assert dense[0][2] == sparse[0][2] == costs[0][1] == "failed"
    assert dense[0][-1] == "0 of 1"
    assert dense[1][2] == f"{evaluated.metrics['accuracy']:.2%}"
