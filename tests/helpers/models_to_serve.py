"""Models for the tests of the server that need no network: what they do is known in advance."""

import threading

from ssvi.serving import Facts, Model, RefusedError


class Echo(Model[str, dict]):
    """Answers the words in a body; notes its batches, and waits where it is told to."""

    def __init__(self, kind: str = "image") -> None:
        self.kind, self.batches, self.threads = kind, [], set()
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def facts(self) -> Facts:
        return Facts("echo", self.kind, "0123456789abcdef", 1, "it repeats what you say")

    @property
    def content_types(self) -> tuple[str, ...]:
        return ("text/plain", "multipart/form-data")

    def parse(self, body: bytes) -> list[str]:
        if b"?" in body:
            raise RefusedError(422, "no questions")
        return body.decode().split()

    def answer(self, items: list[str]) -> list[dict]:
        self.go_on.wait(30)
        self.batches.append(list(items))
        self.threads.add(threading.current_thread().name)
        if "fail" in items:
            raise RuntimeError("a secret of the server")
        return [{"said": item} for item in items]
