"""Chromium without a window, driven through its DevTools protocol over a pipe: no package is needed."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

OPTIONS = [
    "--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-quic", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """One page of a running browser. A message is JSON and a zero byte."""

    def __init__(self, write: int, read: int) -> None:
        self.write, self.read, self.number, self.session = write, read, 0, None
        self.buffer, self.events = b"", []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "DOM", "Network"):
            self(f"{part}.enable")

    def __call__(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a method of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, address: str) -> None:
        """Go to a page, and wait until it is loaded."""
        self("Page.navigate", url=address)
        self.until('document.readyState === "complete" && location.href !== "about:blank"')

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        for _ in range(600):
            if self.value(expression):
                return
            time.sleep(0.05)
        pytest.fail(f"never true: {expression}")

    def choose(self, selector: str, files: list[Path]) -> None:
        """Choose files in a file input, as its dialog does."""
        document = self("DOM.getDocument")["root"]["nodeId"]
        node = self("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])

    def drop(self, files: list[Path], x: int, y: int) -> None:
        """Drag files over the page and let them fall at a place."""
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def press(self, key: str, code: int) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def of(self, method: str) -> list[dict[str, Any]]:
        """What the events of this name said so far."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            piece = os.read(self.read, 2**16)
            assert piece, "the browser has ended"
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser, if there is one; it reads commands from its file 3 and writes to its file 4."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    (theirs, write), (read, answers) = os.pipe(), os.pipe()
    # a Python in between, because a plain sh knows no files above 9
    give = f"import os, sys; os.dup2({theirs}, 13); os.dup2({answers}, 14); os.dup2(13, 3); os.dup2(14, 4)"
    start = [sys.executable, "-c", f"{give}; os.execv(sys.argv[1], sys.argv[1:])"]
    command = [*start, program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        command, pass_fds=(theirs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    os.close(answers)
    try:
        yield Browser(write, read)
    finally:
        os.close(write)
        os.close(read)
        process.terminate()
        process.wait(30)
