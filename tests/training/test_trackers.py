"""MLflow and Weights & Biases get recipe, epochs, results and tags; what they cannot do stops no training.

Most tests record what a fake module is told. Those at the end use the packages, where they are installed.
"""

import json
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import run_command
from small_runs import finished

import ssvi
from ssvi.training.mlflow_runs import begin_mlflow, tracking_uri
from ssvi.training.progress import EpochLine, Validation
from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunFolder
from ssvi.training.trackers import Tracker, Trackers, numbers_of
from ssvi.training.wandb_runs import begin_wandb

FAST = ("train", "digits", "--width", 4, "--examples", 100, "--threads", 1)
LINE = EpochLine(
    epoch=3, step=40, loss=1.5, nll=1.25, kl=7.0, beta=1.0, rate=0.1, lr=0.2, moved=12, images_per_second=9.0, seconds=2.0,
    validation=Validation(0.5, 1.0, None), sigma_drift={"0": 0.25},
)  # fmt: skip


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    return RunFolder(shutil.copytree(finished(), tmp_path / "run"))


def test_the_numbers_of_an_epoch():
    numbers = numbers_of(LINE)
    assert (numbers["loss"], numbers["validation/accuracy"], numbers["sigma_drift/0"]) == (1.5, 0.5, 0.25)
    assert not numbers.keys() & {"epoch", "step", "validation/ece", "validation/rmse", "iou"}, "what was not computed"


# ---- what cannot be done ---------------------------------------------------------------------------------------------


def failing_at(what: str, told: list[str]) -> Tracker:
    def act(name: str) -> None:
        told.append(name)
        if name == what:
            raise OSError("the disk\nis full")

    return Tracker(lambda numbers, step: act("log"), lambda result: act("end"))


@pytest.mark.parametrize(("what", "told"), [("log", ["log"]), ("end", ["log", "log", "end"])])
def test_a_tracker_that_fails_is_left_out_with_one_line(what, told, folder):
    lines, of_one, of_other = [], [], []
    trackers = Trackers(
        folder, {"one": lambda f: failing_at(what, of_one), "other": lambda f: failing_at("", of_other)}, lines.append
    )
    trackers.epoch(LINE)
    trackers.epoch(LINE)
    trackers.end({"accuracy": 1.0})
    trackers.end(None)
    assert (of_one, of_other) == (told, ["log", "log", "end"])
    assert lines == ["one gets no more numbers, the training goes on without it (OSError: the disk is full)"]


def test_a_tracker_that_cannot_begin_is_left_out_and_its_warnings_are_not_shown(folder):
    def begin(folder: RunFolder) -> Tracker:
        warnings.warn("of the package", stacklevel=1)
        raise ConnectionError("no server")

    lines: list[str] = []
    trackers = Trackers(folder, {"it": begin}, lines.append)
    trackers.epoch(LINE)
    assert lines == ["it gets no more numbers, the training goes on without it (ConnectionError: no server)"]


@pytest.mark.parametrize(("module", "words"), [("mlflow", ("--mlflow", "store")), ("wandb", ("--wandb",))])
def test_a_missing_package_is_found_before_the_run(module, words, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=rf"--{module} needs .*: pip install 'ssvi\[{module}\]'"):
        run_command(*FAST, *words, "--out", "run")
    assert list(tmp_path.iterdir()) == []


def test_a_training_ends_though_its_tracker_fails(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace())
    said = run_command(*FAST, "--epochs", 1, "--wandb", "--out", tmp_path / "run")
    assert RunFolder(tmp_path / "run").finished
    assert said.count("warning: Weights & Biases gets no more numbers") == 1


# ---- what MLflow is told ---------------------------------------------------------------------------------------------


class FakeClient:
    """A server of MLflow that remembers; there is one for each URI."""

    servers: dict = {}  # noqa: RUF012 - emptied by the fixture

    def __init__(self, tracking_uri: str) -> None:
        self.runs = self.servers.setdefault(tracking_uri, {})

    def get_experiment_by_name(self, name: str):
        return SimpleNamespace(experiment_id="7") if self.runs else None

    def create_experiment(self, name: str) -> str:
        return "7"

    def create_run(self, experiment: str, run_name: str, tags: dict):
        number = f"run{len(self.runs)}"
        self.runs[number] = {"experiment": experiment, "name": run_name, "tags": tags, "metrics": [], "params": {}}
        return SimpleNamespace(info=SimpleNamespace(run_id=number))

    def log_batch(self, run: str, metrics=(), params=()) -> None:
        self.runs[run]["metrics"] += [(m.key, m.value, m.step) for m in metrics]
        for param in params:
            assert param.key not in self.runs[run]["params"], "MLflow refuses to change a parameter"
            self.runs[run]["params"][param.key] = param.value

    def update_run(self, run: str, status: str) -> None:
        self.runs[run]["status"] = status

    set_terminated = update_run


@pytest.fixture
def servers(monkeypatch) -> dict:
    entities = SimpleNamespace(
        Metric=lambda key, value, timestamp, step: SimpleNamespace(key=key, value=value, step=step),
        Param=lambda key, value: SimpleNamespace(key=key, value=value),
    )
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=FakeClient, entities=entities))
    monkeypatch.setattr(FakeClient, "servers", {})
    return FakeClient.servers


def test_mlflow_gets_recipe_tags_epochs_and_results(folder, servers):
    tracker = begin_mlflow(folder, "http://server")
    tracker.log({"loss": 1.5, "odd[0]": 2.0}, 40)
    tracker.end({"test/accuracy": 0.5})
    run = servers["http://server"]["run0"]
    assert run["tags"] == {"ssvi": ssvi.__version__, "method": "ssvi", "data": "digits", "model": "lenet"}
    assert run["params"] == {name: str(value) for name, value in folder.recipe.values.items()}
    assert run["metrics"] == [("loss", 1.5, 40), ("odd_0_", 2.0, 40), ("test/accuracy", 0.5, 0)]
    assert (run["name"], run["experiment"], run["status"]) == ("run", "7", "FINISHED")


def test_a_resumed_run_goes_on_in_its_mlflow_run_and_another_server_gets_a_new_one(folder, servers):
    begin_mlflow(folder, "http://server").end(None)
    assert servers["http://server"]["run0"]["status"] == "KILLED"
    begin_mlflow(folder, "http://server").log({"loss": 1.0}, 2)
    assert list(servers["http://server"]) == ["run0"]
    assert servers["http://server"]["run0"]["status"] == "RUNNING"
    begin_mlflow(folder, "http://other")
    assert list(servers["http://other"]) == ["run0"]


def test_a_folder_is_a_database_in_it_and_a_uri_stays(tmp_path):
    assert tracking_uri(str(tmp_path / "a" / "b")) == f"sqlite:///{tmp_path}/a/b/mlflow.db"
    assert (tmp_path / "a" / "b").is_dir()
    assert [tracking_uri(place) for place in ("http://x:5000", "databricks")] == ["http://x:5000", "databricks"]


# ---- what Weights & Biases is told -----------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch) -> list:
    """What each run of a fake wandb was told."""
    runs: list = []

    def init(**settings):
        run = SimpleNamespace(id=settings["id"], settings=settings, logged=[], summary={}, code=None)
        run.log = lambda numbers, step: run.logged.append((numbers, step))
        run.finish = lambda exit_code: setattr(run, "code", exit_code)
        runs.append(run)
        return run

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, Settings=lambda **settings: settings))
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return runs


def test_wandb_gets_recipe_tags_epochs_and_results_offline(folder, told):
    tracker = begin_wandb(folder)
    tracker.log({"loss": 1.5}, 40)
    tracker.end({"test/accuracy": 0.5})
    (run,) = told
    assert (run.logged, run.summary, run.code) == ([({"loss": 1.5}, 40)], {"test/accuracy": 0.5}, 0)
    assert run.settings["config"] == folder.recipe.values | {"ssvi": ssvi.__version__}
    assert (run.settings["mode"], run.settings["dir"], run.settings["project"]) == ("offline", folder.path, "ssvi")
    assert {"ssvi", "digits", "lenet", ssvi.__version__} == set(run.settings["tags"])


def test_a_resumed_run_has_the_same_id_and_the_environment_chooses_the_mode(folder, told, monkeypatch):
    begin_wandb(folder).end(None)
    monkeypatch.setenv("WANDB_MODE", "online")
    begin_wandb(folder)
    first, second = told
    assert first.id == second.id
    assert (first.code, second.settings["mode"], second.settings["resume"]) == (1, "online", "allow")


# ---- the packages themselves -----------------------------------------------------------------------------------------


def trained_and_resumed(folder: Path, *words: object) -> None:
    """A training of one epoch, and a second epoch by resuming it."""
    run_command(*FAST, "--epochs", 1, *words, "--out", folder)
    run_command("train", "--resume", folder, "--epochs", 2, *words)


def test_a_local_mlflow_folder_has_one_run_with_both_parts(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="needs ssvi[mlflow]")
    pytest.importorskip("sqlalchemy", reason="needs ssvi[mlflow]")
    trained_and_resumed(tmp_path / "run", "--mlflow", tmp_path / "store")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(tracking_uri=tracking_uri(str(tmp_path / "store")))
        (run,) = client.search_runs([client.get_experiment_by_name("ssvi").experiment_id])
        losses = client.get_metric_history(run.info.run_id, "loss")
    lines = RunFolder(tmp_path / "run").metrics()
    assert [(m.step, m.value) for m in losses] == [(line.step, pytest.approx(line.loss)) for line in lines]
    assert run.data.metrics["test/nll"] == pytest.approx(RunFolder(tmp_path / "run").result["nll"])
    assert (run.data.params["density"], run.data.tags["method"], run.info.status) == ("0.05", "ssvi", "FINISHED")


def test_the_offline_files_of_wandb_are_of_one_run(tmp_path):
    pytest.importorskip("wandb", reason="needs ssvi[wandb]")
    trained_and_resumed(tmp_path / "run", "--wandb")
    files = sorted((tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2
    assert {file.name for file in files} == {
        f"run-{json.loads((tmp_path / 'run' / 'tracking.json').read_text())['wandb']}.wandb"
    }
    for file in files:
        content = file.read_bytes()
        assert all(word in content for word in (b"validation/nll", b"density", b"test/accuracy"))
