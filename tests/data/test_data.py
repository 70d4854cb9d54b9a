"""Splits, statistics, batches and augmentation."""

import numpy as np
import pytest
import torch

from ssvi import data
from ssvi.data import Batches, DataError, DataSet, Split, augment


def random_split(n=50, shape=(3, 8, 10), classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(256, (n, *shape), dtype=torch.uint8, generator=generator)
    return Split(x, torch.randint(classes, (n,), generator=generator))


def random_set(n=50, **options):
    train = random_split(n, **options)
    return DataSet("random", tuple("abcde"), train, train[:10])


def assert_same_batches(some, others):
    some, others = list(some), list(others)
    assert len(some) == len(others)
    for (x, y), (other_x, other_y) in zip(some, others, strict=True):
        assert torch.equal(x, other_x)
        assert torch.equal(y, other_y)


# Digits


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    digits, original = data.digits(), load_digits()
    ours = torch.cat((digits.train.x, digits.test.x)).flatten(1).double() * 16 / 255
    key = np.lexsort(ours.round().numpy().T)
    theirs = np.lexsort(original.data.T)
    assert np.array_equal(ours.round().numpy()[key], original.data[theirs])
    assert (len(digits.train), len(digits.test)) == (1438, 359)


def test_digits_split_is_stratified_and_bright():
    digits = data.digits()
    assert digits.test.y.bincount().tolist() == [
        round(n / 5) for n in (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    ]
    assert digits.train.x.unique().tolist() == [round(level * 255 / 16) for level in range(17)]


# Data sets


def test_statistics_are_those_of_the_training_pixels():
    some = random_set()
    x = some.train.x.double() / 255
    assert some.mean == pytest.approx(x.mean((0, 2, 3)).tolist(), rel=1e-12)
    assert some.std == pytest.approx(x.std((0, 2, 3), correction=0).tolist(), rel=1e-12)
    normalised = some.normalise(some.train.x).double()
    assert normalised.mean((0, 2, 3)).abs().max() < 1e-6
    assert (normalised.std((0, 2, 3), correction=0) - 1).abs().max() < 1e-6


def test_normalise_uses_own_statistics_for_other_images():
    some, other = random_set(), random_split(seed=1).x // 2
    expected = (other.double() / 255 - torch.tensor(some.mean)[:, None, None]) / torch.tensor(some.std)[:, None, None]
    torch.testing.assert_close(some.normalise(other).double(), expected, rtol=0, atol=1e-6)


def test_constant_channel_is_not_divided_by_zero():
    x = torch.full((4, 1, 2, 2), 7, dtype=torch.uint8)
    constant = Split(x, torch.zeros(4, dtype=torch.int64))
    assert DataSet("constant", ("a",), constant, constant).normalise(x).abs().max() < 1e-6


def test_normalise_refuses_what_does_not_fit():
    some = random_set()
    with pytest.raises(
        DataError, match=r"uint8 images \(n, 3, height, width\), not torch.uint8 of shape \(50, 1, 8, 10\)"
    ):
        some.normalise(some.train.x[:, :1])
    with pytest.raises(DataError, match=r"not torch\.float32"):
        some.normalise(some.train.x.float())
    without = DataSet("test only", some.classes, some.train[:0], some.test)
    with pytest.raises(DataError, match="no training images"):
        without.normalise(some.test.x)


def test_labels_and_shapes_are_checked():
    x, y = torch.zeros(2, 1, 4, 4, dtype=torch.uint8), torch.tensor([0, 3])
    with pytest.raises(DataError, match="labels from 0 to 3, but classes from 0 to 1"):
        DataSet("bad", ("a", "b"), Split(x, y), Split(x, y))
    with pytest.raises(DataError, match="different shapes"):
        DataSet("bad", tuple("abcd"), Split(x, y), Split(x[:, :, 1:], y))
    with pytest.raises(DataError, match="2 images need as many int64 labels"):
        Split(x, y[:1])
    with pytest.raises(DataError, match="uint8"):
        Split(x.float(), y)


# Validation


def test_validation_takes_its_share_of_every_class():
    y = torch.arange(5).repeat_interleave(torch.tensor([10, 20, 40, 5, 1]))
    x = torch.arange(len(y), dtype=torch.uint8)[:, None, None, None].clone()
    some = DataSet("some", tuple("abcde"), Split(x, y), Split(x, y))
    train, validation = some.split_validation(0.2, seed=3)
    assert validation.y.bincount(minlength=5).tolist() == [2, 4, 8, 1, 0]
    assert sorted(torch.cat((train.x, validation.x)).flatten().tolist()) == list(range(len(y)))
    assert all(some.train.y[int(i)] == label for i, label in zip(validation.x.flatten(), validation.y, strict=True))


def test_validation_depends_on_the_seed_alone():
    some = random_set()
    first, again, other = (some.split_validation(0.3, seed)[1].x for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_validation_may_be_empty_but_not_everything():
    some = random_set()
    train, validation = some.split_validation(0.0)
    assert torch.equal(train.x, some.train.x)
    assert len(validation) == 0
    with pytest.raises(DataError, match="fraction=1"):
        some.split_validation(1.0)


# Batches


@pytest.mark.parametrize("start", [0, 1, 5, 7])
def test_an_epoch_resumes_bit_for_bit(start):
    some = random_set()
    options = {"seed": 5, "augment": augment.crop_flip}
    whole = list(some.batches(some.train, 7, **options).epoch(3))
    torch.rand(10)  # the global generator has no part in it
    assert_same_batches(whole[start:], some.batches(some.train, 7, **options).epoch(3, start))


def test_an_epoch_visits_every_image_once_in_an_order_of_its_own():
    some = random_set()
    batches = some.batches(some.train, 7, seed=1)
    first, second = (torch.cat([x for x, _ in batches.epoch(e)]) for e in (0, 1))
    expected = some.normalise(some.train.x)
    assert not torch.equal(first, second)
    for x in (first, second):
        assert torch.equal(x.flatten(1).sum(1).sort()[0], expected.flatten(1).sum(1).sort()[0])


def test_labels_travel_with_their_images():
    some = random_set()
    expected = {x.numpy().tobytes(): int(y) for x, y in zip(some.normalise(some.train.x), some.train.y, strict=True)}
    for xs, ys in some.batches(some.train, 8):
        assert [expected[x.numpy().tobytes()] for x in xs] == ys.tolist()


def test_seeds_and_epochs_give_unrelated_augmentation():
    some = random_set()
    same = Split(some.train.x[:1].repeat(40, 1, 1, 1), some.train.y[:1].repeat(40))  # order cannot show
    draws = [
        next(some.batches(same, 40, seed=seed, augment=augment.crop).epoch(epoch))[0]
        for seed, epoch in ((0, 1), (1, 0), (0, 0))
    ]
    assert not any(torch.equal(draws[i], draws[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def test_without_shuffling_the_order_is_the_given_one():
    some = random_set()
    batches = some.batches(some.train, 16, shuffle=False)
    assert torch.equal(torch.cat([y for _, y in batches]), some.train.y)
    assert len(batches) == 4


def test_drop_last():
    some = random_set()
    batches = some.batches(some.train, 16, drop_last=True)
    assert len(batches) == 3
    assert [len(y) for _, y in batches.epoch(0)] == [16, 16, 16]
    with pytest.raises(DataError, match="do not fill one batch of 64"):
        some.batches(some.train, 64, drop_last=True)


def test_ranks_share_the_batches_of_one_process():
    some = random_set()
    alone = some.batches(some.train, 8, augment=augment.crop_flip)
    ranks = [some.batches(some.train, 8, augment=augment.crop_flip, rank=rank, ranks=2) for rank in (0, 1)]
    for (x, y), *shares in zip(alone, *ranks, strict=True):
        for rank, (part_x, part_y) in enumerate(shares):
            assert torch.equal(part_x, x[rank::2])
            assert torch.equal(part_y, y[rank::2])


@pytest.mark.parametrize(("batch_size", "rank", "ranks"), [(0, 0, 1), (8, 2, 2), (7, 0, 2)])
def test_impossible_batches_are_refused(batch_size, rank, ranks):
    some = random_set()
    with pytest.raises(DataError, match="batch"):
        Batches(some.train, batch_size, normalise=some.normalise, rank=rank, ranks=ranks)


# Augmentation


def test_crop_is_a_shift_into_black():
    x = random_split(200).x + 1  # wraps: black is rare
    padded = torch.nn.functional.pad(x, (4, 4, 4, 4))
    seen = set()
    for image, around in zip(augment.crop(x, torch.Generator().manual_seed(0)), padded, strict=True):
        shifts = [(i, j) for i in range(9) for j in range(9) if torch.equal(image, around[:, i : i + 8, j : j + 10])]
        assert len(shifts) == 1
        seen.update(shifts)
    assert {i for i, _ in seen} == {j for _, j in seen} == set(range(9))


def test_flip_mirrors_about_half_of_the_images():
    x = random_split(400).x
    flipped = augment.flip(x, torch.Generator().manual_seed(0))
    mirrored = torch.tensor([torch.equal(image, original.flip(2)) for image, original in zip(flipped, x, strict=True)])
    assert torch.equal(flipped[~mirrored], x[~mirrored])
    assert 160 < mirrored.sum() < 240


def test_augmentation_leaves_its_input_alone():
    x = random_split().x
    before = x.clone()
    augment.crop_flip(x, torch.Generator().manual_seed(0))
    assert torch.equal(x, before)
