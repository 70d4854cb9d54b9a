"""A Bayesian network in your own training loop: a few lines more than plain PyTorch.

    python examples/own_loop.py

Trains a small convolutional network at 90 % sparsity on the embedded digits and prints its accuracy and calibration.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ssvi
from ssvi.data import load

EPOCHS = 15


def main() -> ssvi.Evaluation:
    """Train, predict, evaluate."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load("digits")
    train_set = TensorDataset(digits.normalise(digits.train.x), digits.train.y)
    test_set = TensorDataset(digits.normalise(digits.test.x), digits.test.y)
    loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
    steps = EPOCHS * len(loader)

    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    bnn = ssvi.to_bnn(net, density=0.1, keep_dense=("0",))
    optimizer = ssvi.IVON(bnn, train_size=len(train_set))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    subspace = ssvi.Subspace(bnn, optimizer, every=10, rate=ssvi.schedules.cosine(0.1, steps=steps // 10))

    for _ in range(EPOCHS):
        for x, y in loader:
            with optimizer.sampled():  # theta ~ q, one for the batch
                F.cross_entropy(bnn(x), y).backward()
            optimizer.step()
            scheduler.step()
            subspace.step()

    ssvi.fit_batchnorm(bnn, [x for x, _ in loader])

    print(ssvi.summary(bnn))
    evaluation = ssvi.evaluate(bnn, DataLoader(test_set, batch_size=500), samples=10)
    print(f"accuracy {evaluation.accuracy:.1%}, NLL {evaluation.nll:.3f}, ECE {evaluation.ece:.3f}")
    return evaluation


if __name__ == "__main__":
    main()
