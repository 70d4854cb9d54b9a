"""Splits, statistics, normalisation and validation."""

import pytest
import torch

from ssvi.data import DataError, DataSet, Split


def test_statistics_are_those_of_the_training_pixels(some):
    x = some.train.x.double() / 255
    assert some.mean == pytest.approx(x.mean((0, 2, 3)).tolist(), rel=1e-12)
    assert some.std == pytest.approx(x.std((0, 2, 3), correction=0).tolist(), rel=1e-12)
    normalised = some.normalise(some.train.x).double()
    assert normalised.mean((0, 2, 3)).abs().max() < 1e-6
    assert (normalised.std((0, 2, 3), correction=0) - 1).abs().max() < 1e-6


def test_normalise_uses_own_statistics_for_other_images(some, random_split):
    other = random_split(seed=1).x // 2
    expected = (other.double() / 255 - torch.tensor(some.mean)[:, None, None]) / torch.tensor(some.std)[:, None, None]
    torch.testing.assert_close(some.normalise(other).double(), expected, rtol=0, atol=1e-6)


def test_constant_channel_is_not_divided_by_zero():
    x = torch.full((4, 1, 2, 2), 7, dtype=torch.uint8)
    constant = Split(x, torch.zeros(4, dtype=torch.int64))
    assert DataSet("constant", ("a",), constant, constant).normalise(x).abs().max() < 1e-6


def test_normalise_refuses_what_does_not_fit(some):
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


def test_validation_depends_on_the_seed_alone(some):
    first, again, other = (some.split_validation(0.3, seed)[1].x for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_validation_may_be_empty_but_not_everything(some):
    train, validation = some.split_validation(0.0)
    assert torch.equal(train.x, some.train.x)
    assert len(validation) == 0
    with pytest.raises(DataError, match="fraction=1"):
        some.split_validation(1.0)
