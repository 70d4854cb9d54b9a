"""The application: answers, refusals with one clear line, and limits that hold for one request and not for the others."""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import httpx
import pytest
from models_to_serve import Echo

from ssvi.serving import Facts, Limits
from ssvi.serving.application import application
from ssvi.serving.page import page


@asynccontextmanager
async def client_of(model, limits=None):
    app = application(model, limits)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://server") as client,
    ):
        yield client


def ask(model, method="POST", path="/predict", limits=None, **request):
    async def one():
        async with client_of(model, limits) as client:
            return await client.request(method, path, **request)

    return asyncio.run(one())


def line_of(reply, status) -> str:
    """The one line of an error, which is all that the answer has."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/json"
    (error,) = reply.json().items()
    assert error[0] == "error"
    assert "\n" not in error[1]
    assert "Traceback" not in error[1]
    return error[1]


PNG = {"Content-Type": "image/png"}
TEXT = {"Content-Type": "text/plain"}


def test_an_image_as_the_body_or_in_a_form_gets_the_same_answer(model, files):
    expected = model.answer(model.parse(files[0]))[0]
    raw = ask(model, content=files[0], headers=PNG)
    form = ask(model, files={"image": ("../../etc/passwd", files[0], "image/png")}, data={"more": "words"})
    untyped = ask(model, content=files[0])
    assert raw.status_code == form.status_code == untyped.status_code == 200
    assert raw.json() == form.json() == untyped.json()
    assert raw.json()["class"] == expected.guess
    assert set(raw.json()) == {
        "class", "known", "probability", "probabilities", "entropy", "data_uncertainty", "model_uncertainty", "threshold",
    }  # fmt: skip
    assert raw.json()["probabilities"] == pytest.approx(expected.probabilities, abs=1e-6)


def test_health(model, folder):
    values = ask(model, "GET", "/health").json()
    assert values["ready"] is True
    assert values["waiting"] == 0
    assert (values["model"], values["kind"], values["samples"]) == ("run", "image", 3)
    assert re.fullmatch("[0-9a-f]{16}", values["fingerprint"])
    assert "10 classes, grey images 8 x 8" in values["about"]


def test_the_page_loads_nothing_and_only_its_own_script_runs(model):
    reply = ask(model, "GET", "/")
    assert reply.headers["content-type"].startswith("text/html")
    assert re.findall(r'\b(?:src|href)="(?!data:)|url\(|@import|https?://', reply.text) == []
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1]


def test_names_are_escaped_in_the_page():
    text = page(Facts("<script>alert(1)</script>", "image", "0", 1, "a & b"))
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1>" in text
    assert text.count("<script>") == 1
    assert "a &amp; b" in text


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ({"content": b"{}", "headers": {"Content-Type": "application/json"}}, 415, "application/json is not read here"),
        ({"data": {"a": "b"}}, 415, "send image/*, application/octet-stream, multipart/form-data"),
        ({"content": b"hello", "headers": PNG}, 422, "not a readable image"),
        ({"content": b"", "headers": PNG}, 422, "the file is empty"),
        ({"files": {"a": b"", "b": b""}}, 400, "Too many files"),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400, "boundary"),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data; boundary=a"}}, 400, ""),
        ({"content": b"--a--\r\n", "headers": {"Content-Type": "multipart/form-data; boundary=a"}}, 422, "no file"),
        ({"path": "/predict/rows", "json": {"rows": []}}, 404, "this run answers images: send them to /predict"),
        ({"path": "/predict/row", "json": {}}, 404, "this run answers images: send them to /predict"),
        ({"path": "/etc/passwd"}, 404, "Not Found"),
        ({"path": "/predict/../../etc/passwd", "method": "GET"}, 404, "Not Found"),
        ({"method": "GET"}, 405, "Method Not Allowed"),
        ({"path": "/docs", "method": "GET"}, 404, "Not Found"),
    ],
)
def test_bad_requests_get_one_clear_line(model, request_, status, words):
    assert words in line_of(ask(model, **request_), status)


def test_a_body_that_says_it_is_too_large_is_not_read(model):
    async def never():
        pytest.fail("the body was read")
        yield b""

    headers = PNG | {"Content-Length": "1001"}
    reply = ask(model, limits=Limits(max_bytes=1000), content=never(), headers=headers)
    assert line_of(reply, 413) == "the body is larger than 1,000 bytes: send a smaller one"


def test_a_body_without_a_length_is_refused_while_it_is_read(model):
    sent = []

    async def pieces():
        for i in range(1000):
            sent.append(i)
            yield bytes(100)

    reply = ask(model, limits=Limits(max_bytes=1000), content=pieces(), headers=PNG)
    line_of(reply, 413)
    assert len(sent) <= 12, "the rest was never asked for"


def test_a_body_of_just_the_limit_is_answered():
    assert ask(Echo(), limits=Limits(max_bytes=5), content=b"hello", headers=TEXT).json() == {"said": "hello"}
    line_of(ask(Echo(), limits=Limits(max_bytes=4), content=b"hello", headers=TEXT), 413)


def test_a_failure_of_the_network_tells_the_client_nothing():
    line = line_of(ask(Echo(), content=b"fail", headers=TEXT), 500)
    assert line == "the server failed: its log says why"


def test_one_that_takes_too_long_gets_504_and_the_others_are_answered():
    async def slow_then_fast():
        async with client_of(echo, Limits(timeout=0.3)) as client:
            echo.go_on.clear()
            late = await client.post("/predict", content=b"late", headers=TEXT)
            echo.go_on.set()
            return late, await client.post("/predict", content=b"next", headers=TEXT)

    echo = Echo()
    late, after = asyncio.run(slow_then_fast())
    assert line_of(late, 504) == "no answer within 0.3 s: try again later"
    assert after.json() == {"said": "next"}


def test_a_body_that_does_not_come_gets_408():
    async def silence():
        yield b"h"
        await asyncio.sleep(30)

    reply = ask(Echo(), limits=Limits(timeout=0.1), content=silence(), headers=TEXT)
    assert "did not come within 0.1 s" in line_of(reply, 408)


def test_more_than_may_wait_are_told_to_come_again():
    async def crowd():
        async with client_of(echo, Limits(max_waiting=5)) as client:
            echo.go_on.clear()
            tasks = [asyncio.create_task(client.post("/predict", content=b"a", headers=TEXT)) for _ in range(8)]
            while sum(task.done() for task in tasks) < 3:
                await asyncio.sleep(0.01)
            echo.go_on.set()
            again = await asyncio.gather(*tasks), await client.post("/predict", content=b"a", headers=TEXT)
            return again

    echo = Echo()
    replies, later = asyncio.run(crowd())
    refused = [reply for reply in replies if reply.status_code != 200]
    assert len(refused) == 3
    assert line_of(refused[0], 503) == "5 requests are waiting already: try again"
    assert refused[0].headers["retry-after"] == "1"
    assert later.status_code == 200, "the places are free again"


def test_rows_have_their_own_address():
    rows = Echo("row")
    assert ask(rows, path="/predict/rows", content=b"a b", headers=TEXT).json() == {
        "answers": [{"said": "a"}, {"said": "b"}]
    }
    assert ask(rows, path="/predict/row", content=b"a", headers=TEXT).json() == {"said": "a"}
    assert "these are 2 rows" in line_of(ask(rows, path="/predict/row", content=b"a b", headers=TEXT), 422)
    assert line_of(ask(rows, content=b"a", headers=TEXT), 404) == "this run answers rows: send them to /predict/rows"
    assert "JSON" in ask(rows, "GET", "/").text


def test_every_answer_is_json_that_others_can_read(model, files):
    reply = ask(model, content=files[0], headers=PNG)
    assert json.loads(reply.text, parse_constant=lambda name: pytest.fail(name))
