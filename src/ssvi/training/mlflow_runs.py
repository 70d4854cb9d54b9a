"""The epochs of a run in MLflow: recipe, numbers of each epoch, results and tags."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from typing import Any

from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunFolder
from ssvi.training.trackers import Numbers, Tracker, keep_id, known_id, tags_of

EXPERIMENT = "ssvi"
LONGEST = 500
"""Characters of a parameter: as many as every version of MLflow takes."""


def mlflow_module() -> Any:
    """The package; an error where it is not installed."""
    try:
        import mlflow
    except ImportError as error:
        raise RecipeError("--mlflow needs MLflow: pip install 'ssvi[mlflow]'") from error
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # how it makes its database is not for the user
    return mlflow


def tracking_uri(place: str) -> str:
    """A URI as it is; a folder gets the file mlflow.db, which `mlflow ui --backend-store-uri sqlite:///...` shows.

    MLflow has given up its stores of plain files.
    """
    if "://" in place or place == "databricks":
        return place
    folder = Path(place).expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{folder / 'mlflow.db'}"


def begin_mlflow(folder: RunFolder, place: str) -> Tracker:
    """Log to the MLflow server, or to the folder, that `place` names; a resumed run goes on in its run there."""
    mlflow, uri = mlflow_module(), tracking_uri(place)
    client = mlflow.MlflowClient(tracking_uri=uri)
    metric = mlflow.entities.Metric
    run = _run(folder, client, mlflow.entities.Param, uri)

    def write(numbers: Numbers, step: int) -> None:
        now = round(1000 * time.time())
        client.log_batch(run, metrics=[metric(_plain(name), value, now, step) for name, value in numbers.items()])

    def end(result: Numbers | None) -> None:
        if result:
            write(result, 0)
        client.set_terminated(run, "KILLED" if result is None else "FINISHED")

    return Tracker(write, end)


def _run(folder: RunFolder, client: Any, param: Any, uri: str) -> str:
    """The id of the run in MLflow, which the folder knows, or a new one with the recipe as its parameters."""
    known, key = known_id(folder, "mlflow"), f"{uri} "
    if known is not None and known.startswith(key):
        run = known.removeprefix(key)
        client.update_run(run, status="RUNNING")
        return run
    experiment = client.get_experiment_by_name(EXPERIMENT)
    number = client.create_experiment(EXPERIMENT) if experiment is None else experiment.experiment_id
    run = str(client.create_run(number, run_name=folder.path.name, tags=tags_of(folder)).info.run_id)
    client.log_batch(run, params=[param(name, str(value)[:LONGEST]) for name, value in folder.recipe.values.items()])
    keep_id(folder, "mlflow", key + run)
    return run


def _plain(name: str) -> str:
    """A name with the characters that MLflow takes."""
    return re.sub(r"[^\w./ -]", "_", name)
