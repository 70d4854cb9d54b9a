"""The end of a backward pass through a layer, whatever forward passes exist beside it."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from updates import batch, net, train_step

import ssvi
from ssvi.inference.backward_pass import BackwardPass
from ssvi.inference.collector import ScoreCollector


def uses(backward_pass: BackwardPass, x: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Results of a layer that is used several times."""
    results = []
    for _ in range(count):
        y = x * 2
        use = backward_pass.expect()
        y.register_hook(lambda _, use=use: backward_pass.arrived(use))
        del use
        results.append(y)
    return results


@pytest.mark.parametrize("differentiated", [1, 2, 3])
def test_a_pass_ends_once_after_the_last_gradient(differentiated):
    """Of three uses that all exist, so many get a gradient."""
    ends = []
    x = torch.ones((), requires_grad=True)
    backward_pass = BackwardPass(lambda: ends.append(True))
    results = uses(backward_pass, x, 3)
    x.register_hook(lambda _: ends.append(False))  # runs before the end of the engine, after all uses
    sum(results[:differentiated]).backward()
    assert ends == ([True, False] if differentiated == 3 else [False, True])


def test_a_use_that_is_thrown_away_is_not_waited_for():
    ends = []
    x = torch.ones((), requires_grad=True)
    backward_pass = BackwardPass(lambda: ends.append(True))
    results = uses(backward_pass, x, 2)
    del results[1]
    x.register_hook(lambda _: ends.append(False))
    results[0].backward()
    assert ends == [True, False]


def test_an_error_at_the_end_of_the_engine_reaches_the_user():
    def fail() -> None:
        raise RuntimeError("too many passes")

    x = torch.ones((), requires_grad=True)
    backward_pass = BackwardPass(fail)
    kept = uses(backward_pass, x, 2)
    with pytest.raises(RuntimeError, match="too many passes"):
        kept[0].backward()


def supports(keep: bool, micro_batches: int | None) -> list[torch.Tensor]:
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.5, micro_batches=micro_batches)
    kept = []
    for i in range(6):
        if keep:
            kept += [bnn(batch(100 + i)[0]), bnn[0](batch(200 + i)[0])]
        train_step(bnn, optimizer, i)
        assert (subspace.step() is None) == (i % 2 == 0)
    return [layer.index for _, layer in ssvi.layers(bnn)]


@pytest.mark.parametrize("micro_batches", [None, 1])
def test_outputs_that_are_kept_and_not_differentiated_change_nothing(micro_batches):
    """A target network's view, or a log, keeps the graph of a second forward pass alive during the update."""
    alone, beside = supports(False, micro_batches), supports(True, micro_batches)
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))


def test_each_backward_pass_counts_beside_outputs_that_are_kept(monkeypatch):
    """With micro_batches=1 each layer is scored, and its dense gradient freed, before `backward` returns."""
    scored = []
    score = ScoreCollector._score
    monkeypatch.setattr(ScoreCollector, "_score", lambda self: (scored.append(self._gradient is not None), score(self)))
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    ssvi.Subspace(bnn, optimizer, every=1, rate=0.5, micro_batches=1)
    kept = bnn(batch(9)[0])
    train_step(bnn, optimizer, 0)
    assert scored == [True] * 3
    with pytest.raises(RuntimeError, match="micro_batches=1, but this is backward pass 2"):
        train_step(bnn, optimizer, 1)
    assert kept.requires_grad


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradient_checkpointing_gives_the_same_updates(use_reentrant):
    def run(checkpoints: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        bnn = ssvi.to_bnn(net(), 0.2)
        optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
        subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5)
        for i in range(3):
            x, y = batch(i)
            torch.manual_seed(i)
            out = checkpoint(bnn, x.requires_grad_(), use_reentrant=use_reentrant) if checkpoints else bnn(x)
            optimizer.zero_grad()
            F.cross_entropy(out, y).backward()
            optimizer.step()
            subspace.step()
        return [layer.index for _, layer in ssvi.layers(bnn)]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))
