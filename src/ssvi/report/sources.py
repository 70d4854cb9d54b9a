"""Which images each section of a report used, by run."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.evaluation.wording import samples_and_seed
from ssvi.report.gather import ReportedRun
from ssvi.report.gather_tables import ReportedNumbers
from ssvi.report.reported import Reported, things
from ssvi.report.used import Used
from ssvi.training.length import course


def evaluated(runs: Sequence[Reported]) -> list[Used]:
    """The test images of the evaluation."""
    return [_used(run, run.examples, run.samples, run.evaluation.seed) for run in runs]


def decided(runs: Sequence[ReportedRun]) -> list[Used]:
    """The same, and the validation images; runs that have none are left out."""
    return [
        _used(run, run.examples, run.samples, run.evaluation.seed, decisions.validation_images)
        for run in runs
        if (decisions := run.evaluation.decisions) is not None
    ]


def with_intervals(runs: Sequence[ReportedNumbers]) -> list[Used]:
    """The test rows, and the validation rows that conformalised the intervals."""
    return [
        _used(run, run.examples, run.samples, run.evaluation.seed, run.evaluation.intervals.validation_rows)
        for run in runs
    ]


def out_of_distribution(runs: Sequence[ReportedRun]) -> list[Used]:
    """The run's own test images, once for each way in which a run's results used them."""
    parts = [_used(run, result.inside, result.samples, result.seed) for run in runs for result in run.ood]
    return list(dict.fromkeys(parts))


def corrupted(runs: Sequence[ReportedRun]) -> list[Used]:
    """The test images that were corrupted."""
    return [
        _used(run, found.images, found.samples, found.seed) for run in runs if (found := run.corruption) is not None
    ]


def _used(run: Reported, examples: int, samples: int, seed: int, chosen_on: int = 0) -> Used:
    return Used(run.name, run.recipe.data, examples, things(run), samples, seed, run.random, chosen_on)


def clean_is_other(runs: Sequence[ReportedRun]) -> str:
    """A warning where the clean value of the corruptions is not that of the quality: other images, or other samples."""
    differing = [
        f"{run.name} has {found.images:,} {things(run)}, {_made(run, found.samples, found.seed)} here, and "
        f"{run.examples:,}, {_made(run, run.samples, run.evaluation.seed)} there"
        for run in runs
        if (found := run.corruption) is not None and (found.images, found.samples, found.seed) != _of_quality(run)
    ]
    if not differing:
        return ""
    return f"Not alike: the clean values here and the values under Quality. {'; '.join(differing)}."


def _of_quality(run: ReportedRun) -> tuple[int, int, int]:
    return run.examples, run.samples, run.evaluation.seed


def _made(run: Reported, samples: int, seed: int) -> str:
    return samples_and_seed(samples, seed, run.random)


def trained(runs: Sequence[Reported]) -> str:
    """How many images each run learnt from, and how many it was watched on; those of a data set that is gone are unknown."""
    texts = {run.name: _learnt_from(run) for run in runs}
    if len(set(texts.values())) == 1:
        return f"{texts[runs[0].name]}."
    return "; ".join(f"{name}: {text}" for name, text in texts.items()) + "."


def _learnt_from(run: Reported) -> str:
    spent = course(run.recipe)
    epochs = f"{len(run.epochs)} epochs" + (f" ({spent})" if spent else "")
    if run.split is None:
        return f"{epochs}; how many {things(run)} is not known, because the data are no longer there"
    training, validation = run.split
    return f"{training:,} training {things(run)}, {validation:,} validation {things(run)}, {epochs}"


def arithmetic(runs: Sequence[Reported]) -> str:
    """With how many samples the arithmetic of a prediction was counted: of each run, and of dense VI beside it."""
    parts = {run.name: (_made_of(run), _dense_samples(run)) for run in runs}
    if len(set(parts.values())) == 1:
        own, dense = parts[runs[0].name]
        return f"FLOPs per prediction: {own}{dense}."
    return "FLOPs per prediction: " + "; ".join(f"{name} {own}{dense}" for name, (own, dense) in parts.items()) + "."


def _made_of(run: Reported) -> str:
    if run.random:
        return f"{run.samples} sample{'s' if run.samples > 1 else ''}"
    return f"{run.samples} networks" if run.samples > 1 else "one network"


def _dense_samples(run: Reported) -> str:
    asked = run.evaluation.asked or (run.samples if run.random else None)
    return "" if asked is None else f", dense VI {asked} sample{'s' if asked > 1 else ''}"


def unlike_costs(runs: Sequence[Reported]) -> list[str]:
    """Warnings where costs are not alike: other samples for the arithmetic, other machines for the times."""
    sampled = {run.samples for run in runs if run.random}
    samples = "Not alike: FLOPs per prediction are those of other numbers of samples." if len(sampled) > 1 else ""
    return [text for text in (samples, other_machines(runs)) if text]


def other_machines(runs: Sequence[Reported]) -> str:
    """A warning where the times to train were not taken on the same machine with as many threads."""
    machines = {run.machine for run in runs}
    if len(runs) == 1 or (len(machines) == 1 and "-" not in machines):
        return ""
    known = (
        "other machines, or with other numbers of threads" if "-" not in machines else "machines that are not all known"
    )
    return f"Not alike: the runs were trained on {known}. Do not compare the times to train."
