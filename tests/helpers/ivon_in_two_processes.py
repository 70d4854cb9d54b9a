"""Two processes train one network by IVON: run by torchrun from tests/inference/test_ivon_distributed.py; prints JSON."""

import json

import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.inference import distributed


def same(tensor: torch.Tensor) -> bool:
    """Whether the tensor is equal in all processes."""
    parts = distributed.gather(tensor.detach().clone())
    return all(torch.equal(part, parts[0]) for part in parts)


distributed.start()
torch.manual_seed(0)
bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), 0.4, prior_sigma=1.0, seed=0)
optimizer = ssvi.IVON(bnn, train_size=64, betas=(0.9, 0.99))
subspace = ssvi.Subspace(bnn, optimizer, every=3, rate=0.3)
forward = distributed.parallel(bnn)
torch.manual_seed(100 + distributed.rank())  # each process its own data and noise
first, checks = bnn[0].posterior, {}
for step in range(9):
    x, y = torch.randn(16, 6), torch.randint(3, (16,))
    h = optimizer.state[first.mu]["h"].clone()
    with optimizer.sampled():
        theta = first.pinned
        noise, gradients = theta.detach() - first.mu.detach(), []
        theta.register_hook(gradients.append)
        F.cross_entropy(forward(x), y).backward()
    local = gradients[0] * noise / optimizer.sigma(first) ** 2  # g eps / sigma, before the processes average g
    optimizer.step()
    if step == 0:
        h_hat = torch.stack(distributed.gather(local)).mean(0)
        delta = 1 / 64
        expected = h + 0.01 * (h_hat - h) + 0.5 * 0.01**2 * (h - h_hat) ** 2 / (h + delta)
        checks["thetas differ"] = not same(theta)
        checks["estimates differ"] = not same(local)
        checks["h is of the mean"] = torch.allclose(optimizer.state[first.mu]["h"], expected)
    subspace.step()
checks["updates"] = subspace.t
checks["same network"] = all(same(tensor) for tensor in bnn.state_dict().values())
checks["same h"] = same(optimizer.state[first.mu]["h"])
if distributed.rank() == 0:
    print(json.dumps(checks), flush=True)
distributed.leave()
