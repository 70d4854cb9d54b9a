"""The examples run, do what they say, and stay short."""

import importlib.util
from pathlib import Path

import pytest

from ssvi import methods
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.training import recipe_files
from ssvi.training.recipe import RecipeError
from ssvi.training.run import finish
from ssvi.training.start import resume, start

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str):
    """The module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_short_and_tested_here():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {"own_loop", "pretrained", "new_criterion", "new_method"}
    assert all(len(path.read_text().splitlines()) < 60 for path in EXAMPLES.glob("*.py"))


def test_own_loop(capsys):
    evaluation = example("own_loop").main()
    assert evaluation.accuracy > 0.9
    assert "density 10.00%" in capsys.readouterr().out


def test_pretrained():
    plain, converted, tuned = example("pretrained").main()
    assert plain > 0.94
    assert 0.8 < converted < tuned, "the largest fifth of the trained weights has kept most of what was learnt"
    assert tuned > 0.9


def test_new_criterion():
    evaluations = example("new_criterion").main()
    assert all(evaluation.accuracy > 0.88 for evaluation in evaluations.values())
    assert evaluations["snr_abs"].nll != evaluations["lower_bound"].nll, "the criterion was used"


@pytest.fixture
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def test_new_method_trains_resumes_and_is_evaluated_like_the_others(on_path, tmp_path):
    recipe = recipe_files.load("digits", "new_method").replace(epochs=4, width=8, density=0.3)
    run = start(recipe, tmp_path / "run")
    run.train(lambda numbers: run.stop("a test") if numbers.step == 30 else None)
    run, _ = resume(tmp_path / "run")
    run.train()
    finish(run)
    evaluation = evaluate_run(FinishedRun(tmp_path / "run"), samples=2)
    assert evaluation.metrics["accuracy"].value > 0.5
    assert evaluation.cost.unit == "weight"
    assert evaluation.cost.sparsity == pytest.approx(0.7, abs=1e-3)


def test_a_module_that_lacks_members_is_refused_by_name(tmp_path, monkeypatch):
    (tmp_path / "half_a_method.py").write_text("from ssvi.methods.static import ABOUT, Settings, network\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RecipeError, match="lacks epochs, loss, optimizer, after_step"):
        methods.get("half_a_method")
    with pytest.raises(RecipeError, match=r"method='no.such' cannot be imported"):
        methods.get("no.such")


def test_the_page_on_new_methods_shows_the_example():
    page = (EXAMPLES.parent / "docs" / "new-method.md").read_text()
    assert (EXAMPLES / "new_method.py").read_text() in page
