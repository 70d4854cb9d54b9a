"""Batches without a finite gradient: the update waits for the next ones, and training goes on."""

import copy

import pytest
import torch
import torch.nn.functional as F
from updates import batch, net, train_step

import ssvi
from ssvi.inference.update_times import PATIENCE, UpdateTimes


def due_batches(times: UpdateTimes, failing: set[int], total: int) -> list[int]:
    """The batches, from 1 on, at whose end an update is due. Those in `failing` cannot be made."""
    due = []
    for number in range(1, total + 1):
        if times.due_in(1):
            due.append(number)
            if number in failing:
                times.postpone("no gradient")
            else:
                times.succeed()
        times.count += 1
    return due


@pytest.mark.filterwarnings("ignore::ssvi.TrainingWarning")
@pytest.mark.parametrize(
    ("every", "batches", "until", "failing", "want"),
    [
        (3, 1, None, set(), [3, 6, 9, 12]),
        (3, 1, None, {6}, [3, 6, 7, 9, 12]),
        (3, 1, None, {6, 7, 8}, [3, 6, 7, 8, 9, 12]),
        (3, 3, None, {3}, [3, 6, 9, 12]),
        (4, 2, None, {4, 6}, [4, 6, 8, 12]),
        (4, 3, None, {4, 7}, [4, 7, 10, 12]),
        (3, 2, 7, {6}, [3, 6]),
    ],
)
def test_a_failed_update_is_tried_again_with_the_batches_after_it(every, batches, until, failing, want):
    assert due_batches(UpdateTimes(every, batches, until), failing, 12) == want


def fresh(**options):
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    return bnn, optimizer, ssvi.Subspace(bnn, optimizer, every=3, rate=0.5, **options)


@pytest.mark.parametrize("micro_batches", [None, 1])
def test_an_overflow_at_an_update_is_survived(micro_batches):
    """A GradScaler finds an infinite gradient at the batch of an update, and skips the optimiser's step."""
    bnn, optimizer, subspace = fresh(micro_batches=micro_batches)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    happened = []
    for i in range(6):
        x, y = batch(i)
        optimizer.zero_grad()
        loss = F.cross_entropy(bnn(x), y) * (torch.inf if i == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if i == 2:
            before = [layer.index.clone() for _, layer in ssvi.layers(bnn)]
            with pytest.warns(ssvi.TrainingWarning, match="is not finite, so this update of gamma waits"):
                assert subspace.step() is None
            assert all(torch.equal(a, layer.index) for a, (_, layer) in zip(before, ssvi.layers(bnn), strict=True))
        else:
            happened.append((i, subspace.step() is not None))
    assert [i for i, did in happened if did] == [3, 5]
    assert all(p.isfinite().all() for p in bnn.parameters())


@pytest.mark.parametrize("addition", ["sample", "mean"])
def test_a_batch_that_is_skipped_at_an_update_is_survived(addition):
    """The loop skips a bad batch with `continue` after the forward pass, but still counts it."""
    bnn, optimizer, subspace = fresh(addition=addition)
    for i in range(3):
        if i != 2:
            train_step(bnn, optimizer, i)
            subspace.step()
    with pytest.warns(ssvi.TrainingWarning, match="no gradient has passed through the network"):
        assert subspace.step() is None
    train_step(bnn, optimizer, 3)
    assert subspace.step().count > 0
    assert all(layer.posterior.pins_at_mean == 0 for _, layer in ssvi.layers(bnn))


def test_a_layer_counts_the_batches_in_which_it_is_finite():
    """Of the three batches of criterion 3 one overflows: the mean is over the other two."""
    scores = {}
    for bad in (False, True):
        bnn, _, subspace = fresh(mc_steps=3)
        for i in (0, 1, 2) if bad else (0, 1):
            x, y = batch(i)
            torch.manual_seed(i)
            (F.cross_entropy(bnn(x), y) * (torch.nan if i == 2 else 1)).backward()
            subspace._collection.end_batch()
        scores[bad] = subspace._collection.scores()
    for name, want in scores[False].items():
        torch.testing.assert_close(scores[True][name].live_score, want.live_score, rtol=0, atol=0)


def test_nan_in_every_batch_is_an_error_in_the_end():
    bnn, _, subspace = fresh()
    x, y = batch(0)
    before = copy.deepcopy(bnn.state_dict())

    def nan_batch() -> None:
        F.cross_entropy(bnn(x) * torch.nan, y).backward()
        subspace.step()

    nan_batch()
    nan_batch()
    with pytest.warns(ssvi.TrainingWarning, match="is not finite"):
        nan_batch()
    for _ in range(PATIENCE - 1):
        nan_batch()  # a second warning would be an error
    with pytest.raises(FloatingPointError, match=f"for {PATIENCE + 1} updates of gamma in a row"):
        nan_batch()
    assert all(torch.equal(before[k], v) for k, v in bnn.state_dict().items())


@pytest.mark.filterwarnings("ignore::ssvi.TrainingWarning")
def test_a_postponed_update_is_saved():
    bnn, optimizer, subspace = fresh()
    for _ in range(3):
        subspace.step()
    again = ssvi.Subspace(bnn, optimizer, every=3, rate=0.5)
    again.load_state_dict(subspace.state_dict())
    assert again.due
    assert again.calls == 3
