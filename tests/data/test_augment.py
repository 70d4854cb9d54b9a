"""Augmentation: crops and flips."""

import torch

from ssvi.data import augment


def test_crop_is_a_shift_into_black(random_split):
    x = random_split(200).x + 1  # wraps: black is rare
    padded = torch.nn.functional.pad(x, (4, 4, 4, 4))
    seen = set()
    for image, around in zip(augment.crop(x, torch.Generator().manual_seed(0)), padded, strict=True):
        shifts = [(i, j) for i in range(9) for j in range(9) if torch.equal(image, around[:, i : i + 8, j : j + 10])]
        assert len(shifts) == 1
        seen.update(shifts)
    assert {i for i, _ in seen} == {j for _, j in seen} == set(range(9))


def test_flip_mirrors_about_half_of_the_images(random_split):
    x = random_split(400).x
    flipped = augment.flip(x, torch.Generator().manual_seed(0))
    mirrored = torch.tensor([torch.equal(image, original.flip(2)) for image, original in zip(flipped, x, strict=True)])
    assert torch.equal(flipped[~mirrored], x[~mirrored])
    assert 160 < mirrored.sum() < 240


def test_augmentation_leaves_its_input_alone(random_split):
    x = random_split().x
    before = x.clone()
    augment.crop_flip(x, torch.Generator().manual_seed(0))
    assert torch.equal(x, before)
