"""A removal criterion of your own is a function of mu and sigma; the live weights with the smallest scores leave.

    python examples/new_criterion.py

Compares |mu| - sigma, a lower confidence bound of |theta|, with the paper's criterion on the embedded digits.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

import ssvi
from ssvi.data import load
from ssvi.nn.models import mlp


def lower_bound(mu: Tensor, sigma: Tensor) -> Tensor:
    """|mu| - sigma: a weight stays if it is large with certainty."""
    return mu.abs() - sigma


def train_and_evaluate(removal) -> ssvi.Evaluation:
    """Train an MLP at 5 % density with this criterion, and evaluate it."""
    torch.manual_seed(0)
    digits = load("digits")
    batches = digits.batches(digits.train, 64, drop_last=True)
    bnn = ssvi.to_bnn(mlp(size=8, width=128), density=0.05)
    optimizer = torch.optim.Adam(bnn.parameters(), lr=5e-3)
    subspace = ssvi.Subspace(bnn, optimizer, every=5, rate=0.2, removal=removal, until=15 * len(batches))
    elbo = ssvi.ELBO(bnn, train_size=len(digits.train), beta=0.05)
    for epoch in range(20):
        for x, y in batches.epoch(epoch):
            optimizer.zero_grad()
            elbo(F.cross_entropy(bnn(x), y)).backward()
            optimizer.step()
            subspace.step()
    return ssvi.evaluate(bnn, digits.batches(digits.test, 500, shuffle=False), samples=10)


def main() -> dict[str, ssvi.Evaluation]:
    """The evaluations by criterion."""
    torch.set_num_threads(1)
    evaluations = {"snr_abs": train_and_evaluate("snr_abs"), "lower_bound": train_and_evaluate(lower_bound)}
    for name, evaluation in evaluations.items():
        print(f"{name:12} accuracy {evaluation.accuracy:.1%}, NLL {evaluation.nll:.3f}")
    return evaluations


if __name__ == "__main__":
    main()
