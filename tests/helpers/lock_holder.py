"""A process that holds the lock of a run folder, as a training would."""

HOLD_LOCK = """
import sys, time
from pathlib import Path
from ssvi.training.run_lock import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.take()
print("locked", flush=True)
time.sleep(60)
"""
"""Its program: takes the folder as argument, prints `locked`, and waits to be killed."""
