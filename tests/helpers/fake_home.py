"""A home in which nothing is trained: each job ends as the test says, at its first look or when it is told to stop."""

from collections.abc import Sequence
from pathlib import Path

from ssvi.comparison import PlannedRun
from ssvi.training.run_lock import FolderLockedError

KILLED, WORKS = -9, None


class FakeJob:
    """Ends with a code; with `WORKS` it goes on until it is told to stop."""

    def __init__(self, code: int | None) -> None:
        self.returncode: int | None = None
        self.code, self.saved = code, False

    def poll(self) -> int | None:
        self.returncode = self.code
        return self.returncode

    def terminate(self) -> None:
        self.saved, self.code = True, 143

    def wait(self) -> int:
        return self.code


class FakeHome:
    """The n-th start of a run does the n-th thing of its plan: epochs that it trains, and the code of its end.

    A run without a plan finishes. "locked" as a thing means that somebody else has the folder.
    """

    capacity = 2

    def __init__(self, plans: dict[str, Sequence[tuple[int, int | None] | str]] | None = None) -> None:
        self.plans = {name: list(things) for name, things in (plans or {}).items()}
        self.started: list[str] = []
        self.evaluated: list[str] = []
        self.jobs: list[FakeJob] = []
        self.most_at_once = 0

    def start(self, run: PlannedRun, recipe: str, data_dir: Path | None) -> FakeJob:
        plan = self.plans.get(run.name)
        thing = plan.pop(0) if plan else (run.epochs, 0)
        if thing == "locked":
            raise FolderLockedError(f"{run.path}: another process trains in this folder")
        self.started.append(run.name)
        epochs, code = thing
        run.path.mkdir(parents=True, exist_ok=True)
        (run.path / "metrics.jsonl").write_text("{}\n" * epochs)
        if code == 0:
            (run.path / "model.safetensors").touch()
        return self._job(code)

    def evaluate(self, run: PlannedRun, words: Sequence[str], data_dir: Path | None) -> FakeJob:
        self.evaluated.append(run.name)
        plan = self.plans.get(run.name)
        return self._job(plan.pop(0)[1] if plan else 0)

    def close(self) -> None:
        pass

    def _job(self, code: int | None) -> FakeJob:
        self.jobs.append(FakeJob(code))
        self.most_at_once = max(self.most_at_once, sum(job.returncode is None for job in self.jobs))
        return self.jobs[-1]
