"""A real server on a port of this machine: many clients at once, and its end."""

import asyncio
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
from live_server import live_server
from models_to_serve import Echo

from ssvi.serving import Limits, ServingError, serve

IN_FLIGHT = 200


async def ask_all(address, bodies, headers):
    """All at the same time, each on a connection of its own."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=60) as client:
        return await asyncio.gather(*(client.post("/predict", content=body, headers=headers) for body in bodies))


def test_200_images_in_flight_are_all_answered_as_if_each_were_alone(model, files):
    class Counted(Echo):
        """Counts the batches of a model; all requests are there before the first is answered."""

        content_types = model.content_types

        def parse(self, body):
            return model.parse(body)

        def answer(self, items):
            self.batches.append(len(items))
            return model.answer(items)

    counted = Counted()
    with live_server(counted, Limits(timeout=60, max_wait=0.05)) as address:
        replies = asyncio.run(ask_all(address, files[:IN_FLIGHT], {"Content-Type": "image/png"}))
    assert [reply.status_code for reply in replies] == [200] * IN_FLIGHT
    assert sum(counted.batches) == IN_FLIGHT
    assert len(counted.batches) < IN_FLIGHT / 4, "batching happens"
    assert max(counted.batches) <= 64
    expected = model.answer([model.parse(file)[0] for file in files[:IN_FLIGHT]])
    for reply, answer in zip(replies, expected, strict=True):
        assert reply.json()["probabilities"] == pytest.approx(answer.probabilities, abs=1e-5)


def test_a_network_that_hangs_blocks_no_request_over_its_limit():
    echo = Echo()
    echo.go_on.clear()
    with live_server(echo, Limits(timeout=4)) as address:  # in that time all requests come, on a busy machine too
        replies = asyncio.run(ask_all(address, [b"a"] * IN_FLIGHT, {"Content-Type": "text/plain"}))
        assert {reply.status_code for reply in replies} == {504}, "none was lost, and none waited for the network"
        echo.go_on.set()
        after = asyncio.run(ask_all(address, [b"a"] * 3, {"Content-Type": "text/plain"}))
    assert {reply.status_code for reply in after} == {200}
    assert sum(map(len, echo.batches)) <= 64 + 3, "who had gone was not computed"


def test_a_client_that_goes_away_leaves_its_place():
    echo = Echo()
    with live_server(echo, Limits(max_waiting=2)) as address:
        host, port = address.removeprefix("http://").split(":")
        for _ in range(5):
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
            time.sleep(0.05)
        replies = asyncio.run(ask_all(address, [b"a"], {"Content-Type": "text/plain"}))
    assert replies[0].status_code == 200


def started(folder, *words):
    """`ssvi serve` on a free port in a process of its own, and its address."""
    command = [sys.executable, "-m", "ssvi", "serve", str(folder), "--port", "0", "--threads", "1", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = next(line for line in process.stderr if line.startswith("http://"))
    return process, line.split()[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_after_what_is_on_its_way(folder, files, number, code):
    process, address = started(folder, "--samples", "2", "--max-wait-ms", "3000", "--max-batch", "1000")
    try:

        async def ask_and_stop():
            asking = asyncio.create_task(ask_all(address, files[:20], {"Content-Type": "image/png"}))
            async with httpx.AsyncClient(timeout=60) as client:
                while (await client.get(f"{address}/health")).json()["waiting"] < 20:
                    assert not asking.done()
            process.send_signal(number)  # they wait for others, as the server was told to
            return await asking

        replies = asyncio.run(ask_and_stop())
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert {reply.status_code for reply in replies} == {200}
    assert process.returncode == code
    assert errors == ""


def test_an_address_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ServingError, match=rf"127.0.0.1:{port} cannot be used \(.*in use.*give another --host or --port"
        ):
            serve(Echo(), Limits(), "127.0.0.1", port, print)
    with pytest.raises(ServingError, match=r"host\.invalid:0 cannot be used"):
        serve(Echo(), Limits(), "no.such.host.invalid", 0, print)
