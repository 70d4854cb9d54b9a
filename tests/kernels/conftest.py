"""What the tests of the kernels share: fixed seeds, and a number of threads that is put back."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest
import torch

from ssvi.kernels import native
from ssvi.kernels.native import threads as native_threads


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets the number of threads, for one test, in which small layers use all of them too, on a busy machine too."""
    monkeypatch.setattr(native_threads, "LEAST_WORK", 1)
    before = torch.get_num_threads()
    with native_threads.at_a_time(1000) if native.available() else nullcontext():
        yield torch.set_num_threads
    torch.set_num_threads(before)
