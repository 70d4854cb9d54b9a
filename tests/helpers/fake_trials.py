"""A home in which runs train at once: an epoch at each look, with the validation NLL that a test wants."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ssvi import comparison
from ssvi.comparison import Budget, Claims, PlannedRun, TrialBars, Workplace, open_trial, tuning
from ssvi.comparison.studies import MethodStudy
from ssvi.comparison.trials import Trial
from ssvi.training import recipe_files
from ssvi.training.progress import EpochLine, Validation
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import write_recipe

EPOCHS = 2
SECONDS = 10.0
"""Of each epoch."""

Loss = Callable[[Recipe], float]


class FakeJob:
    """A run that trains an epoch at each look."""

    def __init__(self, run: PlannedRun, loss: Loss) -> None:
        self.run, self.loss, self.returncode = run, loss, None

    def poll(self) -> int | None:
        if self.returncode is None:
            self._train()
        return self.returncode

    def _train(self) -> None:
        epoch, nll = self.run.epochs_done, self.loss(self.run.recipe)
        numbers = dict.fromkeys(("step", "loss", "nll", "kl", "beta", "rate", "lr", "moved", "images_per_second"), 0)
        self.run.folder.log.append(
            EpochLine(epoch=epoch, seconds=SECONDS, validation=Validation(0.5, nll, 0.1), **numbers)
        )
        if epoch + 1 == self.run.epochs:
            (self.run.path / "model.safetensors").touch()
            self.returncode = 0

    def terminate(self) -> None:
        self.returncode = 143

    def wait(self) -> int:
        return self.returncode


@dataclass
class FakeHome:
    """Starts such runs, and remembers their names."""

    loss: Loss
    started: list[str] = field(default_factory=list)

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> FakeJob:
        self.started.append(run.name)
        run.path.mkdir(exist_ok=True)
        if not run.begun:
            write_recipe(run.path, run.recipe)
        (run.path / "stderr.log").touch()
        return FakeJob(run, self.loss)


def studies_in(out: Path, *methods: str, fixed: tuple[str, ...] = (), **changes: object) -> list[MethodStudy]:
    """The studies of these methods on small digits, in a storage beside their runs."""
    recipes = [
        recipe_files.load("digits", method).replace(**({"epochs": EPOCHS, "width": 4} | changes)) for method in methods
    ]
    claims = Claims(out)
    return tuning.open_studies(comparison.default_storage(out), "digits", recipes, fixed, claims)


def search(
    out: Path,
    home: FakeHome,
    *methods: str,
    trials: int | None = 8,
    seconds: float = float("inf"),
    jobs: int = 2,
    **changes: object,
) -> tuple[list[MethodStudy], str]:
    """Search as the command does; the studies, and the signal that ended it."""
    studies, budget = studies_in(out, *methods, **changes), Budget(trials, seconds)
    with TrialBars() as bars:
        signal = comparison.search(studies, budget, Claims(out), Workplace("digits", None, jobs, home), bars)
    return studies, signal


def evaluated_by(loss: Loss, sparsity: float = 0.9) -> Callable[..., Trial]:
    """What takes the place of `evaluate_trial`, since there is no network."""

    def evaluate_trial(run: PlannedRun, number: int, settings: dict[str, object], *more: object) -> Trial:
        lines = run.folder.log.read()
        seconds = sum(line.seconds for line in lines)
        return Trial(run.recipe.method, number, settings, sparsity, loss(run.recipe), 0.5, 10, seconds)

    return evaluate_trial


def quick(monkeypatch, loss: Loss, sparsity: float = 0.9) -> FakeHome:
    """No pauses, and evaluation by the loss."""
    monkeypatch.setattr("ssvi.comparison.searching.PAUSE", 0.0)
    monkeypatch.setattr("ssvi.comparison.searching.PATIENCE", 0.0)
    monkeypatch.setattr(open_trial, "evaluate_trial", evaluated_by(loss, sparsity))
    return FakeHome(loss)
