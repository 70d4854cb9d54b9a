"""Random images, and a local web server that is slow, cuts off, lies, or refuses."""

import dataclasses
import functools
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from ssvi.data import DataSet, Split


def make_split(n=50, shape=(3, 8, 10), classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(256, (n, *shape), dtype=torch.uint8, generator=generator)
    return Split(x, torch.randint(classes, (n,), generator=generator))


@pytest.fixture
def random_split():
    return make_split


@pytest.fixture
def some():
    """A data set of 50 random images, of which the first 10 are the test images."""
    train = make_split()
    return DataSet("random", tuple("abcde"), train, train[:10])


@dataclasses.dataclass
class Server:
    """What it serves and how; it writes down which byte each request asked to start from."""

    content: bytes
    cut: int | None = None  # close the connection after so many bytes of an answer
    delay: float = 0.0  # seconds between pieces of 50,000 bytes
    ranges: bool = True
    length: bool = True  # announce the length
    statuses: list[int] = dataclasses.field(default_factory=list)  # answers before the first good one
    asked: list[int] = dataclasses.field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    served: Server

    def do_GET(self):
        server = self.served
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        server.asked.append(start)
        if server.statuses:
            return self.send_error(server.statuses.pop(0))
        if server.ranges and start >= len(server.content):
            return self.send_error(416)
        self.send_response(206 if start and server.ranges else 200)
        if start and server.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        body = server.content[start if server.ranges else 0 :]
        if server.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body[: server.cut]
        with suppress(ConnectionError):  # a client that was killed
            for i in range(0, len(body), 50_000):
                self.wfile.write(body[i : i + 50_000])
                time.sleep(server.delay)

    def log_message(self, *arguments):
        pass


@contextmanager
def run_server(**options):
    server = Server(**options)
    handler = type("Bound", (Handler,), {"served": server})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_port}/file.bin"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def serving(request):
    """Runs the server; it serves the CONTENT of the test's module unless told otherwise."""
    return functools.partial(run_server, content=request.module.CONTENT)
