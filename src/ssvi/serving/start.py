"""Start the server, and stop it cleanly."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from math import ceil
from types import FrameType
from typing import TYPE_CHECKING, Any

from ssvi.serving.limits import Limits, ServingError
from ssvi.serving.model import Model

if TYPE_CHECKING:
    from uvicorn import Server

SIGNALS = (signal.SIGINT, signal.SIGTERM)
BACKLOG = 2048
"""Connections that the system keeps until the server takes them."""


def serve(
    model: Model[Any, Any], limits: Limits, host: str, port: int, on_ready: Callable[[str], None]
) -> signal.Signals | None:
    """Serve the model until a signal; returns the signal. Requests that are on their way are answered before.

    Port 0 takes a free one; `on_ready` gets the address.
    """
    check_installed()
    from uvicorn import Config, Server

    from ssvi.serving.application import application

    with _listening(host, port) as listener:
        config = Config(
            application(model, limits), log_level="warning", access_log=False, server_header=False,
            timeout_graceful_shutdown=ceil(limits.timeout) + 1,
        )  # fmt: skip
        on_ready(_address(listener))
        server = Server(config)
        with _caught(server) as received:
            server.run(sockets=[listener])
    return received[-1] if received else None


def check_installed() -> None:
    """Say what to install, if a package that the server needs is missing."""
    missing = [name for name in ("fastapi", "uvicorn", "python_multipart") if find_spec(name) is None]
    if missing:
        raise ServingError(f"the server needs {', '.join(missing)}: pip install 'ssvi[serve]'")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ServingError(f"{host}:{port} cannot be used ({reason}): give another --host or --port") from error


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _caught(server: Server) -> Iterator[list[signal.Signals]]:
    """The signals that stopped the server.

    uvicorn stops cleanly and then raises the signal again, for the handler that was there before. With the default one a
    server that ended well would look as if it had been killed.
    """
    received: list[signal.Signals] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number))
        server.should_exit = True

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
