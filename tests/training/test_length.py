"""The length of a training whose epochs are not given."""

from ssvi.training import recipe_files
from ssvi.training.length import default_epochs
from ssvi.training.start import start


def test_default_epochs_make_about_4000_steps():
    assert default_epochs(20) == 200
    assert default_epochs(1) == 2000, "at most"
    assert default_epochs(1000) == 20, "at least"


def test_no_epochs_are_as_many_as_make_4000_steps_and_the_run_knows_them(tmp_path):
    recipe = recipe_files.load("digits").replace(epochs=0, examples=320, batch_size=32, width=2, density=0.5)
    run = start(recipe, tmp_path / "run")
    assert (
        run.recipe.epochs == run.folder.recipe.epochs == run.recipe.all_epochs == default_epochs(len(run.batches)) > 400
    )
