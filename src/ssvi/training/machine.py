"""What a run was made with: versions and hardware, for the record."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch

import ssvi


@dataclass(frozen=True)
class Machine:
    """The versions and the hardware. What an earlier version did not write is empty."""

    ssvi: str = ""
    torch: str = ""
    python: str = ""
    system: str = ""
    processor: str = ""
    cores: int | None = None
    """None where the operating system does not say."""
    threads: int = 0


@dataclass(frozen=True)
class Origin(Machine):
    """machine.json: where a run was started, how, and with how many processes."""

    command: list[str] = field(default_factory=list)
    processes: int = 1
    """With which it was started; a checkpoint says how many have written it."""
    job: str = ""
    """The id that torchrun gave the job, if it has one."""


def this_machine() -> Machine:
    """The machine of this process."""
    return Machine(
        ssvi=ssvi.__version__,
        torch=str(torch.__version__),
        python=platform.python_version(),
        system=platform.platform(),
        processor=_processor(),
        cores=os.cpu_count(),
        threads=torch.get_num_threads(),
    )


def origin(processes: int) -> Origin:
    """The origin of a run that this command starts now."""
    return Origin(**vars(this_machine()), command=sys.argv, processes=processes, job=torchrun_job())


def torchrun_job() -> str:
    """The id of the job of torchrun that this process belongs to; empty where it has none."""
    job = os.environ.get("TORCHELASTIC_RUN_ID", "")
    return "" if job == "none" else job  # the word that torchrun has for it


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
