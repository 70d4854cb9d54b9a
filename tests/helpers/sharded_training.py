"""One or more processes train a network that FSDP2 has sharded: run by tests/inference/test_sharded.py; prints JSON.

Each step is compared with that of a plain twin on the whole batch. theta = mu, so that there is no noise to differ.
"""

import json

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import ssvi
from ssvi.inference import distributed
from ssvi.nn.sharded import whole

STEPS = 6


def network() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).double()
    return ssvi.to_bnn(net, 0.4, prior_sigma=1.0, seed=0)


def train(bnn: nn.Module, share: bool) -> ssvi.Subspace:
    """On this process's share of each batch, or on all of it."""
    optimizer = torch.optim.Adam(bnn.parameters(), lr=0.01)
    elbo = ssvi.ELBO(bnn, train_size=10, beta=ssvi.schedules.linear(1.0, steps=STEPS))
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.4)
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x = torch.randn(8, 6, generator=generator, dtype=torch.double)
        y = torch.randint(3, (8,), generator=generator)
        if share:
            x, y = (part.chunk(dist.get_world_size())[dist.get_rank()] for part in (x, y))
        optimizer.zero_grad()
        with ssvi.at_mean(bnn):
            elbo(F.cross_entropy(bnn(x), y)).backward()
        optimizer.step()
        subspace.step()
    return subspace


def refusal(bnn: nn.Module) -> str:
    try:
        ssvi.IVON(bnn, train_size=10)
    except ValueError as error:
        return str(error)
    return ""


dist.init_process_group("gloo")
mesh, checks = init_device_mesh("cpu", (dist.get_world_size(),)), {}
for nested in (False, True):
    plain, sharded = network(), network()
    for part in [sharded[0], sharded[2]] if nested else []:
        fully_shard(part, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    refused = refusal(sharded)
    moved = [train(net, share).last.count for net, share in ((plain, False), (sharded, True))]
    pairs = list(zip(plain.parameters(), sharded.parameters(), strict=True))
    checks["nested" if nested else "at the root"] = {
        "IVON": "DistributedDataParallel" in refused,
        "moved": moved[0] == moved[1] > 5,
        "same support": all(torch.equal(plain[i].index, sharded[i].index) for i in (0, 2)),
        "same parameters": all(torch.allclose(p, whole(q), rtol=1e-9, atol=1e-12) for p, q in pairs),
        "predicts": ssvi.predict(sharded, torch.ones(2, 6, dtype=torch.double), 3).shape == (2, 3),
    }
if distributed.rank() == 0:
    print(json.dumps(checks), flush=True)
distributed.leave()
