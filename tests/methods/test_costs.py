"""What a step of each method costs, counted by hand: the live weights of that step, and the gradients that it needs."""

import pytest
import torch
from small_runs import train

from ssvi import flops
from ssvi.inference.mask_sampler import Masks, to_mbnn
from ssvi.nn import models
from ssvi.nn.reach import reachable
from ssvi.training.recipe import from_mapping
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import start

SMALL = {
    "epochs": 2, "width": 8, "batch_size": 128, "every": 3, "density": 0.2, "lr": 0.1, "members": 1, "burn_in": 0.5,
    "threads": 1,
}  # fmt: skip
STEPS = 10  # of an epoch
X = torch.zeros(1, 1, 8, 8)


def epochs_of(method, folder, **changes):
    return RunFolder(train(from_mapping(SMALL | {"method": method} | changes), folder)).metrics()


def layers():
    """(multiply-accumulates, weights) of each layer of the network, by name."""
    return {cost.name: (cost.dense_macs, cost.weights) for cost in flops.per_layer(models.lenet(size=8, width=8), X)}


def test_aeb_is_counted_at_the_density_of_each_step_and_with_dense_weight_gradients(tmp_path):
    lines = epochs_of("aeb", tmp_path / "run")
    run = start(from_mapping(SMALL | {"method": "aeb"}), tmp_path / "other")
    prior, first = run.training.loss, next(iter(layers()))

    def live(name, d, t):  # after t steps of pruning
        return d if name == first else d - round(prior.pruned_share(t) * (d - prior.final_counts[name]))

    by_hand = [
        2 * 128 * sum(
            2 * sum(live(name, d, t) for t in range(epoch * STEPS, (epoch + 1) * STEPS)) * macs // d + STEPS * macs
            for name, (macs, d) in layers().items()
        )
        for epoch in range(2)
    ]  # fmt: skip
    assert [line.flops for line in lines] == pytest.approx(by_hand, rel=1e-6)
    dense = 2 * 128 * STEPS * 3 * sum(macs for macs, _ in layers().values())
    assert dense / 3 < lines[1].flops < lines[0].flops < dense


def test_set_needs_no_dense_gradient_and_rigl_one_per_update(tmp_path):
    static, chance, rigl = (sum(line.flops for line in epochs_of(m, tmp_path / m)) for m in ("static", "set", "rigl"))
    sparse = sum(macs for name, (macs, _) in layers().items() if name != next(iter(layers())))
    updates = round(0.75 * 2 * STEPS) // 3
    assert static == chance
    assert rigl - static == updates * 2 * 128 * sparse


def test_mbnn_is_counted_by_the_channels_of_each_step_and_its_proposals(tmp_path, monkeypatch):
    """The same run, counted at every step from scratch."""
    seen = []
    step = Masks.step

    def counted(masks, x, y):
        live = sum(
            int(m.sum()) * macs // d
            for (macs, d), m in zip(layers().values(), reachable(masks.net, x).values(), strict=True)
        )
        before = masks.proposed
        switched = step(masks, x, y)
        seen.append((live, masks.proposed - before, switched))
        return switched

    monkeypatch.setattr(Masks, "step", counted)
    lines = epochs_of("mbnn", tmp_path / "run", lam=0.4, every=1)
    counted_steps = seen[-2 * STEPS :]  # those before are of the trial step
    assert sum(switched for *_, switched in counted_steps) > 0, "channels must have gone, or nothing is tested"
    for i, line in enumerate(lines):
        epoch = counted_steps[i * STEPS : (i + 1) * STEPS]
        live, proposals = sum(live for live, *_ in epoch), sum(made for _, made, _ in epoch)
        assert line.flops == pytest.approx(2 * 128 * 3 * live * (1 + proposals / STEPS), rel=1e-4)


def test_a_birth_that_is_impossible_is_no_proposal():
    """All channels are on at the start: half of the draws are births, and cost nothing."""
    net = to_mbnn(models.lenet(size=8, width=8))
    masks = Masks(net, train_size=1000, lam=0.0, every=1)
    x, y = torch.rand(4, 1, 8, 8), torch.zeros(4, dtype=torch.long)
    torch.manual_seed(next(seed for seed in range(100) if _first_draw(seed) == 0))  # 0 is a birth
    assert masks.step(x, y) == 0
    assert masks.proposed == 0


def _first_draw(seed):
    torch.manual_seed(seed)
    return int(torch.randint(2, ()))
