"""The batches of a split: the order of the images, resuming, and sharing between processes."""

import pytest
import torch

from ssvi.data import Batches, DataError, Split, augment


def assert_same_batches(some, others):
    some, others = list(some), list(others)
    assert len(some) == len(others)
    for (x, y), (other_x, other_y) in zip(some, others, strict=True):
        assert torch.equal(x, other_x)
        assert torch.equal(y, other_y)


@pytest.mark.parametrize("start", [0, 1, 5, 7])
def test_an_epoch_resumes_bit_for_bit(start, some):
    options = {"seed": 5, "augment": augment.crop_flip}
    whole = list(some.batches(some.train, 7, **options).epoch(3))
    torch.rand(10)  # the global generator has no part in it
    assert_same_batches(whole[start:], some.batches(some.train, 7, **options).epoch(3, start))


def test_an_epoch_visits_every_image_once_in_an_order_of_its_own(some):
    batches = some.batches(some.train, 7, seed=1)
    first, second = (torch.cat([x for x, _ in batches.epoch(e)]) for e in (0, 1))
    expected = some.normalise(some.train.x)
    assert not torch.equal(first, second)
    for x in (first, second):
        assert torch.equal(x.flatten(1).sum(1).sort()[0], expected.flatten(1).sum(1).sort()[0])


def test_labels_travel_with_their_images(some):
    expected = {x.numpy().tobytes(): int(y) for x, y in zip(some.normalise(some.train.x), some.train.y, strict=True)}
    for xs, ys in some.batches(some.train, 8):
        assert [expected[x.numpy().tobytes()] for x in xs] == ys.tolist()


def test_seeds_and_epochs_give_unrelated_augmentation(some):
    same = Split(some.train.x[:1].repeat(40, 1, 1, 1), some.train.y[:1].repeat(40))  # order cannot show
    draws = [
        next(some.batches(same, 40, seed=seed, augment=augment.crop).epoch(epoch))[0]
        for seed, epoch in ((0, 1), (1, 0), (0, 0))
    ]
    assert not any(torch.equal(draws[i], draws[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def test_without_shuffling_the_order_is_the_given_one(some):
    batches = some.batches(some.train, 16, shuffle=False)
    assert torch.equal(torch.cat([y for _, y in batches]), some.train.y)
    assert len(batches) == 4


def test_drop_last(some):
    batches = some.batches(some.train, 16, drop_last=True)
    assert len(batches) == 3
    assert [len(y) for _, y in batches.epoch(0)] == [16, 16, 16]
    with pytest.raises(DataError, match="do not fill one batch of 64"):
        some.batches(some.train, 64, drop_last=True)


def test_ranks_share_the_batches_of_one_process(some):
    alone = some.batches(some.train, 8, augment=augment.crop_flip)
    ranks = [some.batches(some.train, 8, augment=augment.crop_flip, rank=rank, ranks=2) for rank in (0, 1)]
    for (x, y), *shares in zip(alone, *ranks, strict=True):
        for rank, (part_x, part_y) in enumerate(shares):
            assert torch.equal(part_x, x[rank::2])
            assert torch.equal(part_y, y[rank::2])


@pytest.mark.parametrize(("batch_size", "rank", "ranks"), [(0, 0, 1), (8, 2, 2), (7, 0, 2)])
def test_impossible_batches_are_refused(batch_size, rank, ranks, some):
    with pytest.raises(DataError, match="batch"):
        Batches(some.train, batch_size, normalise=some.normalise, rank=rank, ranks=ranks)
