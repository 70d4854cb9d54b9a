"""From a trained network to a sparse Bayesian one: `to_bnn` keeps its largest weights, as they are.

    python examples/pretrained.py

A network is trained as usual on the embedded digits, converted at 20 % density, and trained on for a few epochs.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi.data import Batches, load
from ssvi.nn.models import mlp


def train(net: nn.Module, batches: Batches, epochs: int, objective=lambda nll: nll) -> None:
    """Adam on the mean of `objective` over the batches."""
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for x, y in batches.epoch(epoch):
            optimizer.zero_grad()
            objective(F.cross_entropy(net(x), y)).backward()
            optimizer.step()


def accuracy(probabilities: Tensor, labels: Tensor) -> float:
    """The share of examples whose most probable class is right."""
    return (probabilities.argmax(1) == labels).double().mean().item()


def main() -> tuple[float, float, float]:
    """Accuracy of the plain network, right after the conversion, and after training on."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load("digits")
    batches = digits.batches(digits.train, 64, drop_last=True)
    x, y = digits.normalise(digits.test.x), digits.test.y

    net = mlp(size=8, width=128)
    train(net, batches, epochs=10)
    plain = accuracy(net(x).softmax(1), y)

    bnn = ssvi.to_bnn(net, density=0.2, support="magnitude")  # the largest fifth of the weights of each layer lives
    converted = accuracy(ssvi.predict(bnn, x, samples=10), y)
    elbo = ssvi.ELBO(bnn, train_size=len(digits.train), beta=0.1)
    train(bnn, batches, epochs=10, objective=elbo)
    tuned = accuracy(ssvi.predict(bnn, x, samples=10), y)
    print(f"plain {plain:.1%}, converted at 20 % density {converted:.1%}, trained on {tuned:.1%}")
    return plain, converted, tuned


if __name__ == "__main__":
    main()
