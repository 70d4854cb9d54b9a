"""`ssvi` as a task of another program: it saves and stops when that program has ended, however it ended.

The starter gives it a pipe as input and never writes to it. The operating system closes the pipe when the starter is gone,
even if it was killed; then this process sends itself the signal that Ctrl-C is for a user. So no task goes on that nobody
waits for, on a machine whose cores have been given to others.
"""

from __future__ import annotations

import os
import signal
import threading

from ssvi.__main__ import main as ssvi


def main() -> None:
    """Run the command, and stop it at the end of the input."""
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    ssvi()


def _stop_at_end_of_input() -> None:
    while os.read(0, 1):  # not `sys.stdin`, whose lock would disturb the end of the program
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
