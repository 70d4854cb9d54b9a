"""Small tensors are faster on one thread; tests of threads choose their own number."""

import os
import signal

import pytest
import torch

import ssvi

# By AMX torch's own bfloat16 convolutions end the process on some virtual machines (docs/kernels.md). oneDNN reads this at
# its first use, and so do the processes that tests start.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # `make test &` in a script; the tests send this signal
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def dense_kernel():
    """The brute-force twin lives on all positions, so both sides must draw their noise in the same way."""
    with ssvi.kernels.use("dense"):
        yield


@pytest.fixture(scope="session", autouse=True)
def settings_folder(tmp_path_factory):
    """What the tests trust (`ssvi.training.trusted_code`) is not what the user trusts."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("settings")
        patch.setenv("SSVI_CONFIG_DIR", str(folder))
        yield folder
