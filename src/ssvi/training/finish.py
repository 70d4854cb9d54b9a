"""The end of a run: its model file, and its numbers on the test set."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from ssvi.inference.evaluate import Evaluation, evaluate
from ssvi.training import model_file
from ssvi.training.recipe import RecipeError
from ssvi.training.run import Run


def finish(run: Run) -> Evaluation | None:
    """Write the model file and result.json; the evaluation is None where there are no test images."""
    recipe, data = run.recipe, run.data
    torch.manual_seed(recipe.seed)
    try:
        net = run.method.product(run.training)
    except ValueError as error:  # a density or threshold that leaves nothing of a layer
        raise RecipeError(str(error)) from error
    model_file.save(net, run.folder.path / "model.safetensors", recipe=recipe.values, about=_about(run))
    test = data.batches(data.test, 500, shuffle=False)
    evaluation = evaluate(net, test, recipe.samples) if len(data.test) else None
    run.folder.write_json("result.json", asdict(evaluation) if evaluation else {})
    return evaluation


def _about(run: Run) -> dict[str, Any]:
    """What one must know of the data to use the network."""
    _, channels, size, _ = run.data.train.x.shape
    return {
        "classes": list(run.data.classes), "channels": channels, "size": size, "mean": run.data.mean,
        "std": run.data.std,
    }  # fmt: skip
