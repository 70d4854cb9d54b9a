"""Small tensors are faster on one thread; tests of threads choose their own number."""

import pytest
import torch

import ssvi

torch.set_num_threads(1)


@pytest.fixture
def dense_kernel():
    """The brute-force twin lives on all positions, so both sides must draw their noise in the same way."""
    with ssvi.kernels.use("dense"):
        yield
