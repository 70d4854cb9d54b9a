"""SNR pruning with fine-tuning: dense VI, pruned before its last epochs, which train the weights that are left."""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.methods import common, searches, snr_prune
from ssvi.methods.base import About
from ssvi.methods.job import Job, Training
from ssvi.methods.settings import setting, share

ABOUT = About(
    "SNR pruning, fine-tuned", "dense VI, pruned before its last epochs", unit="weight", aims_at_density=True,
    one_process=True, fixed_epochs=True,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(snr_prune.Settings):
    """Those of SNR pruning, and when it is done."""

    finetune: float = setting(
        0.25,
        "share of the epochs after the pruning, gamma fixed",
        share("the epochs", low_open=True, high_open=True),
    )


epochs = common.as_asked
network = common.dense_gaussian
loss = common.bound
optimizer = common.spread_descent
after_step = common.nothing_after_step


def end_of_epoch(training: Training[Settings], epoch: int) -> None:
    """Prune if it is time."""
    if epoch + 1 == dense_epochs(training.job):
        snr_prune.product(training)


def resume(training: Training[Settings], epoch: int) -> None:
    """After the pruning the parameters have the shapes of the pruned network; their values will be loaded."""
    if epoch >= dense_epochs(training.job):
        snr_prune.cut(training)


def dense_epochs(job: Job[Settings]) -> int:
    """Epochs before the pruning: at least one, and a run of one epoch is pruned at its end."""
    return max(1, job.epochs - max(1, round(job.settings.finetune * job.epochs)))


product = common.trained_network
SEARCH = searches.PRUNED
