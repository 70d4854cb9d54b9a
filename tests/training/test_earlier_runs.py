"""Run folders that an earlier version wrote open, evaluate and resume."""

import json
import shutil
from pathlib import Path

import pytest

import ssvi
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.training.run import finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume

FOLDERS = Path(__file__).parent / "earlier_runs"
FINISHED = [path.name for path in sorted(FOLDERS.iterdir()) if (path / "model.safetensors").exists()]
INTERRUPTED = [path.name for path in sorted(FOLDERS.iterdir()) if (path / "expected.json").exists()]


def test_there_are_some():
    assert (len(FINISHED), len(INTERRUPTED)) == (3, 3)


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_run_opens_and_evaluates(name, tmp_path):
    """Where no thetas are kept with statistics of BatchNorm they are other ones: they come in pairs now."""
    folder = shutil.copytree(FOLDERS / name, tmp_path / name)
    run, result = FinishedRun(folder), json.loads((folder / "result.json").read_text())
    assert ssvi.evaluate(run.net, run.batches(run.test), 5).nll == pytest.approx(
        result["nll"], rel=1e-2 if name == "vd" else 1e-4
    )
    evaluation = evaluate_run(run, samples=2)
    assert evaluation.cost.training_flops > 0
    assert len(RunFolder(folder).metrics()) == run.recipe.all_epochs


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupted_run_goes_on_to_the_result_of_the_whole_one(name, tmp_path):
    """Another processor rounds differently, so the numbers are near and not equal; on one machine they are equal."""
    folder = shutil.copytree(FOLDERS / name, tmp_path / name)
    run, damaged = resume(folder)
    assert (run.progress.step, damaged) == (47, [])
    run.train()
    expected = json.loads((folder / "expected.json").read_text())
    evaluation = finish(run)
    assert evaluation.nll == pytest.approx(expected["nll"], rel=0.1)
    assert evaluation.accuracy == pytest.approx(expected["accuracy"], abs=0.05)
