"""The limits of the numbers that `Subspace` takes."""

from __future__ import annotations

from collections.abc import Iterable

from torch.optim import Optimizer

from ssvi.inference.argument_checks import check_number_or_schedule, check_real, check_whole
from ssvi.inference.moments import StartsFresh


def check_counts(
    every: object,
    mc_steps: object,
    until: object,
    candidates: object,
    grace: object,
    micro_batches: object,
) -> None:
    """Refuse numbers of batches, updates and positions that cannot be."""
    M = check_whole("every", every, "the number of batches per update of gamma", least=1)
    K = check_whole("mc_steps", mc_steps, "K of criterion 3, a number of batches", least=1)
    if K > M:
        raise ValueError(f"mc_steps={mc_steps!r} must be between 1 and every={every}: it is K of criterion 3")
    check_whole("grace", grace, "a number of updates of gamma", least=0)
    if until is not None:
        check_whole("until", until, "the number of batches after which gamma is fixed; or None", least=0)
    if candidates is not None:
        check_whole("candidates", candidates, "times k absent positions are kept; or None for all", least=1)
    if micro_batches is not None:
        check_whole("micro_batches", micro_batches, "backward passes per batch; or None for any number", least=1)


def check_amounts(rate: object, fresh_sigma: object) -> None:
    """Refuse a rate or a sigma that is no number. (What a schedule gives is checked when it is used.)"""
    check_number_or_schedule("rate", rate, "the share of live weights to replace")
    if fresh_sigma in ("mean", "mean_rho"):
        return
    what = "'mean', 'mean_rho' or a positive number; at 0 sigma cannot learn"
    if isinstance(fresh_sigma, str) or not check_real("fresh_sigma", fresh_sigma, what) > 0:
        raise ValueError(f"fresh_sigma={fresh_sigma!r} must be {what}")


def refuse_fresh_sigma(fresh_sigma: str | float, optimizers: Iterable[Optimizer]) -> None:
    """With IVON a fresh weight has the sigma of the mean h, so any other is an error."""
    if fresh_sigma != "mean" and any(isinstance(optimizer, StartsFresh) for optimizer in optimizers):
        raise ValueError(
            f"fresh_sigma={fresh_sigma!r} must be 'mean' with IVON: a fresh weight has the mean h of its layer"
        )
