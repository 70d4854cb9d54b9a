"""From probabilities to decisions: what a user may promise, and what to do.

Every function takes tensors and computes in float64 on the CPU. A threshold is chosen on examples that the network was
not trained on (validation examples), and then used on new ones. The promises hold if new examples come from the same
source as the validation examples.

- `fit_temperature`, `scaled`: one number that corrects probabilities that are too certain, or too careful.
- `class_threshold`, `class_sets`: sets of classes that contain the true one with a promised probability.
- `residual_threshold`, `residual_intervals`, `interval_threshold`, `intervals`: the same for numbers.
- `threshold_for_error`: when to say "don't know", so that the error rate among the answers is below a promised one.
- `expected_costs`, `decide`: the action with the least expected cost.
"""

from .classes import aps, class_sets, class_threshold, lac
from .conformal import conformal_quantile, examples_for_level
from .cost import CostMatrix, decide, expected_costs
from .intervals import Intervals, interval_threshold, intervals, residual_intervals, residual_threshold
from .selective import ErrorPromise, examples_for_error, threshold_for_error
from .temperature import fit_temperature, scaled

__all__ = [
    "CostMatrix",
    "ErrorPromise",
    "Intervals",
    "aps",
    "class_sets",
    "class_threshold",
    "conformal_quantile",
    "decide",
    "examples_for_error",
    "examples_for_level",
    "expected_costs",
    "fit_temperature",
    "interval_threshold",
    "intervals",
    "lac",
    "residual_intervals",
    "residual_threshold",
    "scaled",
    "threshold_for_error",
]
