"""The networks that an ensemble has kept: without one of them its mixture would be another."""

import pytest

from ssvi.training import recipe_files
from ssvi.training.run_folder import RunError
from ssvi.training.start import resume, start


def test_a_run_whose_kept_network_is_gone_does_not_go_on(tmp_path):
    recipe = recipe_files.load("digits", "ensemble").replace(epochs=1, width=2, examples=60, members=3)
    run = start(recipe, tmp_path / "run")
    run.train(on_epoch=lambda line: run.stop("enough") if line.epoch == 1 else None)
    run.folder.lock.free()
    (tmp_path / "run" / "states" / "epoch-000000.safetensors").unlink()
    with pytest.raises(RunError, match=r"epoch-000000.safetensors is gone: .* Start anew in another folder"):
        resume(tmp_path / "run")
