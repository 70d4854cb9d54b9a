"""A real server in a thread of this process, on a free port."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ssvi.serving import Limits, Model
from ssvi.serving.application import application


@contextmanager
def live_server(model: Model, limits: Limits | None = None) -> Iterator[str]:
    """The address of a server for this model; at the end it is stopped, and has answered all."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        server = uvicorn.Server(uvicorn.Config(application(model, limits), log_level="critical", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        assert server.started
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=60)
            assert not thread.is_alive()
