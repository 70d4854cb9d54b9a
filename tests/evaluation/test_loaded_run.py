"""`ssvi.load_run`: a run that answers for any images, without its data set, from several threads."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from PIL import Image
from small_runs import finished

import ssvi
from ssvi.data import DataError, DataSet
from ssvi.evaluation import FinishedRun, threshold
from ssvi.evaluation.thresholds import FILE, Threshold
from ssvi.training.errors import RunFolderWarning
from ssvi.training.recipe import Recipe


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(finished(), tmp_path / "run")


@pytest.fixture
def images(run):
    return run.test.x[:6]


@pytest.fixture
def no_data(monkeypatch):
    def missing(*args: object) -> DataSet:
        raise DataError("the data set is not here")

    monkeypatch.setattr(Recipe, "load_data", missing)


def test_it_says_what_the_evaluation_says(folder, run, images):
    prediction = ssvi.load_run(folder).predict(images, samples=4, seed=3)
    expected = run.outputs(run.test[:6], 4, 3, "")
    assert torch.equal(prediction.probs, expected.probs)
    assert prediction.classes == [run.classes[k] for k in expected.probs.argmax(1).tolist()]
    assert torch.equal(prediction.entropy, expected.entropy)
    assert torch.equal(prediction.mutual_information, expected.model_uncertainty)
    assert torch.allclose(prediction.entropy, prediction.data_uncertainty + prediction.mutual_information)
    assert len(prediction) == 6


def test_images_of_other_shapes_are_fitted(folder, images):
    loaded = ssvi.load_run(folder)
    large = Image.fromarray(images[0, 0].numpy()).resize((16, 16), Image.Resampling.NEAREST).convert("RGB")
    again = large.resize((8, 8), Image.Resampling.BILINEAR).convert("L")
    assert torch.equal(loaded.predict(large).probs, loaded.predict(again).probs)


def test_the_data_set_is_not_needed(folder, images, no_data):
    loaded = ssvi.load_run(folder)
    prediction = loaded.predict(images)
    assert prediction.probs.shape == (6, 10)
    with pytest.raises(DataError, match=r"never chosen.*data set is not here.*give threshold="):
        _ = prediction.known
    limit = prediction.entropy.median().item()
    known = loaded.predict(images, threshold=limit).known
    assert torch.equal(known, prediction.entropy <= limit)
    FinishedRun(folder).write(FILE, Threshold(limit, asked=5, seed=0))
    assert torch.equal(ssvi.load_run(folder).predict(images).known, known), "the stored one"


def test_the_threshold_is_that_of_ssvi_predict_and_stored(folder, images):
    loaded = ssvi.load_run(folder)
    prediction = loaded.predict(images)
    assert torch.equal(prediction.known, prediction.entropy <= loaded.threshold())
    stored = FinishedRun(folder).read(Threshold, FILE)
    assert stored == threshold(FinishedRun(folder))
    assert stored.entropy == loaded.threshold()


def test_a_folder_that_cannot_be_written_does_not_matter(folder, images):
    (folder / f"{FILE}.part").mkdir()
    with pytest.warns(RunFolderWarning, match=rf"{FILE} is not stored"):
        assert ssvi.load_run(folder).predict(images).known.shape == (6,)


def test_without_a_threshold_everything_is_known(folder, images):
    FinishedRun(folder).write(FILE, Threshold(None))
    assert ssvi.load_run(folder).predict(images).known.all()


def test_threads_share_it(folder, images):
    loaded = ssvi.load_run(folder)
    expected = [loaded.predict(images[i], seed=i) for i in range(6)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda i: loaded.predict(images[i % 6], seed=i % 6), range(24)))
        limits = set(pool.map(lambda _: loaded.threshold(), range(8)))
    assert all(torch.equal(answer.probs, expected[i % 6].probs) for i, answer in enumerate(answers))
    assert len(limits) == 1


def test_what_it_is(folder, run, images):
    loaded = ssvi.load_run(folder)
    assert repr(loaded) == "LoadedRun(run: lenet by ssvi, 10 classes, images 1 x 8 x 8)"
    assert (loaded.classes, loaded.recipe, loaded.about) == (tuple("0123456789"), run.recipe, run.about)
    assert not loaded.net.training
    prediction = loaded.predict(images)
    text = repr(prediction).splitlines()
    assert text[0] == "ImagePrediction of 6 images:"
    top = prediction.probs.amax(1)[0].item()
    assert text[1] == f"  {prediction.classes[0]}: {top:.1%}, entropy {prediction.entropy[0]:.3f}"
    assert text[-1] == "  ... and 1 more"


def test_bad_arguments_are_named(folder):
    loaded = ssvi.load_run(folder)
    with pytest.raises(DataError, match="samples=0 must be at least 1"):
        loaded.predict(torch.zeros(1, 8, 8), samples=0)
    with pytest.raises(DataError, match="images is empty"):
        loaded.predict([])
