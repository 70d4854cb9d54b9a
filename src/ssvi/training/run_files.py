"""Which files a run folder has: what each holds, who writes it, and in which formats it can be read.

A file of a newer format is refused, with the advice to use the ssvi that wrote it. A file of an older one is read as
before, or, if it is a result, computed again. docs/training.md has the same table, and a test compares it with this one
and with what a run leaves behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssvi.training.model_header import READABLE

CHECKPOINTS = (1,)
"""The formats of a checkpoint; the last one is written."""

TEXTS = (1,)
"""The formats of recipe.toml, machine.json, table.json, metrics.jsonl, iou.jsonl and result.json."""

RESULTS = (2,)
"""The formats of the results of evaluations; raised when their keys change, so that old ones are computed again."""


@dataclass(frozen=True)
class RunFile:
    """A kind of file in a run folder."""

    name: str
    """Its name, or a pattern of names."""
    holds: str
    writers: str
    """The commands that write it."""
    formats: tuple[int, ...] = ()
    """The formats that can be read; none where no command reads the file."""
    of_trained_network: bool = False
    """Whether it is about the trained network, so that it is removed when the run is trained longer."""


TRAIN = "`train`"

TRACKING = "tracking.json"
"""Where MLflow and Weights & Biases know the run."""

MEMBERS = "members.json"
"""In a run that `ssvi ensemble` has made, which cannot be trained on."""

RUN_FILES = (
    RunFile("recipe.toml", "the resolved recipe: all settings", TRAIN, TEXTS),
    RunFile("machine.json", "versions, processor, threads, the command, number of processes", TRAIN, TEXTS),
    RunFile(MEMBERS, "of an ensemble that was made of runs: their paths and seeds", "`ensemble`", TEXTS),
    RunFile("table.json", "of a run on a table: what was learnt of its columns", TRAIN, TEXTS),
    RunFile("metrics.jsonl", "a line per epoch", TRAIN, TEXTS),
    RunFile("iou.jsonl", "a line per update of gamma: whether the criteria agree", "`train --record-iou`", TEXTS),
    RunFile("checkpoints/step-*.pt", "the newest two training states, each with the recipe", TRAIN, CHECKPOINTS),
    RunFile("states/epoch-*.safetensors", "the networks that an ensemble or a sampler keeps", TRAIN, READABLE),
    RunFile("model.safetensors", "the trained network, at the end", TRAIN, READABLE, True),
    RunFile("result.json", "its numbers on the test set, at the end", TRAIN, TEXTS, True),
    RunFile("threshold.json", 'the entropy above which it says "don\'t know"', "`train`, `predict`", RESULTS, True),
    RunFile("threshold-error.json", "the same for a promised error rate", "`predict`", RESULTS, True),
    RunFile("evaluation.json", "quality with intervals, and costs", "`evaluate`, `report`, `compare`", RESULTS, True),
    RunFile("ood-*.json", "how well it recognises images of other data", "`ood`, `report`", RESULTS, True),
    RunFile("corruption.json", "quality under corruptions", "`corrupt`", RESULTS, True),
    RunFile("validation.json", "quality on the validation images", "`tune`", RESULTS, True),
    RunFile("pruned.json", "of a trial that was given up: after how many epochs, and its NLL then", "`tune`"),
    RunFile("report.html", "the report of the run", "`report`", (), True),
    RunFile("report.md", "the same as a model card", "`report`", (), True),
    RunFile("tensorboard/*", "the log for TensorBoard", "`train --tensorboard`"),
    RunFile("wandb/*", "the log for Weights & Biases", "`train --wandb`"),
    RunFile(TRACKING, "under which ids MLflow and Weights & Biases know the run", "`train --mlflow`, `--wandb`", TEXTS),
    RunFile("stdout.log", "what the process of the run printed", "`compare`, `tune`"),
    RunFile("stderr.log", "its errors", "`compare`, `tune`"),
    RunFile("evaluation.log", "the errors of its evaluation", "`compare`", (), True),
    RunFile(".lock", "nothing; locked as long as a process writes to the folder", "all that write"),
    RunFile(".lock.json", "which process that is", "all that write"),
)


def kind_of(file: Path) -> RunFile | None:
    """The kind of a file, given by its path inside the run folder; None if no command of ssvi writes such a file."""
    return next((kind for kind in RUN_FILES if file.match(kind.name) and len(file.parts) == _depth(kind)), None)


def _depth(kind: RunFile) -> int:
    return len(Path(kind.name).parts)


def remove_trained_network(folder: Path) -> None:
    """Remove what is about the trained network, the network last: until then the folder is that of a finished run."""
    kinds = [kind for kind in RUN_FILES if kind.of_trained_network]
    for kind in sorted(kinds, key=lambda kind: kind.name == "model.safetensors"):
        for file in folder.glob(kind.name):
            file.unlink()
