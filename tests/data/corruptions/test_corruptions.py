"""What all 15 corruptions must do."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from ssvi.data import CORRUPTIONS, DataError, corrupt

RANDOM = set(CORRUPTIONS) - {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}
COLOURED = {"gaussian_noise", "shot_noise", "impulse_noise", "frost"}
BLURS = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "pixelate")
# As published, they do not grow in squared error: glass is blurred more in between (3, 5), frost darkens what it covers
# (4, 5), the affine part of the elastic transform shrinks.
NOT_MONOTONE = {"glass_blur", "frost", "elastic_transform"}


def damage(x, name, severity):
    return (corrupt(x, name, severity).float() - x.float()).square().mean().item()


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_same_seed_gives_the_same_images(name, images):
    x = images()
    before = x.clone()
    first, again, other = (corrupt(x, name, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (name not in RANDOM)
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_every_image_is_corrupted_in_its_own_way(name, images):
    same = images(1).repeat(4, 1, 1, 1)
    assert len({image.numpy().tobytes() for image in corrupt(same, name, 4)}) == 4


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_damage_grows_with_severity(name, images):
    x = images(200)
    errors = [damage(x, name, severity) for severity in range(1, 6)]
    assert min(errors) > 0
    if name not in NOT_MONOTONE:
        # Motion blur of severity 4 differs from that of 3 only in a longer tail of no weight.
        assert all(b > 0.98 * a for a, b in pairwise(errors)), errors
        assert errors[4] > 1.5 * errors[0]


def test_damage_that_is_not_monotone_in_squared_error(images):
    x = images(200)
    glass = [damage(x, "glass_blur", severity) for severity in range(1, 6)]
    assert min(glass[3:]) > max(glass[:3])
    shares = []  # of the variance of the corrupted pixels, that which the original explains
    for severity in range(1, 6):
        frosted = corrupt(x, "frost", severity).flatten(1).double()
        pairs = zip(x.flatten(1).double(), frosted, strict=True)
        shares.append(np.mean([np.corrcoef(original, image)[0, 1] for original, image in pairs]))
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(1, 28, 28), (1, 8, 8), (3, 20, 33), (3, 3, 5), (1, 1, 1)])
def test_images_of_any_size_and_colour(name, shape, images):
    x = images(3, *shape)
    for severity in (1, 5):
        y = corrupt(x, name, severity)
        assert (y.shape, y.dtype) == (x.shape, torch.uint8)
    assert corrupt(x[:0], name, 1).shape == (0, *shape)


@pytest.mark.parametrize("name", sorted(set(CORRUPTIONS) - COLOURED))
def test_grey_images_stay_grey(name, images):
    grey = images(4, channels=1).repeat(1, 3, 1, 1)
    y = corrupt(grey, name, 4).int()
    assert (y - y[:, :1]).abs().max() <= 1


def test_many_images_are_corrupted_in_parts(images):
    x = images(900, 3, 24, 24)  # more than fit into one part
    y = corrupt(x, "gaussian_noise", 5)
    assert torch.equal(y, corrupt(x, "gaussian_noise", 5))
    residual = (y.float() - x.float())[:, :, 8:16, 8:16].flatten(1)
    assert len(np.unique(residual.numpy(), axis=0)) == 900


@pytest.mark.parametrize("name", BLURS)
def test_blurs_leave_flat_images_flat(name):
    flat = torch.full((2, 3, 32, 32), 77, dtype=torch.uint8)
    for severity in range(1, 6):
        assert torch.equal(corrupt(flat, name, severity), flat)


def test_bad_arguments(images):
    x = images(1)
    for severity in (0, 6, -1):
        with pytest.raises(DataError, match=f"severity={severity}"):
            corrupt(x, "fog", severity)
    with pytest.raises(DataError, match=r"motion-blur is not a corruption: did you mean motion_blur\?"):
        corrupt(x, "motion-blur", 1)
    with pytest.raises(DataError, match="they are gaussian_noise, shot_noise"):
        corrupt(x, "???", 1)
    for bad in (x.float(), x[0], x[:, :2]):
        with pytest.raises(DataError, match="images to corrupt are uint8"):
            corrupt(bad, "fog", 1)
