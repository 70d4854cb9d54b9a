"""The networks of zoo/, which are too large for the package: checksums, recipes, and that each loads and predicts."""

from pathlib import Path

import pytest
import torch

import ssvi
from ssvi import zoo
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.results import RunEvaluation
from ssvi.training import recipe_files

FOLDER = Path(__file__).parent.parent.parent / "zoo"
NETWORKS = sorted(path.parent for path in FOLDER.glob("*/model.safetensors"))

pytestmark = pytest.mark.skipif(not NETWORKS, reason="the folder zoo/ is in the repository, not in the source package")


def test_every_file_has_the_checksum_that_is_written():
    lines = [line.split("  ", 1) for line in (FOLDER / "SHA256SUMS").read_text().splitlines()]
    assert {FOLDER / name for _, name in lines} == {file for folder in NETWORKS for file in folder.iterdir()}
    for digits, name in lines:
        assert zoo.checksum(FOLDER / name) == digits, name


@pytest.mark.parametrize("folder", NETWORKS, ids=lambda folder: folder.name)
def test_a_network_is_that_of_its_recipe_and_predicts(folder):
    run = FinishedRun(folder)
    assert run.recipe.replace(threads=0) == recipe_files.load(folder.name, run.recipe.method).replace(threads=0)
    assert run.read(RunEvaluation, "evaluation.json") is not None, "of another network"
    bnn = ssvi.from_pretrained(folder)
    sparse = [layer for _, layer in ssvi.layers(bnn) if layer.posterior.s < layer.posterior.d]
    d, s = (sum(getattr(layer.posterior, size) for layer in sparse) for size in ("d", "s"))
    assert s == round(run.recipe.values["density"] * d)
    probs = ssvi.predict(bnn.eval(), torch.zeros(2, 3, 32, 32), samples=2)
    torch.testing.assert_close(probs.sum(1), torch.ones(2))
