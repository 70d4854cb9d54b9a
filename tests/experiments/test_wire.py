"""What a step sends over the wire: the counter of the sockets, the measurement in two processes, the projection."""

import json
import runpy
import socket
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from ssvi.training.machine import Machine

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def run(*arguments: str):
    return CliRunner().invoke(runpy.run_path(str(EXPERIMENTS / "wire.py"))["main"], arguments)


def test_the_bytes_of_sockets_are_counted():
    from traffic.sockets import received

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        before = received()
        sender.sendall(bytes(12345))
        with receiver:
            left = 12345
            while left:
                left -= len(receiver.recv(left))
            assert received() - before == 12345


@pytest.mark.slow
def test_two_processes_send_their_gradients_and_curvature(tmp_path):
    """An MLP 64-8-8-10: the bytes are those of the numbers that must be averaged, and little more."""
    flags = ["--recipe", "digits", "--model", "mlp", "--width", "8", "--methods", "ssvi", "--steps", "4"]
    done = run("measure", "--out", str(tmp_path / "wire.json"), *flags)
    assert done.exit_code == 0, done.output
    (found,) = json.loads((tmp_path / "wire.json").read_text())["methods"]
    weights, live, biases = 64 * 8 + 8 * 8 + 8 * 10, 64 * 8 + round(0.05 * (8 * 8 + 8 * 10)), 26
    needed = 4 * (2 * live + biases)  # gradient and curvature of each live weight; the first layer is dense
    assert needed <= found["step"]["bytes"] < 1.2 * needed + 1000
    dense = 4 * (weights - 64 * 8)  # an update needs the dense gradients of the layers that are sparse
    assert dense <= found["update"]["bytes"] < 2 * dense + 1000
    assert found["step"]["messages"] == 3, "gradients, curvature, and whether to stop"


def measurement():
    from traffic.messages import Measurement, MethodTraffic, Traffic

    ssvi = MethodTraffic("ssvi", Traffic(4e6, 2), Traffic(40e6, 20), 0.01)
    vi = MethodTraffic("vi", Traffic(88e6, 5), Traffic(0, 0), 0.0)
    return Measurement("2026-01-01", "cifar10", "resnet18", 64, 3, Machine(), [ssvi, vi])


def test_the_projection_is_the_formula_of_a_ring():
    from traffic.messages import Traffic
    from traffic.projection import seconds_per_step

    by_hand = 0.5 + 2 * 7 / 8 * 1e9 / 1.25e9 + 14 * 3 * 1e-4
    assert seconds_per_step(0.5, Traffic(1e9, 3), workers=8, gigabits=10, latency=1e-4) == pytest.approx(by_hand)
    assert seconds_per_step(0.5, Traffic(1e9, 3), workers=1, gigabits=10, latency=1e-4) == 0.5


def test_tables_have_a_share_of_updates_and_only_methods_with_seconds(tmp_path):
    from ssvi.training.records import dumps

    file, page = tmp_path / "wire.json", tmp_path / "page.md"
    file.write_text(dumps(measurement()))
    done = run("table", "--from", str(file), "--compute", "ssvi=0.5", "--source", "From a test.", "--write", str(page))
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "| ssvi | 4.00 | 2 | 40.00 | 100 | 4.40 | 5.0% |" in text
    assert "| ssvi | 0.50 s | 0.56 s (89%)" in text
    assert "| vi | 0" not in text, "without seconds there is no projection"
    assert "From a test." in text


def test_seconds_that_are_none_are_refused(tmp_path):
    from ssvi.training.records import dumps

    (tmp_path / "wire.json").write_text(dumps(measurement()))
    done = run("table", "--from", str(tmp_path / "wire.json"), "--compute", "ssvi=fast")
    assert done.exit_code == 1
    assert "--compute='ssvi=fast' is not METHOD=SECONDS" in done.output
