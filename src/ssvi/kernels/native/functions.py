"""The functions of the compiled library: what each of them takes, and what a failure means.

Their arguments are declared, so callers give addresses and numbers as Python's own integers (None is the null address), a
structure by `byref`, and a wrong number of arguments is an error and no crash.
"""

from __future__ import annotations

import ctypes
from ctypes import c_bool, c_float, c_int64, c_uint64, c_void_p
from typing import Any

from torch import Tensor

_WITH_STATUS: dict[str, tuple[Any, ...]] = {
    "ssvi_forward": (*[c_void_p] * 8, c_uint64, *[c_void_p] * 5, c_int64),
    "ssvi_backward": (*[c_void_p] * 11, c_bool, *[c_void_p] * 2, c_int64),
    "ssvi_pattern": (*[c_void_p] * 2, c_int64, *[c_void_p] * 6),
    "ssvi_top_k": (c_void_p, c_int64, c_int64, c_void_p),
}
_WITHOUT_RESULT: dict[str, tuple[Any, ...]] = {  # they take no memory
    "ssvi_batchnorm_link": (c_void_p, c_int64, c_void_p),
    "ssvi_batchnorm_apply": (*[c_void_p] * 5, c_int64),
    "ssvi_batchnorm_forward": (*[c_void_p] * 5, c_float, c_bool, *[c_void_p] * 3, c_int64),
    "ssvi_batchnorm_sums": (*[c_void_p] * 9, c_int64),
    "ssvi_batchnorm_backward": (*[c_void_p] * 10, c_int64),
    "ssvi_ivon_draw": (c_void_p, c_int64, c_uint64, c_int64),
    "ssvi_ivon_curvature": (c_void_p, c_int64, c_int64),
    "ssvi_ivon_step": (c_void_p, c_int64, c_int64),
    "ssvi_arena_trim": (),
    "ssvi_limit_workers": (c_int64,),
}
_WITH_NUMBER: dict[str, tuple[Any, ...]] = {
    "ssvi_slots": (c_void_p,),
    "ssvi_arena_reach": (),
    "ssvi_packing_time": (c_bool,),
    "ssvi_workers": (c_int64,),
}
_WITH_ADDRESS: dict[str, tuple[Any, ...]] = {"ssvi_arena_take": (c_void_p, c_bool)}
FUNCTIONS = (*_WITH_STATUS, *_WITHOUT_RESULT)
_RESULTS = {c_int64: _WITH_NUMBER, c_void_p: _WITH_ADDRESS, None: _WITHOUT_RESULT, ctypes.c_int32: _WITH_STATUS}
_OUT_OF_MEMORY, _TOO_LARGE = 1, 2  # `Status` of status.h; zero is success


def declare(compiled: ctypes.CDLL) -> None:
    """Say what every function takes and returns; a failure in one of them becomes an exception."""
    for result, functions in _RESULTS.items():
        for name, arguments in functions.items():
            function = getattr(compiled, name)
            function.restype, function.argtypes = result, arguments
    for name in _WITH_STATUS:
        getattr(compiled, name).errcheck = _raise_failure


def _raise_failure(status: int, function: Any, _arguments: tuple[Any, ...]) -> None:
    """The one place where a status of the library becomes an error of Python."""
    if status == _OUT_OF_MEMORY:
        raise MemoryError(
            f"{function.__name__}: no memory for the working copies of the threads; take a smaller batch or fewer "
            "threads (torch.set_num_threads), or free memory"
        )
    if status == _TOO_LARGE:
        raise OverflowError(
            f"{function.__name__}: the padded input of this layer has more than 2^31 values; take a smaller image, "
            'padding or dilation, or the dense kernel: ssvi.kernels.use("dense")'
        )
    if status:
        raise RuntimeError(f"{function.__name__}: failed with status {status}; please report it")


def pointer(tensor: Tensor | None) -> int | None:
    """The address of a contiguous tensor, or null."""
    return None if tensor is None else tensor.data_ptr()
