"""Methods of torch's `Optimizer` without its compiler, which torch loads to hide them from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from ssvi.kernels.hidden import hidden_from_compiler


def _hidden(method: Callable[..., Any]) -> Any:
    """The method that torch has hidden, hidden in our way."""
    return hidden_from_compiler(inspect.unwrap(method))


add_param_group = _hidden(Optimizer.add_param_group)
zero_grad = _hidden(Optimizer.zero_grad)
state_dict = _hidden(Optimizer.state_dict)
load_state_dict = _hidden(Optimizer.load_state_dict)
