"""Which images a run trains on, and which it keeps for validation."""

import pytest
import torch

from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.start import start


def splits(tmp_path, **settings):
    run = start(Recipe().replace(width=4, **settings), tmp_path / str(len(list(tmp_path.iterdir()))))
    return run.batches.split, run.validation


def test_some_of_the_examples_are_the_same_share_of_every_class(tmp_path):
    everything, validation = splits(tmp_path)
    some, same_validation = splits(tmp_path, examples=300)
    assert abs(len(some) - 300) <= 5, "each of the ten classes is rounded"
    share = some.y.bincount() / everything.y.bincount()
    assert (share - 300 / len(everything)).abs().max() < 0.01
    assert torch.equal(validation.x, same_validation.x), "validation does not depend on it"


def test_all_of_the_examples_may_be_named_and_no_more(tmp_path):
    everything, _ = splits(tmp_path)
    assert len(splits(tmp_path, examples=len(everything))[0]) == len(everything)
    with pytest.raises(RecipeError, match=f"examples={len(everything) + 1} are more than the {len(everything)}"):
        splits(tmp_path, examples=len(everything) + 1)


def test_another_seed_trains_on_other_examples(tmp_path):
    first, second = (splits(tmp_path, examples=300, seed=seed)[0] for seed in (0, 1))
    assert first.x.shape != second.x.shape or not torch.equal(first.x, second.x)


def test_the_learning_rate_and_the_kl_know_how_many_there_are(tmp_path):
    run = start(Recipe().replace(width=4, examples=300, batch_size=50), tmp_path / "run")
    assert run.training.job.train_size == len(run.batches.split)
    assert run.training.optimizer.train_size == len(run.batches.split)
    assert run.training.job.steps_per_epoch == len(run.batches.split) // 50
