"""Losses and gradients of first steps with noise, many times: run from tests/inference/test_noise_distributed.py.

With torchrun each process has half of the batch, and their numbers are averaged; alone, one process has all of it. The
first argument is the method. Prints JSON: for each repetition the loss and two projections of the gradient.
"""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.inference import distributed
from ssvi.inference.distributed import seed_noise

REPETITIONS = 1000


def first_step(bnn, optimizer, x, y):
    """The loss of the batch and the gradient of the first layer's mu; no weight moves."""
    bnn.zero_grad()
    with optimizer.sampled() if isinstance(optimizer, ssvi.IVON) else torch.enable_grad():
        loss = F.cross_entropy(bnn(x), y)
        loss.backward()
    gradient = bnn[0].posterior.mu.grad
    return torch.stack([loss.detach(), gradient[::2].sum(), gradient[1::2].sum()])


distributed.start()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
bnn = ssvi.to_bnn(net, 0.5, prior_sigma=1.0, sigma_init=0.5, seed=0)
optimizer = ssvi.IVON(bnn, train_size=16, h0=0.2) if sys.argv[1] == "ivon" else None
x, y = torch.randn(16, 6), torch.randint(3, (16,))
share = slice(distributed.rank(), None, distributed.ranks())
seed_noise(int(sys.argv[2]))
numbers = torch.stack([first_step(bnn, optimizer, x[share], y[share]) for _ in range(REPETITIONS)])
distributed.mean_(numbers)  # of the processes, as DistributedDataParallel does: all at once, which takes less time
if distributed.rank() == 0:
    print(json.dumps(numbers.tolist()), flush=True)
distributed.leave()
