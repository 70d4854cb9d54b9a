"""Two processes normalise a batch together: run by torchrun from tests/inference/test_sync_batchnorm.py; prints JSON.

Each case compares the outputs, gradients and running statistics with those of one process that has the whole batch.
"""

import json
from copy import deepcopy

import torch
from torch import nn

import ssvi
from ssvi.inference import distributed
from ssvi.inference.sync_batchnorm import synchronised
from ssvi.nn.models import BY_NAME


def assert_near(a, b, tolerance, checks, name):
    checks[name] = bool(max((x - y).abs().max() for x, y in zip(a, b, strict=True)) <= tolerance)


def compare(net, x, y, loss, tolerance, checks, name, uneven=False):
    """The gradients that DistributedDataParallel averages, against those of the whole batch."""
    rank, ranks = distributed.rank(), distributed.ranks()
    twin = deepcopy(net)
    whole = loss(twin(x), y)
    whole.backward()
    share = slice(rank, None, ranks) if not uneven else (slice(0, 3) if rank == 0 else slice(3, None))
    weight = len(x[share]) * ranks / len(x)  # the mean over processes is that of the batch, whatever their shares
    forward = synchronised(distributed.parallel(net))
    own = weight * loss(forward(x[share]), y[share])
    own.backward()
    assert_near([distributed.mean_(own.detach().clone())], [whole.detach()], tolerance, checks, f"{name}: loss")
    pairs = [(p.grad, q.grad) for p, q in zip(net.parameters(), twin.parameters(), strict=True) if q.grad is not None]
    assert_near(*zip(*pairs, strict=True), tolerance, checks, f"{name}: gradients")
    buffers = [b for b in net.buffers() if b.is_floating_point()], [b for b in twin.buffers() if b.is_floating_point()]
    assert_near(*buffers, tolerance, checks, f"{name}: running statistics")
    checks[f"{name}: left as it was"] = not any("forward" in vars(module) for module in net.modules())


distributed.start()
torch.manual_seed(0)
checks: dict[str, bool] = {}
cases = {
    "images": (
        nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)),
        (2, 6, 6),
    ),
    "rows": (nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 3)), (5,)),
    "no weights": (nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7, affine=False), nn.Linear(7, 3)), (5,)),
}
loss = nn.functional.cross_entropy
for name, (net, shape) in cases.items():
    x, y = torch.randn(8, *shape, dtype=torch.double) + 3, torch.randint(3, (8,))
    compare(deepcopy(net).double(), x, y, loss, 1e-12, checks, name)
    compare(deepcopy(net).double(), x, y, loss, 1e-12, checks, f"{name}, uneven", uneven=True)
resnet = BY_NAME["resnet20"](classes=3, channels=3, width=4)
bnn = ssvi.to_bnn(resnet, 0.3, seed=0, point=True)  # without noise, by the fused kernels where there are some
x, y = torch.randn(8, 3, 8, 8), torch.randint(3, (8,))
compare(bnn, x, y, loss, 2e-4, checks, "bnn")
if distributed.rank() == 0:
    print(json.dumps(checks), flush=True)
distributed.leave()
